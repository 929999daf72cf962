import type { PhaseName, Statement, WaitPartName } from "$lib/backend/bindings";
import {
  bytes,
  bytesPerSecond,
  duration,
  milliseconds,
  nbsp,
  percent,
  significant,
  speed,
  speedWithUnit,
  times,
  whole,
} from "$lib/format";
import { explainedWords } from "./explained";

/** A part of a bar that says where time goes. */
export interface Part {
  name: string;
  colour: "prefill" | "decode" | "half" | "rest" | "none";
  /** From 0 to 1. */
  share: number;
  /** To show. */
  value: string;
}

/** A statement in words, led by its number. */
export interface StatementWords {
  /** The number, or what stands where there is none. */
  number: string;
  /** The number belongs to one of the two speeds. */
  phase: PhaseName | null;
  /** What the number says. */
  sentence: string;
  /** What to do, where something is to be done. */
  advice: string | null;
  /** What a bar below it shows; empty = no bar. */
  parts: Part[];
  /** What it rests on, where that is more than what was measured and the model's file. */
  basis: string | null;
}

const TOO_LOW = "The ceiling stands on a read speed that is too low: measure it again in Settings.";

/** The words of a statement. */
export function statementWords(statement: Statement): StatementWords {
  switch (statement.statement) {
    case "ratio":
      return ratio(statement);
    case "ceiling_share":
      return ceilingShare(statement);
    case "no_ceiling":
      return {
        number: "No ceiling",
        phase: null,
        sentence:
          "is known here, since the read speed of the machine was not measured. It says how fast decode could be at most.",
        advice: "For this machine, measure it in Settings.",
        parts: [],
        basis: null,
      };
    case "token_time":
      return tokenTime(statement);
    case "against":
      return against(statement);
    case "request":
      return request(statement);
    case "depth_loss":
      return depthLoss(statement);
    case "depth_cost":
      return {
        ...plain,
        number: milliseconds(statement.ms_per_thousand),
        phase: "decode",
        sentence: `more for each token is what every 1,000 tokens in the cache cost: the cache is read for every token that is written. A token takes ${milliseconds(statement.token_ms)} at first.`,
      };
    case "users_together":
      return usersTogether(statement);
    case "users_each":
      return {
        ...plain,
        number: percent(statement.share),
        phase: "decode",
        sentence: `of its speed is left to each of ${whole(statement.users)} users: ${speed(statement.each)} instead of ${speedWithUnit(statement.before)}.`,
      };
    case "users_wait":
      return {
        ...plain,
        number: wait(statement.worst_ms),
        sentence: `is what the last of ${whole(statement.users)} users waits for a first token when all ask at once; half of them wait no longer than ${wait(statement.median_ms)}.`,
      };
    case "wait_parts":
      return waitParts(statement);
    case "reuse":
      return reuse(statement);
    case "cold_start":
      return {
        ...plain,
        number: wait(Math.abs(statement.cold_ms - statement.warm_ms)),
        sentence: `${statement.cold_ms >= statement.warm_ms ? "more" : "less"} is what a start takes when the file is not in the page cache: ${wait(statement.cold_ms)} against ${wait(statement.warm_ms)}.`,
      };
    case "quality_cost":
      return qualityCost(statement);
    case "divergence":
      return {
        ...plain,
        number: percent(statement.same_top),
        sentence: `of the tokens have the same most likely prediction as with the base model; the divergence is ${significant(statement.nats)}${nbsp}nats.`,
      };
    case "held":
      return held(statement);
    case "explained":
      return explainedWords(statement.says, statement.rests);
    case "machine_course":
      return machineCourse(statement);
  }
}

type Of<S extends Statement["statement"]> = Extract<Statement, { statement: S }>;

const plain = { phase: null, advice: null, parts: [], basis: null };

function ratio({ prefill, decode, ratio }: Of<"ratio">): StatementWords {
  const speeds = `as fast as decode is prefill: ${speed(prefill)} against ${speedWithUnit(decode)}.`;
  const sentence = ratio >= 1 ? speeds : `${speeds} It is usually the faster one.`;
  return { ...plain, number: times(ratio), sentence };
}

