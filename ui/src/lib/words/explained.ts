// What the estimator says, in words: each statement is led by its number.

import type {
  ExpectedReason,
  ExplainedPart,
  GapPart,
  Portion,
  Rests,
  Says,
} from "$lib/backend/bindings";
import {
  bytes,
  bytesPerSecond,
  count,
  flopsPerSecond,
  milliseconds,
  nbsp,
  parameters,
  percent,
  significant,
  speed,
  speedWithUnit,
  times,
  whole,
} from "$lib/format";
import type { Part, StatementWords } from "./statements";

const plain = { phase: null, advice: null, parts: [] };

type Worded = Omit<StatementWords, "basis">;
type Of<S extends Says["says"]> = Extract<Says, { says: S }>;

/** What a statement rests on, where that is more than the model's file. */
export function restsWords(rests: Rests): string | null {
  switch (rests.rests) {
    case "file":
      return null;
    case "calibrated":
      return "Calibrated";
    case "corrected":
      return `Corrected by ${count(rests.runs, "run")}`;
    case "published":
      return "Published figures only";
  }
}

/** The words of what the estimator says. */
export function explainedWords(says: Says, rests: Rests): StatementWords {
  return { ...worded(says), basis: restsWords(rests) };
}

function worded(says: Says): Worded {
  switch (says.says) {
    case "token_time":
      return tokenTime(says);
    case "gap":
      return gap(says);
    case "unpacking":
      return {
        ...plain,
        number: milliseconds(says.ms),
        phase: "decode",
        sentence: `of a token go into matrices of type ${says.tensor_type}: they come at ${bytesPerSecond(says.rate_bytes_s)}, where memory is read at ${bytesPerSecond(says.read_bytes_s)}. Unpacking this type takes longer than reading it.`,
      };
    case "judged":
      return judged(says);
    case "threads":
      return {
        ...plain,
        number: count(says.ran, "thread"),
        sentence: `ran, and what is expected here holds for ${count(says.calibrated, "thread")}.`,
        advice: "Measure with as many, or set the threads in Settings and calibrate.",
      };
    case "rates":
      return rates(says);
    case "kv_growth":
      return kvGrowth(says);
    case "experts":
      return experts(says);
    case "sliding_window":
      return slidingWindow(says);
    case "cache_resident":
      return {
        ...plain,
        number: bytes(says.working_set_bytes),
        sentence: `is all that a token reads, and the last-level cache holds ${bytes(says.cache_bytes)}: after the first token, memory is not what limits this model.`,
      };
    case "fallen_back":
      return {
        ...plain,
        number: `${says.bits.toFixed(1)}${nbsp}bits`,
        sentence: `for each weight is what this ${says.label} takes, not the ${significant(says.label_bits)} of its type: ${percent(says.share)} of the file lies in rows that are no multiple of 256 numbers, and is ${list(says.types)} instead.`,
      };
  }
}

/** The portions in the order of a bar, with the colour of what they are. */
const portions: Record<Portion, { name: string; inText: string; colour: Part["colour"] }> = {
  weights: { name: "Weights", inText: "reading weights", colour: "decode" },
  experts: { name: "Experts", inText: "reading experts", colour: "decode" },
  output: { name: "Output matrix", inText: "the output matrix", colour: "decode" },
  attention: { name: "KV cache", inText: "the KV cache", colour: "half" },
  state: { name: "State", inText: "recurrent state", colour: "half" },
  layers: { name: "Fixed work of layers", inText: "fixed work in the layers", colour: "rest" },
  step: { name: "Starting a step", inText: "starting a step", colour: "rest" },
};
const order = Object.keys(portions) as Portion[];

/** Of a token's time, what is less is told as one part. */
const SMALL = 0.02;
/** What is less is not worth a word in a sentence. */
const WORTH_A_WORD = 0.05;

function tokenTime({ total_ms, weights_share, parts }: Of<"token_time">): Worded {
  const beside = parts
    .filter(({ portion, share }) => portions[portion].colour !== "decode" && share >= WORTH_A_WORD)
    .map(({ portion, share }) => `${percent(share)} ${portions[portion].inText}`);
  const also = beside.length > 0 ? `, ${list(beside)}` : "";
  return {
    ...plain,
    number: percent(weights_share),
    phase: "decode",
    sentence: `of each token’s ${milliseconds(total_ms)} is reading weights${also}.`,
    parts: timeParts(parts),
  };
}

function timeParts(parts: readonly ExplainedPart[]): Part[] {
  const large = parts.filter(({ share }) => share >= SMALL);
  const small = parts.filter(({ share }) => share < SMALL);
  const shown = byOrder(large).map(({ portion, ms, share }): Part => {
    const { name, colour } = portions[portion];
    return { name, colour, share, value: milliseconds(ms) };
  });
  const sum = (of: (part: ExplainedPart) => number): number =>
    small.reduce((all, part) => all + of(part), 0);
  const ms = sum((part) => part.ms);
  if (ms > 0)
    shown.push({
      name: "Rest",
      colour: "rest",
      share: sum((part) => part.share),
      value: milliseconds(ms),
    });
  return shown;
}

function byOrder<P extends { portion: Portion }>(parts: readonly P[]): P[] {
  return [...parts].sort((a, b) => order.indexOf(a.portion) - order.indexOf(b.portion));
}

function gap(said: Of<"gap">): Worded {
  const reached = said.is_measured ? "is what decode reached" : "is expected of decode";
  return {
    ...plain,
    number: percent(said.share),
    phase: "decode",
    sentence: `of the ceiling ${reached}: ${speed(said.decode)} of a possible ${speedWithUnit(said.ceiling)}. Each token takes ${milliseconds(said.gap_ms)} more than reading its weights at full speed would.`,
    parts: gapParts(said),
  };
}

