import type { PlannedRow } from "$lib/backend/bindings";
import { rowWords, settingsWords, testWords } from "./measuring";

/** A test in a sentence: `prefill of 512 tokens`, `4 users, 128 + 32 tokens`. */
export function testInSentence({ what, settings }: Pick<PlannedRow, "what" | "settings">): string {
  const more = settings.length === 0 ? "" : `, ${settingsWords(settings)}`;
  if (what.kind === "speed") {
    return `${what.phase} of ${testWords(what.tokens, what.depth)}${more}`;
  }
  const { name, rest } = rowWords(what);
  return `${name.toLowerCase()}, ${rest}${more}`;
}

/** The name of a stage before the samples. */
export function stageName(
  what: "loading" | "warmup" | "depth" | "text",
  restored: boolean,
): string {
  switch (what) {
    case "loading":
      return "Load";
    case "warmup":
      return "Warm-up, not counted";
    case "text":
      return "Reading the text";
    case "depth":
      return restored ? "Depth, kept from before" : "Depth, not counted";
  }
}

interface FailureWords {
  /** For the row, behind "failed: ". */
  name: string;
  /** What to do next that the failure's own sentence does not say; `null` = it says all. */
  advice: string | null;
}

const AGAIN = "Measure again; if it fails again, reinstall Twospeed.";

/** By the engine's and the plan's keys of failures, which may not change. */
const FAILURES: Partial<Record<string, FailureWords>> = {
  engine_illegal_instruction: {
    name: "instruction refused",
    advice: "Measure again: Twospeed leaves this build of the engine aside from now on.",
  },
  engine_crashed: {
    name: "engine crashed",
    advice: "Measure another file. If that works, this file is the cause: get it anew.",
  },
  engine_file_fault: { name: "file not readable", advice: "Copy or download the file again." },
  engine_check_failed: {
    name: "engine gave up",
    advice: "The lines below are the engine's own. Its other tests may still work.",
  },
  engine_out_of_memory: {
    name: "out of memory",
    advice: "Models shows which quantizations fit into the memory that is free now.",
  },
  engine_killed: {
    name: "engine killed",
    advice: "Models shows which quantizations fit into the memory that is free now.",
  },
  engine_ended_by_signal: { name: "engine ended", advice: null },
  engine_exited: { name: "engine left", advice: null },
  engine_failed: { name: "engine failed", advice: null },
  engine_stopped: { name: "engine stopped", advice: "Measure again when you like." },
  engine_protocol: { name: "engine fell silent", advice: null },
  engine_ended: { name: "engine ended", advice: null },
  engine_missing: { name: "no engine", advice: null },
  engine_not_runnable: { name: "engine does not start", advice: null },
  engine_version: { name: "wrong engine", advice: null },
  engine_silent: { name: "engine silent", advice: null },
  too_little_memory: {
    name: "too little memory",
    advice: "Models shows which quantizations fit into the memory that is free now.",
  },
  not_able: {
    name: "not able to",
    advice: "Own values measure prefill alone: leave the answer empty.",
  },
  file_unreadable: { name: "file not readable", advice: "Models shows where the file should be." },
  model_refused: {
    name: "model refused",
    advice: "Get the file anew, or choose another quantization.",
  },
  context_refused: {
    name: "context refused",
    advice: "Try a smaller depth in own values, or a smaller quantization.",
  },
  context_too_small: { name: "context too small", advice: "Try a smaller depth in own values." },
  bad_setting: { name: "setting refused", advice: null },
  decode_failed: { name: "engine failed", advice: AGAIN },
  nothing_loaded: { name: "engine failed", advice: AGAIN },
  internal: { name: "engine failed", advice: AGAIN },
  not_stored: {
    name: "not stored",
    advice: "Settings names the data folder: see that it can be written and the disk has room.",
  },
};

/** Words for a failure by its key; one that is not known is a failure all the same. */
export function failureWords(code: string): FailureWords {
  return (
    (Object.hasOwn(FAILURES, code) ? FAILURES[code] : undefined) ?? { name: "failed", advice: null }
  );
}
