import { describe, expect, it } from "vitest";
import type { Statement } from "$lib/backend/bindings";
import { milliseconds, times } from "$lib/format";
import { statementWords } from "./statements";

const text = (statement: Statement): string => {
  const { number, sentence, advice } = statementWords(statement);
  return [number, sentence, advice ?? ""].join(" ").replaceAll("\u00a0", " ").trim();
};

it.each([
  [0.34, "0.34 ×"],
  [0.999, "1.00 ×"],
  [1.04, "1.04 ×"],
  [1.094, "1.09 ×"],
  [1.095, "1.1 ×"],
  [2.04, "2.0 ×"],
  [9.94, "9.9 ×"],
  [9.95, "10 ×"],
  [1234, "1,234 ×"],
])("the factor %f is written %s", (factor, written) => {
  expect(times(factor)).toBe(written.replace(" ", "\u00a0"));
});

it.each([
  [0.843, "0.84 ms"],
  [0.995, "1.0 ms"],
  [9.346, "9.3 ms"],
  [20.44, "20.4 ms"],
  [99.94, "99.9 ms"],
  [99.95, "100 ms"],
  [1121, "1,121 ms"],
])("%f milliseconds are written %s", (ms, written) => {
  expect(milliseconds(ms)).toBe(written.replace(" ", "\u00a0"));
});

describe("the share of the ceiling", () => {
  const share = (decode: number, ceiling: number): Statement => ({
    statement: "ceiling_share",
    decode,
    ceiling,
    share: decode / ceiling,
    weight_bytes: 98_000_000,
    read_bytes_s: 18_000_000_000,
  });

  it("names both speeds and what the ceiling stands on", () => {
    expect(text(share(107, 187))).toBe(
      "57 % of the ceiling is what decode reached: 107 of a possible 187 tok/s. Each token reads 98 MB of weights, at 18.0 GB/s.",
    );
  });

  it("above 1 it says that the read speed is too low, and what to do", () => {
    expect(text(share(107, 96))).toBe(
      "111 % of the ceiling, which cannot be: decode reached 107 tok/s, more than the 96.0 it stands at. The ceiling stands on a read speed that is too low: measure it again in Settings.",
    );
    expect(statementWords(share(187, 187)).advice).toBeNull();
  });

  it("belongs to decode", () => {
    expect(statementWords(share(107, 187)).phase).toBe("decode");
  });
});

describe("the time of a token", () => {
  it("has two parts that are the whole", () => {
    const words = statementWords({ statement: "token_time", token_ms: 9.3, weights_ms: 6.6 });
    expect(words.number).toBe("9.3\u00a0ms");
    expect(words.sentence).toContain("71\u00a0%");
    expect(words.parts.map((part) => part.value)).toEqual(["6.6\u00a0ms", "2.7\u00a0ms"]);
    expect(words.parts.reduce((sum, part) => sum + part.share, 0)).toBeCloseTo(1);
    expect(words.parts.map((part) => part.colour)).toEqual(["decode", "rest"]);
  });

  it("shorter than its weights take is no bar, but a read speed to measure again", () => {
    const words = statementWords({ statement: "token_time", token_ms: 5, weights_ms: 6.6 });
    expect(words.parts).toEqual([]);
    expect(words.advice).toContain("measure it again");
  });
});

