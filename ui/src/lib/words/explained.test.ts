import { describe, expect, it } from "vitest";
import type { Rests, Says } from "$lib/backend/bindings";
import { explainedWords, restsWords } from "./explained";

const calibrated: Rests = { rests: "calibrated" };

const text = (says: Says, rests = calibrated): string => {
  const { number, sentence, advice } = explainedWords(says, rests);
  return [number, sentence, advice ?? ""].join(" ").replaceAll("\u00a0", " ").trim();
};

it.each<[Rests, string | null]>([
  [{ rests: "file" }, null],
  [{ rests: "calibrated" }, "Calibrated"],
  [{ rests: "corrected", runs: 1 }, "Corrected by 1\u00a0run"],
  [{ rests: "corrected", runs: 4 }, "Corrected by 4\u00a0runs"],
  [{ rests: "published" }, "Published figures only"],
])("the basis %o is named", (rests, named) => {
  expect(restsWords(rests)).toBe(named);
});

describe("the time of a token", () => {
  const time: Says = {
    says: "token_time",
    total_ms: 9.3,
    weights_ms: 6.6,
    weights_share: 0.71,
    parts: [
      { portion: "weights", ms: 4.9, share: 0.53 },
      { portion: "output", ms: 1.7, share: 0.18 },
      { portion: "layers", ms: 1.75, share: 0.19 },
      { portion: "attention", ms: 0.8, share: 0.09 },
      { portion: "step", ms: 0.1, share: 0.01 },
    ],
  };

  it("says what is worth a word beside the weights", () => {
    expect(text(time)).toBe(
      "71 % of each token’s 9.3 ms is reading weights, 19 % fixed work in the layers and 9.0 % the KV cache.",
    );
  });

  it("is a bar in the order of a token, what is small together", () => {
    const { parts } = explainedWords(time, calibrated);
    expect(parts.map(({ name, colour }) => [name, colour])).toEqual([
      ["Weights", "decode"],
      ["Output matrix", "decode"],
      ["KV cache", "half"],
      ["Fixed work of layers", "rest"],
      ["Rest", "rest"],
    ]);
    expect(parts.reduce((sum, part) => sum + part.share, 0)).toBeCloseTo(1);
  });
});

describe("the gap to the ceiling", () => {
  const gap = (more: Partial<Extract<Says, { says: "gap" }>> = {}): Says => ({
    says: "gap",
    decode: 80,
    is_measured: true,
    ceiling: 200,
    share: 0.4,
    gap_ms: 7.5,
    parts: [
      { portion: "weights", ms: 2 },
      { portion: "layers", ms: 2 },
      { portion: "attention", ms: 1 },
    ],
    rest_ms: 2.5,
    ...more,
  });
  const named = (says: Says): string[] =>
    explainedWords(says, calibrated).parts.map(
      ({ name, value }) => `${name} ${value.replace("\u00a0", " ")}`,
    );

  it("is said with its parts", () => {
    expect(text(gap())).toBe(
      "40 % of the ceiling is what decode reached: 80.0 of a possible 200 tok/s. Each token takes 7.5 ms more than reading its weights at full speed would.",
    );
    expect(named(gap())).toEqual([
      "Weights, slower 2.0 ms",
      "KV cache 1.0 ms",
      "Fixed work of layers 2.0 ms",
      "Not explained 2.5 ms",
    ]);
  });

  it("a part that takes less is negative and has no place in the bar", () => {
    const says = gap({
      parts: [
        { portion: "weights", ms: -1 },
        { portion: "layers", ms: 8.5 },
      ],
      rest_ms: 0,
    });
    expect(named(says)).toEqual(["Weights, faster −1.0 ms", "Fixed work of layers 8.5 ms"]);
    expect(explainedWords(says, calibrated).parts.map(({ share }) => share)).toEqual([0, 1]);
  });

  it("of what was not measured it says what is expected", () => {
    expect(text(gap({ is_measured: false, rest_ms: 0 }))).toContain("is expected of decode");
  });
});

describe("measured beside expected", () => {
  const judged = (more: Partial<Extract<Says, { says: "judged" }>>): Says => ({
    says: "judged",
    phase: "decode",
    measured: 60,
    expected: 100,
    low: 92,
    high: 108,
    ratio: 0.6,
    verdict: "slower",
    reasons: [],
    ...more,
  });

  it("within the band it is as expected", () => {
    expect(text(judged({ measured: 98, ratio: 0.98, verdict: "within" }))).toBe(
      "98 % of the expected decode speed, which is as expected: 98.0 where 92.0 to 108 tok/s were.",
    );
  });

  it("outside without a reason it says so, and what to do", () => {
    expect(text(judged({}))).toBe(
      "40 % slower than expected is decode: 60.0 where 92.0 to 108 tok/s were expected. Nothing that is known explains it. Measure it again, or calibrate anew.",
    );
  });

  it("names its reasons", () => {
    const said = text(
      judged({
        phase: "prefill",
        reasons: [
          { reason: "disturbed" },
          { reason: "threads", ran: 2, calibrated: 4 },
          { reason: "variant", ran: "haswell", calibrated: "zen4" },
          { reason: "build", ran: 11000, calibrated: 11434 },
          { reason: "resembling", share: 0.4 },
          { reason: "published" },
        ],
      }),
    );
    for (const part of [
      "40 % slower than expected is prefill",
      "The run was disturbed: its warnings say by what.",
      "It ran with 2 threads, the calibration with 4.",
      "It ran on the CPU variant haswell, the calibration on zen4.",
      "It ran with llama.cpp 11000, the calibration with 11434.",
      "40 % of the expected time is taken over from operations that only resemble",
      "Only published figures",
      "Measure it again when nothing else is going on.",
    ])
      expect(said).toContain(part);
  });
});

