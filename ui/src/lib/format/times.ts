import { nbsp, unknown } from "./numbers";

/** A duration to the second: `0.3 s`, `12 s`, `2 min 7 s`, `1 h 5 min`. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return unknown;
  if (seconds < 0.0995) return `${Math.round(seconds * 1000)}${nbsp}ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)}${nbsp}s`;
  const all = Math.round(seconds);
  if (all < 60) return `${all}${nbsp}s`;
  const minutes = Math.floor(all / 60);
  if (all < 3600) {
    const rest = all % 60;
    return rest === 0 ? `${minutes}${nbsp}min` : `${minutes}${nbsp}min ${rest}${nbsp}s`;
  }
  const inMinutes = Math.round(seconds / 60);
  const rest = inMinutes % 60;
  const hours = Math.floor(inMinutes / 60);
  return rest === 0 ? `${hours}${nbsp}h` : `${hours}${nbsp}h ${rest}${nbsp}min`;
}

/** A duration as one says it: `12 seconds`, `3½ minutes`, `1 minute`, `2 hours`. */
export function spoken(seconds: number): string {
  if (seconds < 1.5) return "1 second";
  if (seconds < 10) return `${Math.round(seconds)} seconds`;
  if (seconds < 52.5) return `${Math.round(seconds / 5) * 5} seconds`;
  const halves = Math.round(seconds / 30);
  if (halves < 20) return inHalves(halves, "minute");
  const minutes = Math.round(seconds / 60);
  if (minutes < 55) return `${minutes} minutes`;
  return inHalves(Math.round(seconds / 1800), "hour");
}

function inHalves(halves: number, unit: string): string {
  const number = `${Math.floor(halves / 2)}${halves % 2 === 1 ? "½" : ""}`;
  return `${number} ${unit}${number === "1" ? "" : "s"}`;
}

/** `About 3½ minutes`. */
export function about(seconds: number): string {
  return `About ${spoken(seconds)}`;
}

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** How long ago: `just now`, `5 min ago`, `2 h ago`, `3 days ago`. */
export function ago(at: string | null | undefined, now: Date = new Date()): string {
  if (!at) return unknown;
  const past = now.getTime() - new Date(at).getTime();
  if (Number.isNaN(past)) return unknown;
  if (past < minute) return "just now";
  if (past < hour) return `${Math.floor(past / minute)}${nbsp}min${nbsp}ago`;
  if (past < day) return `${Math.floor(past / hour)}${nbsp}h${nbsp}ago`;
  const days = Math.floor(past / day);
  return days === 1 ? "yesterday" : `${days}${nbsp}days${nbsp}ago`;
}

function written(at: string | Date, options: Intl.DateTimeFormatOptions): string {
  const date = typeof at === "string" ? new Date(at) : at;
  if (Number.isNaN(date.getTime())) return unknown;
  return new Intl.DateTimeFormat("en-GB", options).format(date);
}

/** The time of day here: `14:02`. */
export function timeOfDay(at: string | Date): string {
  return written(at, { hour: "2-digit", minute: "2-digit" });
}

/** The time of day here, to the second: `14:28:10`. */
export function timeWithSeconds(at: string | Date): string {
  return written(at, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** The date here: `30 November 2026`. */
export function date(at: string | Date): string {
  return written(at, { day: "numeric", month: "long", year: "numeric" });
}

/** Date and time here: `30 November 2026, 14:02`. */
export function dateAndTime(at: string | Date): string {
  const day = date(at);
  return day === unknown ? unknown : `${day}, ${timeOfDay(at)}`;
}

/** The time where it was today, or else the date without the year: `14:02`, `28 Nov`. */
export function shortly(at: string, now: Date = new Date()): string {
  if (date(at) === date(now)) return timeOfDay(at);
  return written(at, { day: "numeric", month: "short" });
}