describe("beside another result", () => {
  const against = (more: Partial<Extract<Statement, { statement: "against" }>>): Statement => ({
    statement: "against",
    phase: "prefill",
    this: "Q4_0",
    other: "Q4_1",
    ratio: 612 / 300,
    size_ratio: 92 / 98,
    within_noise: false,
    ...more,
  });

  it("the faster one comes first, with the sizes of the files", () => {
    expect(text(against({}))).toBe(
      "2.0 × the prefill speed of Q4_1 is what Q4_0 reaches, although the files are nearly the same size.",
    );
    // Turned round it is the same statement.
    expect(
      text(against({ this: "Q4_1", other: "Q4_0", ratio: 300 / 612, size_ratio: 98 / 92 })),
    ).toBe(text(against({})));
  });

  it("a larger file that is faster is said with although, a smaller one without", () => {
    expect(text(against({ size_ratio: 1.5 }))).toContain(", although its file is 1.5 × the size.");
    expect(text(against({ size_ratio: 0.34 }))).toContain("; its file is 0.34 × the size.");
  });

  it("a difference within the noise is none", () => {
    expect(text(against({ ratio: 1.01, within_noise: true }))).toBe(
      "1.01 × the prefill speed of Q4_1 is what Q4_0 reaches: no difference that these samples can show. More samples would show a smaller one.",
    );
  });

  it("takes the colour of its speed", () => {
    expect(statementWords(against({ phase: "decode" })).phase).toBe("decode");
  });
});

it("the two speeds are said side by side, in no one's colour", () => {
  const ratio: Statement = { statement: "ratio", prefill: 612, decode: 118, ratio: 612 / 118 };
  expect(text(ratio)).toBe("5.2 × as fast as decode is prefill: 612 against 118 tok/s.");
  expect(statementWords(ratio).phase).toBeNull();
  expect(text({ ...ratio, prefill: 50, decode: 100, ratio: 0.5 })).toContain("usually the faster");
});

it("a request is its whole time, prefill before decode", () => {
  const words = statementWords({
    statement: "request",
    prompt: 4000,
    answer: 200,
    prefill_s: 13.3,
    decode_s: 1.87,
  });
  expect(words.number).toBe("15\u00a0s");
  expect(words.sentence).toContain("4,000 tokens");
  expect(words.parts.map(({ name, value }) => `${name} ${value}`)).toEqual([
    "Prefill 13\u00a0s",
    "Decode 1.9\u00a0s",
  ]);
});

it("without a read speed there is no ceiling, and never a zero", () => {
  expect(text({ statement: "no_ceiling" })).toMatch(/^No ceiling .*Settings\.$/);
  expect(text({ statement: "no_ceiling" })).not.toMatch(/\d/);
});

describe("what other figures say", () => {
  it.each<[Statement, string]>([
    [
      {
        statement: "depth_loss",
        phase: "decode",
        depth: 8192,
        first: 138,
        last: 84.7,
        lost: 0.386,
        within_noise: false,
      },
      "39 % of the decode speed is lost: 138 with the shallowest cache, 84.7 tok/s at a depth of 8,192 tokens.",
    ],
    [
      { statement: "users_each", users: 8, each: 50.2, before: 138, share: 0.364 },
      "36 % of its speed is left to each of 8 users: 50.2 instead of 138 tok/s.",
    ],
    [
      { statement: "reuse", reused: 511, prompt: 512, new_ms: 701, again_ms: 21 },
      "511 of 512 tokens of a repeated prompt are taken from the cache: the first token comes after 21.0 ms instead of 701 ms.",
    ],
    [
      { statement: "machine_course", clock_ghz: null, hottest_c: 87 },
      "87 °C is the highest temperature meanwhile; the clock cannot be read here.",
    ],
  ])("%o", (statement, words) => {
    expect(text(statement)).toBe(words);
  });

  it("a cache that cannot be reused is named", () => {
    const said: Statement = {
      statement: "reuse",
      reused: 0,
      prompt: 512,
      new_ms: 700,
      again_ms: 699,
    };
    expect(text(said)).toContain("cannot drop its end");
  });

  it("a wait has a bar of its parts", () => {
    const { number, parts } = statementWords({
      statement: "wait_parts",
      total_ms: 2000,
      parts: [
        { part: "load", ms: 1300 },
        { part: "prefill", ms: 700 },
      ],
    });
    expect(number.replace("\u00a0", " ")).toBe("2.0 s");
    expect(parts.map((part) => [part.name, part.colour, part.share])).toEqual([
      ["Loading", "rest", 0.65],
      ["Prefill", "prefill", 0.35],
    ]);
  });
});
