import { describe, expect, it } from "vitest";
import { about, ago, date, dateAndTime, duration, shortly, spoken, timeOfDay } from "./times";

const plain = (text: string): string => text.replaceAll("\u00a0", " ");

describe("times", () => {
  it.each([
    [0.0004, "0 ms"],
    [0.0994, "99 ms"],
    [0.0996, "0.1 s"],
    [0.3, "0.3 s"],
    [9.94, "9.9 s"],
    [9.95, "10 s"],
    [59.4, "59 s"],
    [59.6, "1 min"],
    [127, "2 min 7 s"],
    [3599.4, "59 min 59 s"],
    [3599.6, "1 h"],
    [3900, "1 h 5 min"],
  ])("writes %d seconds: %s", (seconds, written) => {
    expect(plain(duration(seconds))).toBe(written);
  });

  it.each([
    [0.2, "1 second"],
    [1.6, "2 seconds"],
    [9.9, "10 seconds"],
    [12, "10 seconds"],
    [52.4, "50 seconds"],
    [52.5, "1 minute"],
    [75, "1½ minutes"],
    [105, "2 minutes"],
    [200, "3½ minutes"],
    [590, "10 minutes"],
    [3269, "54 minutes"],
    [3300, "1 hour"],
    [5400, "1½ hours"],
  ])("says %d seconds as a person does: %s", (seconds, said) => {
    expect(spoken(seconds)).toBe(said);
    expect(about(seconds)).toBe(`About ${said}`);
  });

  it("does not know what is not known", () => {
    expect(duration(null)).toBe("unknown");
    expect(duration(Number.NaN)).toBe("unknown");
    expect(ago(null)).toBe("unknown");
    expect(ago("no date")).toBe("unknown");
    expect(date("no date")).toBe("unknown");
    expect(dateAndTime("no date")).toBe("unknown");
  });

  it.each([
    ["2026-11-30T14:01:01Z", "just now"],
    ["2026-11-30T14:01:00Z", "1 min ago"],
    ["2026-11-30T13:02:01Z", "59 min ago"],
    ["2026-11-30T13:02:00Z", "1 h ago"],
    ["2026-11-29T14:02:01Z", "23 h ago"],
    ["2026-11-29T14:02:00Z", "yesterday"],
    ["2026-11-27T14:02:00Z", "3 days ago"],
  ])("says how long ago %s is: %s", (at, said) => {
    expect(plain(ago(at, new Date("2026-11-30T14:02:00Z")))).toBe(said);
  });

  it("writes times of this place", () => {
    const here = new Date(2026, 10, 30, 14, 2, 5);
    expect(timeOfDay(here)).toBe("14:02");
    expect(date(here)).toBe("30 November 2026");
    expect(dateAndTime(here.toISOString())).toBe("30 November 2026, 14:02");
    expect(shortly(here.toISOString(), here)).toBe("14:02");
    expect(shortly(here.toISOString(), new Date(2026, 11, 1))).toBe("30 Nov");
  });
});