function ceilingShare(said: Of<"ceiling_share">): StatementWords {
  const { decode, ceiling, share } = said;
  const why = `Each token reads ${bytes(said.weight_bytes)} of weights, at ${bytesPerSecond(said.read_bytes_s)}.`;
  const above = share > 1;
  return {
    number: percent(share),
    phase: "decode",
    sentence: above
      ? `of the ceiling, which cannot be: decode reached ${speedWithUnit(decode)}, more than the ${speed(ceiling)} it stands at.`
      : `of the ceiling is what decode reached: ${speed(decode)} of a possible ${speedWithUnit(ceiling)}. ${why}`,
    advice: above ? TOO_LOW : null,
    parts: [],
    basis: null,
  };
}

function tokenTime({ token_ms, weights_ms }: Of<"token_time">): StatementWords {
  const share = weights_ms / token_ms;
  const said = { number: milliseconds(token_ms), phase: "decode" as const };
  if (!(share <= 1)) {
    return {
      ...said,
      sentence: `is what a token takes, less than the ${milliseconds(weights_ms)} that reading its weights would take.`,
      advice: TOO_LOW,
      parts: [],
      basis: null,
    };
  }
  const rest = token_ms - weights_ms;
  return {
    ...said,
    sentence: `is what a token takes: at least ${percent(share)} of it is reading weights. The rest is the cache, the arithmetic and waiting.`,
    advice: null,
    parts: [
      { name: "Weights", colour: "decode", share, value: milliseconds(weights_ms) },
      { name: "Rest", colour: "rest", share: 1 - share, value: milliseconds(rest) },
    ],
    basis: null,
  };
}

/** Files whose sizes differ by less are nearly the same size. */
const SAME_SIZE = 0.07;

function against(said: Of<"against">): StatementWords {
  const { phase } = said;
  if (said.within_noise) {
    return {
      ...plain,
      number: times(said.ratio),
      phase,
      sentence: `the ${phase} speed of ${said.other} is what ${said.this} reaches: no difference that these samples can show.`,
      advice: "More samples would show a smaller one.",
    };
  }
  // The faster one comes first, whichever is explained.
  const turned = said.ratio < 1;
  const [fast, slow] = turned ? [said.other, said.this] : [said.this, said.other];
  const factor = turned ? 1 / said.ratio : said.ratio;
  const size = turned ? 1 / said.size_ratio : said.size_ratio;
  return {
    ...plain,
    number: times(factor),
    phase,
    sentence: `the ${phase} speed of ${slow} is what ${fast} reaches${sizes(size)}.`,
  };
}

/** The size of the faster one's file beside the other's. */
function sizes(ratio: number): string {
  if (!Number.isFinite(ratio) || ratio <= 0) return "";
  if (Math.abs(ratio - 1) < SAME_SIZE) return ", although the files are nearly the same size";
  const written = times(ratio);
  return ratio > 1
    ? `, although its file is ${written} the size`
    : `; its file is ${written} the size`;
}

function request(said: Of<"request">): StatementWords {
  const all = said.prefill_s + said.decode_s;
  const part = (name: string, colour: PhaseName, seconds: number): Part => ({
    name,
    colour,
    share: all > 0 ? seconds / all : 0,
    value: duration(seconds),
  });
  return {
    ...plain,
    number: duration(all),
    sentence: `for a prompt of ${whole(said.prompt)} tokens and an answer of ${whole(said.answer)}, if both speeds hold for these lengths.`,
    parts: [part("Prefill", "prefill", said.prefill_s), part("Decode", "decode", said.decode_s)],
  };
}

/** Milliseconds as they read best: `21 ms`, `2.0 s`. */
function wait(ms: number): string {
  return ms >= 999.5 ? duration(ms / 1000) : milliseconds(ms);
}

