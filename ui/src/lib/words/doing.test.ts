import { expect, test } from "vitest";
import { failureWords, stageName, testInSentence } from "./doing";
import { warningWords } from "./warnings";

test("every end of the engine has a name of its own words", () => {
  // The keys of `WorkerEnd::code` in the engine crate.
  const codes = [
    "engine_illegal_instruction",
    "engine_crashed",
    "engine_file_fault",
    "engine_check_failed",
    "engine_out_of_memory",
    "engine_killed",
    "engine_ended_by_signal",
    "engine_exited",
    "engine_failed",
    "engine_stopped",
    "engine_protocol",
    "engine_ended",
  ];
  for (const code of codes) expect(failureWords(code).name).not.toBe("failed");
});

test("a failure that is not known is a failure all the same", () => {
  expect(failureWords("from_the_future")).toEqual({ name: "failed", advice: null });
  expect(failureWords("constructor")).toEqual({ name: "failed", advice: null });
});

test("a test in a sentence names speed, tokens and depth", () => {
  const what = { kind: "speed", phase: "decode", tokens: 128, depth: 4096 } as const;
  expect(testInSentence({ what, settings: [] })).toBe(
    "decode of 128\u00a0tokens at depth\u00a04,096",
  );
  const settings = [{ key: "type_kv", value: "q8_0" }];
  expect(testInSentence({ what: { ...what, depth: 0 }, settings })).toBe(
    "decode of 128\u00a0tokens, cache q8_0",
  );
});

test("what is not timed is said not to be counted", () => {
  expect(stageName("warmup", false)).toContain("not counted");
  expect(stageName("depth", false)).toContain("not counted");
});

test("a falling speed falls by a positive share", () => {
  expect(warningWords({ warning: "trend", relative: -0.05 }).sentence).toContain(
    "fell by 5.0\u00a0%",
  );
});