function gapParts({ parts, gap_ms, rest_ms }: Of<"gap">): Part[] {
  const share = (ms: number): number => (gap_ms > 0 ? Math.max(0, ms) / gap_ms : 0);
  const shown = byOrder(parts).map(({ portion, ms }: GapPart): Part => {
    const { name, colour } = portions[portion];
    const slower = ms >= 0 ? "Weights, slower" : "Weights, faster";
    return {
      name: portion === "weights" ? slower : name,
      colour,
      share: share(ms),
      value: signed(ms),
    };
  });
  // Under a hundredth of the gap the model explains it all.
  if (Math.abs(rest_ms) >= gap_ms / 100)
    shown.push({
      name: rest_ms > 0 ? "Not explained" : "Faster than expected",
      colour: "none",
      share: share(rest_ms),
      value: signed(rest_ms),
    });
  return fitted(shown);
}

/** Where a part is negative, the others are more than the whole: they share the bar. */
function fitted(parts: Part[]): Part[] {
  const all = parts.reduce((sum, part) => sum + part.share, 0);
  return all > 1 ? parts.map((part) => ({ ...part, share: part.share / all })) : parts;
}

function signed(ms: number): string {
  return ms < 0 ? `−${milliseconds(-ms)}` : milliseconds(ms);
}

function judged(said: Of<"judged">): Worded {
  const { phase, verdict, ratio } = said;
  const band = `${speed(said.low)} to ${speedWithUnit(said.high)}`;
  if (verdict === "within") {
    return {
      ...plain,
      number: percent(ratio),
      phase,
      sentence: `of the expected ${phase} speed, which is as expected: ${speed(said.measured)} where ${band} were.`,
    };
  }
  const reasons = said.reasons.map(reasonWords);
  const why = reasons.length > 0 ? reasons.join(" ") : "Nothing that is known explains it.";
  const disturbed = said.reasons.some((each) => each.reason === "disturbed");
  return {
    ...plain,
    number: percent(Math.abs(ratio - 1)),
    phase,
    sentence: `${verdict} than expected is ${phase}: ${speed(said.measured)} where ${band} were expected. ${why}`,
    advice: disturbed
      ? "Measure it again when nothing else is going on."
      : reasons.length === 0
        ? "Measure it again, or calibrate anew."
        : null,
  };
}

function reasonWords(reason: ExpectedReason): string {
  switch (reason.reason) {
    case "disturbed":
      return "The run was disturbed: its warnings say by what.";
    case "threads":
      return `It ran with ${count(reason.ran, "thread")}, the calibration with ${whole(reason.calibrated)}.`;
    case "variant":
      return `It ran on the CPU variant ${reason.ran}, the calibration on ${reason.calibrated}.`;
    case "build":
      return `It ran with llama.cpp ${String(reason.ran)}, the calibration with ${String(reason.calibrated)}.`;
    case "resembling":
      return `${percent(reason.share)} of the expected time is taken over from operations that only resemble those of this model.`;
    case "published":
      return "Only published figures of this device are known.";
  }
}

function rates(said: Of<"rates">): Worded {
  const { reads_faster: reads, writes_faster: writes } = said;
  const is = said.is_measured ? "is what" : "is expected of";
  const reaches = said.is_measured ? ` ${reads.label} reaches` : ` ${reads.label}`;
  return {
    ...plain,
    number: times(said.prefill_ratio),
    phase: "prefill",
    sentence: `the prefill of ${writes.label} ${is}${reaches}: prompts multiply ${reads.tensor_type} at ${flopsPerSecond(reads.flops_s)} here, ${writes.tensor_type} at ${flopsPerSecond(writes.flops_s)}. Decode goes by bytes, ${bytes(writes.weight_bytes)} against ${bytes(reads.weight_bytes)}: there ${writes.label} is ${times(said.decode_ratio)} as fast.`,
  };
}

function kvGrowth(said: Of<"kv_growth">): Worded {
  const depth =
    said.equal_depth === null
      ? `, more than the cache comes to within ${whole(said.most_context)} tokens`
      : `; from a depth of ${whole(said.equal_depth)} on, a token reads as much of the cache`;
  return {
    ...plain,
    number: bytes(said.bytes_per_token),
    sentence: `of cache for each token: ${bytes(said.kv_bytes)} at a context of ${whole(said.context)}, ${bytes(said.doubled_bytes)} at twice that. The weights that a token reads stay ${bytes(said.weight_bytes)}${depth}.`,
  };
}

function experts(said: Of<"experts">): Worded {
  const reads =
    said.weight_bytes === null
      ? ""
      : `, of which a written token reads ${bytes(said.weight_bytes)}`;
  const used = said.used
    ? ` It uses ${whole(said.used.used)} of ${whole(said.used.of)} experts; a prompt touches nearly all of them from ${whole(said.used.nearly_all_from)} tokens on.`
    : "";
  return {
    ...plain,
    number: `${parameters(said.active)} of ${parameters(said.parameters)}`,
    sentence: `parameters are used for a token. All of them take memory, ${bytes(said.file_bytes)}${reads}.${used}`,
  };
}

function slidingWindow({ layers, of, window, cells }: Of<"sliding_window">): Worded {
  const others = layers < of ? "only the others grow with the context" : "so none of them grows";
  return {
    ...plain,
    number: `${whole(layers)} of ${whole(of)}`,
    sentence: `layers look back ${whole(window)} tokens and keep ${whole(cells)} at most: ${others}.`,
  };
}

/** `a`, `a and b`, `a, b and c`. */
function list(parts: readonly string[]): string {
  if (parts.length < 2) return parts[0] ?? "";
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1) ?? ""}`;
}