function depthLoss(said: Of<"depth_loss">): StatementWords {
  const { phase, depth, first, last, lost } = said;
  const speeds = `${speed(first)} with the shallowest cache, ${speedWithUnit(last)} at a depth of ${whole(depth)} tokens`;
  if (said.within_noise) {
    return {
      ...plain,
      number: times(last / first),
      phase,
      sentence: `the ${phase} speed is left, no difference that these samples can show: ${speeds}.`,
    };
  }
  const moved = lost >= 0 ? "lost" : "gained";
  return {
    ...plain,
    number: percent(Math.abs(lost)),
    phase,
    sentence: `of the ${phase} speed is ${moved}: ${speeds}.`,
  };
}

function usersTogether(said: Of<"users_together">): StatementWords {
  const before = said.fewest === 1 ? "one" : `${whole(said.fewest)} users`;
  return {
    ...plain,
    number: times(said.ratio),
    phase: "decode",
    sentence: `the speed of ${before} is what ${whole(said.users)} users reach together: ${speed(said.together)} instead of ${speedWithUnit(said.before)}. The weights are read once for all of them.`,
  };
}

const waitNames: Record<WaitPartName, string> = {
  load: "Loading",
  context: "Context",
  tokenize: "Tokenizing",
  prefill: "Prefill",
  first_sample: "First sample",
};

function waitParts({ total_ms, parts }: Of<"wait_parts">): StatementWords {
  const largest = parts.reduce<(typeof parts)[number] | null>(
    (most, part) => (most === null || part.ms > most.ms ? part : most),
    null,
  );
  const most =
    largest && total_ms > 0
      ? `, ${percent(largest.ms / total_ms)} of it ${waitNames[largest.part].toLowerCase()}`
      : "";
  return {
    ...plain,
    number: wait(total_ms),
    sentence: `passes until the first token${most}.`,
    parts: parts.map((part) => ({
      name: waitNames[part.part],
      colour: part.part === "prefill" ? "prefill" : "rest",
      share: total_ms > 0 ? part.ms / total_ms : 0,
      value: wait(part.ms),
    })),
  };
}

function reuse(said: Of<"reuse">): StatementWords {
  const { reused, prompt } = said;
  if (reused === 0) {
    return {
      ...plain,
      number: `0${nbsp}tokens`,
      phase: "prefill",
      sentence: `of a repeated prompt of ${whole(prompt)} were taken from the cache: this model’s memory cannot drop its end, so all is read again.`,
    };
  }
  return {
    ...plain,
    number: `${whole(reused)} of ${whole(prompt)}`,
    phase: "prefill",
    sentence: `tokens of a repeated prompt are taken from the cache: the first token comes after ${wait(said.again_ms)} instead of ${wait(said.new_ms)}.`,
  };
}

function qualityCost(said: Of<"quality_cost">): StatementWords {
  const more = said.perplexity_more;
  const higher = more >= 0 ? "higher" : "lower";
  const speeds =
    said.decode_ratio === null
      ? ""
      : said.decode_ratio >= 1
        ? `, for ${times(said.decode_ratio)} its decode speed`
        : `, at ${times(said.decode_ratio)} its decode speed`;
  return {
    ...plain,
    number: percent(Math.abs(more)),
    sentence: `${higher} is the perplexity of ${said.this} than that of ${said.other}${speeds}: it is ${said.perplexity.toFixed(2)}, and lower is better.`,
  };
}

function held(said: Of<"held">): StatementWords {
  return {
    ...plain,
    number: percent(said.share),
    phase: said.phase,
    sentence: `of its first ${said.phase} speed is what the machine holds after ${duration(said.seconds)}: ${speed(said.first)}, then ${speedWithUnit(said.last)}.`,
  };
}

function machineCourse({ clock_ghz, hottest_c }: Of<"machine_course">): StatementWords {
  const heat = hottest_c === null ? null : `${whole(hottest_c)}${nbsp}°C`;
  if (clock_ghz === null) {
    return {
      ...plain,
      number: heat ?? "Not readable",
      sentence: "is the highest temperature meanwhile; the clock cannot be read here.",
    };
  }
  const [first, last] = clock_ghz;
  const hot = heat === null ? "the temperature cannot be read here" : `at most ${heat}`;
  return {
    ...plain,
    number: `${last.toFixed(2)}${nbsp}GHz`,
    sentence: `is the clock in the end, ${first.toFixed(2)}${nbsp}GHz at first; ${hot}.`,
  };
}
