import { describe, expect, it } from "vitest";
import type { CachePartView, EstimateAt, TwinView } from "$lib/backend/bindings";
import {
  band,
  basisWords,
  cacheWords,
  either,
  insteadWords,
  predictedSpeed,
  timeParts,
  twinWords,
} from "./estimates";

const plain = (text: string): string => text.replaceAll("\u00a0", " ");

describe("predicted speeds", () => {
  // The wider the band, the fewer digits.
  it.each([
    [615, 560, 670, "615", "560–670"],
    [1234.5, 1100, 1380.4, "1,235", "1,100–1,380"],
    [101, 92, 110, "101", "92–110"],
    [20.7, 19.3, 22.1, "20.7", "19.3–22.1"],
    [33.04, 29.8, 36.2, "33", "30–36"],
    [6.83, 5.8, 7.8, "6.8", "5.8–7.8"],
    [0.84, 0.7, 0.99, "0.84", "0.70–0.99"],
  ])("%f between %f and %f", (tok_s, low, high, speed, range) => {
    expect(predictedSpeed({ tok_s, low, high })).toBe(speed);
    expect(band({ tok_s, low, high })).toBe(range);
  });
});

it("says what predictions rest on", () => {
  const at = new Date(Date.now() - 3 * 24 * 3_600_000).toISOString();
  const calibrated = { at, variant: "zen4", threads: 2 };
  const words = (runs: number): string =>
    plain(basisWords({ calibrated, why_not: null, corrected_by_runs: runs }));
  expect(words(0)).toBe("Calibrated 3 days ago (zen4, 2 threads).");
  expect(words(1)).toBe("Calibrated 3 days ago (zen4, 2 threads), corrected by 1 run of your own.");
  expect(
    basisWords({
      calibrated: null,
      why_not: "not calibrated for 4 threads (for 2 it is)",
      corrected_by_runs: 0,
    }),
  ).toBe("Not calibrated for 4 threads (for 2 it is): only the ceiling is known.");
});

describe("the formula of the cache", () => {
  const at: EstimateAt = { context: 4096, users: 1, cache: "f16", flash_attention: "auto" };
  // Qwen3 8B as the article has it: 36 layers, 8 heads of 128, 144 KiB a token, 576 MiB.
  const qwen: CachePartView = {
    kind: "full",
    layers: 36,
    cells: 4096,
    kv_heads: 8,
    key_elements: 1024,
    value_elements: 1024,
    cell_bytes: 4096,
    bytes: 603_979_776,
  };

  it("has the model's own numbers in it", () => {
    expect(plain(cacheWords(qwen, at))).toBe(
      "36 layers × 4,096 tokens × 8 heads × (128 K + 128 V) × 2 bytes (f16) = 604 MB",
    );
  });

  it("has the mean of a row where layers differ", () => {
    const odd = { ...qwen, kv_heads: null, key_elements: null, value_elements: null };
    expect(plain(cacheWords(odd, at))).toBe("36 layers × 4,096 tokens × 4.1 kB = 604 MB");
  });

  it("has no values where only keys are kept", () => {
    // DeepSeek V3: 61 layers, one compressed key of 576.
    const latent: CachePartView = {
      ...qwen,
      layers: 61,
      kv_heads: 1,
      key_elements: 576,
      value_elements: 0,
      cell_bytes: 1152,
      bytes: 287_834_112,
    };
    expect(plain(cacheWords(latent, at))).toBe(
      "61 layers × 4,096 tokens × 576 K × 2 bytes (f16) = 288 MB",
    );
  });

  it("says which layers slide", () => {
    const window: CachePartView = { ...qwen, kind: "window", layers: 15, cells: 1024 };
    expect(plain(cacheWords(window, at))).toMatch(/^15 layers with a sliding window × 1,024/);
  });
});

it("names the parts of the time by size, and those that hardly count together", () => {
  const part = (what: "weights" | "attention" | "step" | "layers", share: number) => ({
    what,
    tensor_type: what === "weights" ? "Q4_K" : null,
    share,
    ms: share,
    measured: true,
  });
  const parts = [part("attention", 0.15), part("weights", 0.81), part("step", 0.02)];
  expect(plain(timeParts([...parts, part("layers", 0.02)]))).toBe(
    "81 % weights (Q4_K), 15 % attention, 4.0 % the rest",
  );
});

it("says what would fit instead", () => {
  const ways = [
    insteadWords({ instead: "context", tokens: 8192 }),
    insteadWords({ instead: "cache", cache: "q8_0" }),
    insteadWords({ instead: "users", users: 1 }),
  ];
  expect(either(ways)).toBe("a context of at most 8,192 tokens, a cache of type q8_0 or 1 user");
  expect(either(ways.slice(0, 1))).toBe("a context of at most 8,192 tokens");
});

it("says how a twin came to its speeds", () => {
  const twin: TwinView = {
    prefill: null,
    decode: null,
    layers: [4, 8],
    of_layers: 48,
    bytes: [1_100_000_000, 1_900_000_000],
    seconds: 21.4,
    at: "2026-12-01T12:00:00Z",
    notes: [],
  };
  expect(plain(twinWords(twin))).toBe(
    "From two models with its shapes and tensor types and random weights: 4 and 8 of its 48 layers (1.1 GB and 1.9 GB), measured here in 21 s and carried over to all layers. Nothing was measured on the real model.",
  );
  const whole = { ...twin, layers: [30], of_layers: 30, bytes: [143_000_000] };
  expect(plain(twinWords(whole))).toBe(
    "From a model with its shapes and tensor types and random weights: all 30 layers (143 MB), measured here in 21 s. Nothing was measured on the real model.",
  );
});
