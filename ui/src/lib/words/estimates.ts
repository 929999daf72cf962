import type {
  BasisView,
  CachePartView,
  EstimateAt,
  Instead,
  Predicted,
  TimeOf,
  TimePart,
  TwinView,
} from "$lib/backend/bindings";
import {
  ago,
  bytes,
  count,
  duration,
  memory,
  nbsp,
  percent,
  significant,
  whole,
} from "$lib/format";

/**
 * A number of a prediction with the digits that its band leaves it: two, three where the band is
 * narrow, and from 100 on whole numbers.
 */
function inBand(value: number, { tok_s, low, high }: Predicted): string {
  const narrow = (high - low) / 2 / tok_s < 0.08;
  if (value >= 99.5 || narrow) return significant(value);
  return value >= 9.95
    ? value.toFixed(0)
    : String(Number(value.toPrecision(2)).toFixed(value >= 0.995 ? 1 : 2));
}

/** A predicted speed: `615`, `6.8`. */
export function predictedSpeed(speed: Predicted): string {
  return inBand(speed.tok_s, speed);
}

/** Its band: `560–670`, `5.8–7.8`. */
export function band(speed: Predicted): string {
  return `${inBand(speed.low, speed)}–${inBand(speed.high, speed)}`;
}

/** A predicted speed as one says it: `615 tok/s, between 560 and 670`. */
export function predictedWords(speed: Predicted): string {
  return `${predictedSpeed(speed)}${nbsp}tok/s, between ${inBand(speed.low, speed)} and ${inBand(speed.high, speed)}`;
}

/** What predictions rest on, a sentence. */
export function basisWords({ calibrated, why_not, corrected_by_runs }: BasisView): string {
  if (!calibrated) {
    const why = why_not ?? "not calibrated";
    return `${why.charAt(0).toUpperCase()}${why.slice(1)}: only the ceiling is known.`;
  }
  const by = `Calibrated ${ago(calibrated.at)} (${calibrated.variant}, ${count(calibrated.threads, "thread")})`;
  return corrected_by_runs === 0
    ? `${by}.`
    : `${by}, corrected by ${count(corrected_by_runs, "run")} of your own.`;
}

/** What would fit instead. */
export function insteadWords(instead: Instead): string {
  switch (instead.instead) {
    case "context":
      return `a context of at most ${whole(instead.tokens)} tokens`;
    case "cache":
      return `a cache of type ${instead.cache}`;
    case "users":
      return instead.users === 1 ? "1 user" : `at most ${whole(instead.users)} users`;
    case "quantization":
      return `${instead.quantization} (${memory(instead.bytes)})`;
  }
}

/** Of several ways one: `a, b or c`. */
export function either(ways: readonly string[]): string {
  return ways.length < 2
    ? ways.join("")
    : `${ways.slice(0, -1).join(", ")} or ${ways.at(-1) ?? ""}`;
}

const timeWords: Record<TimeOf, string> = {
  weights: "weights",
  experts: "experts",
  output: "output matrix",
  attention: "attention",
  state: "state",
  layers: "rest of the layers",
  step: "each step",
};

/** A part of the time: `62 % weights (Q4_K)`. */
export function partWords({ what, tensor_type, share }: TimePart): string {
  const type = tensor_type === null ? "" : ` (${tensor_type})`;
  return `${percent(share)} ${timeWords[what]}${type}`;
}

/** Where time goes, the most first; what is under 3 % is one part. */
export function timeParts(parts: readonly TimePart[]): string {
  const sorted = [...parts].sort((a, b) => b.share - a.share);
  const small = sorted.filter((part) => part.share < 0.03);
  const rest = small.reduce((sum, part) => sum + part.share, 0);
  const shown = sorted.filter((part) => part.share >= 0.03).map(partWords);
  return [...shown, ...(small.length > 0 ? [`${percent(rest)} the rest`] : [])].join(", ");
}

/** How long all parts take. */
export function timeOf(parts: readonly TimePart[]): string {
  const ms = parts.reduce((sum, part) => sum + part.ms, 0);
  return ms < 995 ? `${significant(ms)}${nbsp}ms` : duration(ms / 1000);
}

/** Bytes of one value in a cache, where its type stores each in as many: `2`, `1.0625`. */
const valueBytes: Record<string, number> = { f16: 2, q8_0: 34 / 32, q4_0: 18 / 32 };

const kindWords: Record<CachePartView["kind"], string> = {
  full: "",
  window: " with a sliding window",
  indexer: " with an indexer",
  compressed: " with compressed rows",
};

/** How the cache of a kind of layers comes to its size: layers x cells x heads x values x bytes. */
export function cacheWords(part: CachePartView, at: EstimateAt): string {
  const { kv_heads, key_elements, value_elements } = part;
  const layers = `${count(part.layers, "layer")}${kindWords[part.kind]} × ${whole(part.cells)} tokens`;
  const size = valueBytes[at.cache];
  // Where rows are padded, or layers differ, only the mean of a row is right.
  const fits =
    size !== undefined &&
    key_elements !== null &&
    value_elements !== null &&
    Math.abs((key_elements + value_elements) * size - part.cell_bytes) < 0.5;
  if (!fits) return `${layers} × ${bytes(part.cell_bytes)} = ${bytes(part.bytes)}`;
  const each = `${String(size)} bytes (${at.cache})`;
  const values =
    kv_heads === null
      ? `${whole(key_elements + value_elements)} values`
      : value_elements === 0
        ? `${whole(key_elements)} K`
        : `${count(kv_heads, "head")} × (${whole(key_elements / kv_heads)} K + ${whole(value_elements / kv_heads)} V)`;
  return `${layers} × ${values} × ${each} = ${bytes(part.bytes)}`;
}

/** How a twin came to its speeds, sentences. */
export function twinWords(twin: TwinView): string {
  const { layers, of_layers, bytes: sizes } = twin;
  const all = layers.length === 1 && layers[0] === of_layers;
  const which = all
    ? `all ${count(of_layers, "layer")}`
    : `${layers.map(whole).join(" and ")} of its ${count(of_layers, "layer")}`;
  const what =
    layers.length === 1
      ? "a model with its shapes and tensor types and random weights"
      : `${layers.length === 2 ? "two" : whole(layers.length)} models with its shapes and tensor types and random weights`;
  const carried = all ? "" : " and carried over to all layers";
  return `From ${what}: ${which} (${sizes.map((size) => bytes(size)).join(" and ")}), measured here in ${duration(twin.seconds)}${carried}. Nothing was measured on the real model.`;
}
