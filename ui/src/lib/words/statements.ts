import type { PhaseName, Statement } from "$lib/backend/bindings";
import {
  bytes,
  bytesPerSecond,
  duration,
  nbsp,
  percent,
  significant,
  speed,
  speedWithUnit,
  whole,
} from "$lib/format";

/** A part of a bar that says where time goes. */
export interface Part {
  name: string;
  colour: "prefill" | "decode" | "rest";
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
}

const TOO_LOW = "The ceiling stands on a read speed that is too low: measure it again in Settings.";

/** A factor: `2.0 ×`, `1.04 ×`, `14 ×`. Close to 1 it has a digit more, since 1.0 would say nothing. */
export function times(factor: number): string {
  const written =
    factor >= 9.95 ? whole(factor) : factor >= 1.095 ? factor.toFixed(1) : significant(factor);
  return `${written}${nbsp}×`;
}

/** Milliseconds: `0.84 ms`, `9.3 ms`, `20.4 ms`, `142 ms`. */
export function milliseconds(ms: number): string {
  if (ms >= 99.95) return `${whole(ms)}${nbsp}ms`;
  return `${ms >= 0.995 ? ms.toFixed(1) : significant(ms)}${nbsp}ms`;
}

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
      };
    case "token_time":
      return tokenTime(statement);
    case "against":
      return against(statement);
    case "request":
      return request(statement);
  }
}

type Of<S extends Statement["statement"]> = Extract<Statement, { statement: S }>;

const plain = { phase: null, advice: null, parts: [] };

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
