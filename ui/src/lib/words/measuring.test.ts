import { describe, expect, test } from "vitest";
import type { Found, RowKind } from "$lib/backend/bindings";
import {
  colourOf,
  figureWithUnit,
  foreseen,
  foundWords,
  oftenWords,
  phaseOf,
  rowWords,
  sampleWords,
  settingsWords,
  testWords,
} from "./measuring";

const plain = (text: string | null): string | null => text?.replaceAll("\u00a0", " ") ?? null;

const users: RowKind = {
  kind: "users",
  users: 4,
  prompt: 128,
  generate: 32,
  split_kv: true,
  shared_prompt: false,
};

describe("what a test measures", () => {
  test.each<[RowKind, string]>([
    [{ kind: "speed", phase: "prefill", tokens: 512, depth: 0 }, "Prefill: 512 tokens"],
    [
      { kind: "both", prompt: 512, generate: 128, depth: 4096 },
      "Prompt and answer: 512 + 128 tokens at depth 4,096",
    ],
    [{ kind: "first_token", prompt: 512, cold: true }, "First token: 512-token prompt, file cold"],
    [{ kind: "first_token", prompt: 512, cold: null }, "First token: 512-token prompt"],
    [
      { kind: "prefix_cache", prompt: 512, changed: 128 },
      "Prefix cache: 512 tokens, last 128 changed",
    ],
    [users, "4 users: 128 + 32 tokens, split cache"],
    [{ ...users, users: 1, split_kv: false }, "1 user: 128 + 32 tokens"],
    [
      { kind: "quality", tokens: 8192, chunk: 512, base: "F16" },
      "Quality: against F16, 8,192 tokens",
    ],
    [{ kind: "quality", tokens: null, chunk: 512, base: null }, "Perplexity: whole text"],
  ])("%o", (what, words) => {
    const { name, rest } = rowWords(what);
    expect(plain(`${name}: ${rest}`)).toBe(words);
  });

  test("only the two speeds are coloured, and decode of several people", () => {
    expect(phaseOf(users)).toBeNull();
    expect(colourOf(users)).toBe("decode");
    expect(colourOf({ kind: "first_token", prompt: 512, cold: null })).toBeNull();
  });

  test("settings are said in words, unknown ones by their own name", () => {
    const settings = [
      { key: "type_kv", value: "q8_0" },
      { key: "repack", value: "false" },
      { key: "from_the_future", value: "7" },
    ];
    expect(settingsWords(settings)).toBe("cache q8_0, repack off, from_the_future 7");
  });
});

describe("figures", () => {
  test("have their unit", () => {
    expect(plain(figureWithUnit(210.4, "tokens_per_second"))).toBe("210 tok/s");
    expect(plain(figureWithUnit(1.306, "seconds"))).toBe("1.31 s");
    expect(plain(figureWithUnit(0.0204, "seconds"))).toBe("20 ms");
    expect(figureWithUnit(18.424, "perplexity")).toBe("perplexity 18.42");
    expect(figureWithUnit(0.0411, "divergence")).toBe("KL 0.041");
    expect(figureWithUnit(null, "seconds")).toBe("not measured");
  });

  test("a divergence that is tiny is not zero", () => {
    expect(figureWithUnit(0.00004, "divergence")).toBe("KL 4.0e-5");
    expect(figureWithUnit(0, "divergence")).toBe("KL 0");
  });
});

