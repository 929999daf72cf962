/** U+00A0, before units. */
export const nbsp = "\u00a0";

/** What stands where nothing is known. Never 0. */
export const unknown = "unknown";

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function isKnown(value: number | null | undefined): value is number {
  return value !== null && value !== undefined && Number.isFinite(value);
}

/** A whole number: `8,192`. */
export function whole(value: number | null | undefined): string {
  return isKnown(value) ? grouped.format(value) : unknown;
}

/**
 * Three significant digits: `612`, `79.6`, `7.05`, `0.84`.
 *
 * Below 1 two decimals are enough down to 0.1; from 1,000 on all digits are written.
 */
export function significant(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  // The boundaries lie where rounding reaches the next digit: 99.95 is 100, not 100.0.
  if (size >= 99.95) return grouped.format(value);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.0995) return value.toFixed(2);
  return String(Number(value.toPrecision(2)));
}

/** A speed without its unit: `612`; `not measured` where there is none. */
export function speed(tokensPerSecond: number | null | undefined): string {
  return isKnown(tokensPerSecond) ? significant(tokensPerSecond) : "not measured";
}

/** A speed with its unit: `612 tok/s`. */
export function speedWithUnit(tokensPerSecond: number | null | undefined): string {
  return isKnown(tokensPerSecond) ? `${significant(tokensPerSecond)}${nbsp}tok/s` : "not measured";
}

/** A deviation beside its mean, with the decimals of the mean: `± 4`, `± 2.6`. Empty for one sample. */
export function deviation(value: number | null | undefined, mean: number): string {
  if (!isKnown(value)) return "";
  const size = Math.abs(mean);
  const decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  const written = value.toFixed(decimals);
  return `±${nbsp}${Number(written) === 0 && value > 0 ? significant(value) : written}`;
}

/** A size in powers of ten: `512 B`, `4.2 kB`, `98 MB`, `12.1 GB`. */
export function bytes(value: number | null | undefined): string {
  if (!isKnown(value)) return unknown;
  if (value < 999.5) return `${Math.round(value)}${nbsp}B`;
  if (value < 999_500) return scaled(value / 1e3, "kB");
  if (value < 999_500_000) return scaled(value / 1e6, "MB");
  if (value < 999_950_000_000) return `${(value / 1e9).toFixed(1)}${nbsp}GB`;
  return `${(value / 1e12).toFixed(2)}${nbsp}TB`;
}

function scaled(value: number, unit: string): string {
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}${nbsp}${unit}`;
}

/** Memory, which is compared with the memory of a machine: `0.3 GB`, `19.3 GB`. */
export function memory(value: number | null | undefined): string {
  if (!isKnown(value)) return unknown;
  if (value < 50_000_000) return bytes(value);
  return `${(value / 1e9).toFixed(1)}${nbsp}GB`;
}

/** Memory of a whole machine: `24 GB`, `25.2 GB`. */
export function machineMemory(value: number | null | undefined): string {
  if (!isKnown(value)) return unknown;
  return `${Number((value / 1e9).toFixed(1))}${nbsp}GB`;
}

/** A read speed: `18.0 GB/s`. */
export function bytesPerSecond(value: number | null | undefined): string {
  if (!isKnown(value)) return "not measured";
  if (value < 999_500_000) return `${bytes(value)}/s`;
  const giga = value / 1e9;
  return `${giga < 99.95 ? giga.toFixed(1) : grouped.format(giga)}${nbsp}GB/s`;
}

/** Operations per second: `168 GFLOP/s`, `1.2 TFLOP/s`. */
export function flopsPerSecond(value: number | null | undefined): string {
  if (!isKnown(value)) return "not measured";
  if (value < 999_500_000_000) return `${significant(value / 1e9)}${nbsp}GFLOP/s`;
  return `${significant(value / 1e12)}${nbsp}TFLOP/s`;
}

/** A share from 0 to 1: `57 %`, `3.8 %`. */
export function percent(share: number | null | undefined): string {
  if (!isKnown(share)) return unknown;
  const value = share * 100;
  const size = Math.abs(value);
  if (size === 0 || size >= 9.95) return `${grouped.format(value)}${nbsp}%`;
  if (size < 0.05) return `under 0.1${nbsp}%`;
  return `${value.toFixed(1)}${nbsp}%`;
}

/** Parameters of a model: `135 M`, `30.5 B`. */
export function parameters(value: number | null | undefined): string {
  if (!isKnown(value)) return unknown;
  if (value < 999.5) return grouped.format(value);
  if (value < 999_500) return `${Math.round(value / 1e3)}${nbsp}K`;
  if (value < 999_500_000) return `${Math.round(value / 1e6)}${nbsp}M`;
  if (value < 99_950_000_000) return `${Number((value / 1e9).toFixed(1))}${nbsp}B`;
  return `${grouped.format(value / 1e9)}${nbsp}B`;
}

/** How many: `1 model`, `3 models`. */
export function count(value: number, one: string, more = `${one}s`): string {
  return `${grouped.format(value)}${nbsp}${value === 1 ? one : more}`;
}

/** A clock: `2.1 GHz`. */
export function clock(hertz: number | null | undefined): string {
  return isKnown(hertz) ? `${(hertz / 1e9).toFixed(1)}${nbsp}GHz` : unknown;
}

/** A factor: `2.0 ×`, `1.04 ×`, `14 ×`. Close to 1 it has a digit more, since 1.0 would say nothing. */
export function times(factor: number): string {
  const written =
    factor >= 9.95 ? whole(factor) : factor >= 1.095 ? factor.toFixed(1) : significant(factor);
  return `${written}${nbsp}×`;
}

/** Milliseconds: `0.84 ms`, `9.3 ms`, `20.4 ms`, `142 ms`. */
export function milliseconds(ms: number): string {
  if (ms >= 99.95) return `${whole(ms)}${nbsp}ms`;
  return `${ms >= 0.995 ? ms.toFixed(1) : significant(ms)}${nbsp}ms`;
}
