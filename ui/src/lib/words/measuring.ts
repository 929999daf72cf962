import type { Doing, PhaseName, Tests } from "$lib/backend/bindings";
import { nbsp, percent, whole } from "$lib/format";

/** The two speeds. */
export const phaseWords: Record<PhaseName, string> = { prefill: "Prefill", decode: "Decode" };

/** The presets: name, and what is in it. */
export const presetWords: Record<Tests["preset"], { name: string; about: string }> = {
  quick: { name: "Quick", about: "512-token prompt, 128-token answer, 3 samples of each" },
  article: { name: "Article", about: "512-token prompt, 128-token answer, 5 samples of each" },
  own: { name: "Own", about: "your own lengths, depths and number of samples" },
};

/** What a test does, for its row: `sample 4 of 5`. */
export function doingWords(doing: Doing, repetitions: number): string {
  switch (doing.doing) {
    case "loading":
      return `loading, ${percent(doing.fraction)}`;
    case "warmup":
      return "warming up, not counted";
    case "depth":
      return doing.restored ? "restoring the context" : "filling the context";
    case "text":
      return `reading the text, ${whole(doing.done)} of ${whole(doing.chunks)}`;
    case "timing":
      return `sample ${doing.number} of ${repetitions}`;
  }
}

/** What a test measures: `512 tokens`, `128 tokens at depth 4,096`. */
export function testWords(tokens: number, depth: number): string {
  const length = `${whole(tokens)}${nbsp}tokens`;
  return depth === 0 ? length : `${length} at depth${nbsp}${whole(depth)}`;
}