describe("what a test found beside its figure", () => {
  test("nothing, of a speed", () => {
    expect(foundWords({ found: "speed" })).toBeNull();
  });

  test("the parts of a first token, and how much of the file was there", () => {
    const found: Found = {
      found: "first_token",
      load: 0.6,
      context: 0.01,
      resident: 0,
      tokenize: 0.001,
      prefill: 0.7,
      sample: 0.0002,
      decode: 0.009,
    };
    expect(plain(foundWords(found))).toBe(
      "load 0.60 s + context 10 ms + tokenize 1.0 ms + prefill 0.70 s + sampling 0.2 ms; second token 9.0 ms later; file in memory: 0 %",
    );
    const warm = { ...found, load: null, context: null, resident: null, decode: null };
    expect(plain(foundWords(warm))).toBe("tokenize 1.0 ms + prefill 0.70 s + sampling 0.2 ms");
  });

  test("how much of a prompt was reused, and where a memory cannot drop a tail", () => {
    const request = (ttft: number, reused: number, shared: number) => ({
      ttft,
      prompt: 512,
      reused,
      shared,
    });
    expect(
      plain(
        foundWords({
          found: "prefix_cache",
          requests: [request(0.71, 0, 0), request(0.02, 511, 512), request(0.2, 384, 384)],
        }),
      ),
    ).toBe("cold 0.71 s; again 20 ms (511 of 512 reused); changed tail 0.20 s (384 of 512 reused)");
    const recurrent = foundWords({
      found: "prefix_cache",
      requests: [request(0.71, 0, 0), request(0.71, 0, 512), request(0.71, 0, 384)],
    });
    expect(recurrent?.match(/this memory cannot drop a tail/g)).toHaveLength(2);
  });

  test("each and the last to wait, of several users", () => {
    const found: Found = { found: "users", prefill: 640, each: 52.4, median: 0.9, worst: 1.42 };
    expect(plain(foundWords(found))).toBe(
      "52.4 tok/s each; first token after 0.90 s, the last to wait 1.42 s; prefill 640 tok/s together",
    );
  });

  test("perplexity with its error, and the divergence first where there is a base", () => {
    const found: Found = { found: "quality", perplexity: 18.42, error: 0.3, base: null };
    expect(plain(foundWords(found))).toBe("perplexity 18.42 ± 0.30");
    const base = { perplexity: 17.9, divergence: 0.041, error: 0.001, same_top: 0.91 };
    expect(plain(foundWords({ ...found, base }))).toBe(
      "KL 0.041 ± 0.001; perplexity 18.42 ± 0.30, the base's 17.90; 91 % of predictions the same",
    );
  });
});

test("a time that is foreseen is short", () => {
  expect([3, 40, 200, 5400].map((seconds) => plain(foreseen(seconds)))).toEqual([
    "3 s",
    "40 s",
    "3½ min",
    "1½ h",
  ]);
});

test("a race says what it found beside the usual, and by how much at least", () => {
  const usual = { prefill: 350, decode: 138 };
  const found: Found = {
    found: "tuned",
    choice: [{ key: "n_threads", value: "4" }],
    gain_low: 1.09,
    usual,
    speeds: { prefill: 400, decode: 152 },
  };
  expect(plain(foundWords(found))).toBe(
    "threads 4: prefill 400, decode 152 tok/s, usually prefill 350, decode 138 tok/s; at least +9.0 % in pairs",
  );
  const none: Found = { ...found, choice: [], gain_low: null, speeds: null };
  expect(plain(foundWords(none))).toBe(
    "nothing is faster beyond doubt than the usual prefill 350, decode 138 tok/s",
  );
  expect(figureWithUnit(1, "gain")).toBe("no gain");
  expect(plain(figureWithUnit(1.12, "gain"))).toBe("+12 %");
});

describe("how often", () => {
  const plan = { repetitions: 5, until: null, order: { order: "one_by_one" } } as const;
  const until = { ...plan, until: { relative: 0.02, at_most: 50 } };

  test("a fixed number", () => {
    expect(plain(oftenWords(plan))).toBe("5 samples a test");
    expect(plain(sampleWords(4, plan, null))).toBe("sample 4 of 5");
  });

  test("until the mean is known", () => {
    expect(plain(oftenWords(until))).toBe("samples until ± 2.0 %");
    expect(plain(sampleWords(7, until, 0.024))).toBe("sample 7, ± 2.4 % (target 2.0 %)");
    expect(plain(sampleWords(1, until, null))).toBe("sample 1 (target 2.0 %)");
  });

  test("until the time is up", () => {
    const sustained = { ...plan, order: { order: "sustained", seconds: 600 } } as const;
    expect(oftenWords(sustained)).toContain("time is up");
    expect(sampleWords(31, sustained, null)).toBe("sample 31");
  });
});

test("one token is written as one", () => {
  expect(testWords(1, 0)).toBe("1\u00a0token");
  expect(testWords(512, 4096)).toBe("512\u00a0tokens at depth\u00a04,096");
});