it("says why the larger file reads faster and writes slower", () => {
  const side = (label: string, tensor_type: string, giga: number, weight_bytes: number) => ({
    label,
    tensor_type,
    flops_s: giga * 1e9,
    weight_bytes,
  });
  const says: Says = {
    says: "rates",
    reads_faster: side("Q8_0", "Q8_0", 500, 145e6),
    writes_faster: side("Q4_K_M", "Q4_K", 400, 105e6),
    prefill_ratio: 1.25,
    decode_ratio: 1.4,
    is_measured: true,
  };
  expect(text(says)).toBe(
    "1.3 × the prefill of Q4_K_M is what Q8_0 reaches: prompts multiply Q8_0 at 500 GFLOP/s here, Q4_K at 400 GFLOP/s. Decode goes by bytes, 105 MB against 145 MB: there Q4_K_M is 1.4 × as fast.",
  );
  expect(text({ ...says, is_measured: false })).toContain("is expected of Q8_0: prompts");
});

describe("what holds for the model", () => {
  const kv: Extract<Says, { says: "kv_growth" }> = {
    says: "kv_growth",
    bytes_per_token: 147_456,
    context: 4096,
    kv_bytes: 603_979_776,
    doubled_bytes: 1_207_959_552,
    weight_bytes: 4_700_000_000,
    equal_depth: 31_744,
    most_context: 40_960,
  };

  it("the cache doubles and the weights do not", () => {
    expect(text(kv)).toBe(
      "147 kB of cache for each token: 604 MB at a context of 4,096, 1.2 GB at twice that. The weights that a token reads stay 4.7 GB; from a depth of 31,744 on, a token reads as much of the cache.",
    );
    expect(text({ ...kv, equal_depth: null })).toContain(
      "stay 4.7 GB, more than the cache comes to within 40,960 tokens.",
    );
  });

  it("active parameters are those of a token, memory is for all", () => {
    const moe: Says = {
      says: "experts",
      parameters: 30_532_122_624,
      active: 3_353_032_704,
      file_bytes: 18_556_000_000,
      weight_bytes: 1_900_000_000,
      used: { used: 8, of: 128, nearly_all_from: 47 },
    };
    expect(text(moe)).toBe(
      "3.4 B of 30.5 B parameters are used for a token. All of them take memory, 18.6 GB, of which a written token reads 1.9 GB. It uses 8 of 128 experts; a prompt touches nearly all of them from 47 tokens on.",
    );
    expect(text({ ...moe, used: null, weight_bytes: null })).toBe(
      "3.4 B of 30.5 B parameters are used for a token. All of them take memory, 18.6 GB.",
    );
  });

  it.each<[Says, string]>([
    [
      { says: "sliding_window", layers: 15, of: 18, window: 512, cells: 1024 },
      "15 of 18 layers look back 512 tokens and keep 1,024 at most: only the others grow with the context.",
    ],
    [
      { says: "sliding_window", layers: 18, of: 18, window: 512, cells: 1024 },
      "18 of 18 layers look back 512 tokens and keep 1,024 at most: so none of them grows.",
    ],
    [
      { says: "cache_resident", working_set_bytes: 98_000_000, cache_bytes: 300_000_000 },
      "98 MB is all that a token reads, and the last-level cache holds 300 MB: after the first token, memory is not what limits this model.",
    ],
    [
      {
        says: "fallen_back",
        label: "Q4_K_M",
        label_bits: 4.5,
        bits: 7.4,
        share: 0.75,
        types: ["Q8_0", "Q5_0"],
      },
      "7.4 bits for each weight is what this Q4_K_M takes, not the 4.50 of its type: 75 % of the file lies in rows that are no multiple of 256 numbers, and is Q8_0 and Q5_0 instead.",
    ],
    [
      { says: "threads", ran: 4, calibrated: 2 },
      "4 threads ran, and what is expected here holds for 2 threads. Measure with as many, or set the threads in Settings and calibrate.",
    ],
    [
      {
        says: "unpacking",
        tensor_type: "Q4_K",
        ms: 4,
        share: 0.4,
        rate_bytes_s: 15e9,
        read_bytes_s: 30e9,
      },
      "4.0 ms of a token go into matrices of type Q4_K: they come at 15.0 GB/s, where memory is read at 30.0 GB/s. Unpacking this type takes longer than reading it.",
    ],
  ])("%o", (says, said) => {
    expect(text(says)).toBe(said);
  });
});
