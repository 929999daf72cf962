import type {
  BothSpeeds,
  Doing,
  Found,
  PhaseName,
  PlanView,
  RowKind,
  Setting,
  Tests,
  TuneFor,
  Unit,
} from "$lib/backend/bindings";
import {
  count,
  nbsp,
  percent,
  significant,
  speed,
  speedWithUnit,
  spoken,
  whole,
} from "$lib/format";

/** The two speeds. */
export const phaseWords: Record<PhaseName, string> = { prefill: "Prefill", decode: "Decode" };

/** The presets: name, and what it is good for, in a line. */
export const presetWords: Record<Tests["preset"], { name: string; about: string }> = {
  quick: { name: "Quick", about: "both speeds, 3 samples of each" },
  article: { name: "Article", about: "both speeds, 5 samples, as llama-bench" },
  own: { name: "Own values", about: "your lengths, depths and settings" },
  context_curve: { name: "Context curve", about: "both speeds as the context fills" },
  long_document: { name: "Long document", about: "long prompts, and answers behind them" },
  first_token: { name: "First token", about: "load, tokenize, prefill, first decode" },
  prefix_cache: { name: "Prefix cache", about: "the same prompt again, and changed" },
  users: { name: "Users", about: "several answers at once" },
  face_off: { name: "Quantization face-off", about: "what a smaller file gains and costs" },
  tune: { name: "Tune", about: "finds the fastest settings by racing them" },
  roofline: { name: "Roofline", about: "one batch of 1 to 512 tokens, and decode" },
  offload: { name: "Offload", about: "both speeds with more and more layers on the GPU" },
  sustained: { name: "Sustained", about: "what the machine holds for long" },
};

/** Which speed a test measures; `null` where it is neither or both. */
export function phaseOf(what: RowKind): PhaseName | null {
  return what.kind === "speed" ? what.phase : null;
}

/** The colour of a test's figure: decode of people together is decode. */
export function colourOf(what: RowKind): PhaseName | null {
  return what.kind === "users" ? "decode" : phaseOf(what);
}

/** What a test measures: its name, and the rest of it. */
export function rowWords(what: RowKind): { name: string; rest: string } {
  switch (what.kind) {
    case "speed":
      return { name: phaseWords[what.phase], rest: testWords(what.tokens, what.depth) };
    case "both": {
      return { name: "Prompt and answer", rest: atDepth(lengths(what), what.depth) };
    }
    case "first_token": {
      const file = what.cold === null ? "" : what.cold ? ", file cold" : ", file warm";
      return { name: "First token", rest: `${whole(what.prompt)}-token prompt${file}` };
    }
    case "prefix_cache":
      return {
        name: "Prefix cache",
        rest: `${whole(what.prompt)}${nbsp}tokens, last ${whole(what.changed)} changed`,
      };
    case "users": {
      const more = [
        ...(what.shared_prompt ? ["one prompt"] : []),
        ...(what.split_kv ? ["split cache"] : []),
      ];
      return { name: count(what.users, "user"), rest: [lengths(what), ...more].join(", ") };
    }
    case "tune":
      return { name: "Tune", rest: tuneWords(what.target) };
    case "quality": {
      const tokens = what.tokens === null ? "whole text" : `${whole(what.tokens)}${nbsp}tokens`;
      return what.base === null
        ? { name: "Perplexity", rest: tokens }
        : { name: "Quality", rest: `against ${what.base}, ${tokens}` };
    }
  }
}

const settingNames: Partial<Record<string, string>> = {
  variant: "variant",
  load_mode: "load",
  repack: "repack",
  n_gpu_layers: "GPU layers",
  type_kv: "cache",
  flash_attn: "flash attention",
  n_batch: "batch",
  n_ubatch: "micro-batch",
  n_threads: "threads",
};

/** Settings in which tests differ: `cache q8_0, threads 2`. */
export function settingsWords(settings: readonly Setting[]): string {
  return settings
    .map(({ key, value }) => {
      const said = value === "true" ? "on" : value === "false" ? "off" : value;
      return `${settingNames[key] ?? key} ${said}`;
    })
    .join(", ");
}

/** A time that is foreseen, short: `40 s`, `3½ min`. */
export function foreseen(seconds: number): string {
  return spoken(seconds)
    .replace(/ seconds?$/, `${nbsp}s`)
    .replace(/ minutes?$/, `${nbsp}min`)
    .replace(/ hours?$/, `${nbsp}h`);
}

/** Time to a token, or a part of it: `0.2 ms`, `20 ms`, `1.31 s`, `12.4 s`. */
export function ttft(seconds: number): string {
  const ms = seconds * 1000;
  if (ms >= 99.5) return `${significant(seconds)}${nbsp}s`;
  return `${ms < 9.95 ? ms.toFixed(1) : ms.toFixed(0)}${nbsp}ms`;
}

/** Perplexity and its like: `18.42`. */
function fine(value: number): string {
  return value >= 100 ? significant(value) : value.toFixed(2);
}

/** A divergence: `0.041`. */
function nats(value: number): string {
  if (value === 0) return "0";
  return value < 0.0005 ? value.toExponential(1) : value.toFixed(3);
}

/** What tuning is for: `for 512 + 128 tokens`, `for decode`. */
function tuneWords(target: TuneFor): string {
  return target.tune === "mix" ? `for ${lengths(target)}` : `for ${target.tune}`;
}

/** Settings of a choice; none differ from the usual ones = those. */
export function choiceWords(settings: readonly Setting[]): string {
  return settings.length === 0 ? "the usual settings" : settingsWords(settings);
}

/** How much faster: `+12 %`; `none` where the usual settings stand. */
function gainWords(gain: number): string {
  return gain <= 1 ? "none" : `+${percent(gain - 1)}`;
}

/** Both speeds, as far as they matter: `prefill 350, decode 138 tok/s`. */
export function bothWords({ prefill, decode }: BothSpeeds): string {
  const parts = [
    ...(prefill === null ? [] : [`prefill ${speed(prefill)}`]),
    ...(decode === null ? [] : [`decode ${speed(decode)}`]),
  ];
  return parts.length === 0 ? "" : `${parts.join(", ")}${nbsp}tok/s`;
}

/** A main figure without its unit, as far as a table's head can name that. */
export function figure(value: number, unit: Unit): string {
  switch (unit) {
    case "tokens_per_second":
      return speed(value);
    case "seconds":
      return ttft(value);
    case "perplexity":
      return fine(value);
    case "divergence":
      return nats(value);
    case "gain":
      return gainWords(value);
  }
}

/** A main figure with its unit: `301 tok/s`, `1.31 s`, `perplexity 18.42`, `KL 0.041`. */
export function figureWithUnit(value: number | null, unit: Unit): string {
  if (value === null) return "not measured";
  switch (unit) {
    case "tokens_per_second":
      return speedWithUnit(value);
    case "seconds":
      return ttft(value);
    case "perplexity":
      return `perplexity ${fine(value)}`;
    case "divergence":
      return `KL ${nats(value)}`;
    case "gain":
      return value <= 1 ? "no gain" : gainWords(value);
  }
}

/** What a test found beside its main figure, a line; `null` = nothing. */
export function foundWords(found: Found): string | null {
  switch (found.found) {
    case "speed":
      return null;
    case "first_token": {
      const parts = [
        ...(found.load === null ? [] : [`load ${ttft(found.load)}`]),
        ...(found.context === null ? [] : [`context ${ttft(found.context)}`]),
        `tokenize ${ttft(found.tokenize)}`,
        `prefill ${ttft(found.prefill)}`,
        `sampling ${ttft(found.sample)}`,
      ];
      const next = found.decode === null ? "" : `; second token ${ttft(found.decode)} later`;
      const resident =
        found.resident === null ? "" : `; file in memory: ${percent(found.resident)}`;
      return `${parts.join(" + ")}${next}${resident}`;
    }
    case "prefix_cache": {
      const names = ["cold", "again", "changed tail"];
      return found.requests
        .map((request, at) => {
          const { reused, shared, prompt } = request;
          const held = reused === 0 ? "" : ` (${whole(reused)} of ${whole(prompt)} reused)`;
          // The last token is always computed: its logits are needed.
          const lost = reused + 1 < shared ? ", this memory cannot drop a tail" : "";
          return `${names[at] ?? "then"} ${ttft(request.ttft)}${held}${lost}`;
        })
        .join("; ");
    }
    case "users":
      return [
        `${speedWithUnit(found.each)} each`,
        `first token after ${ttft(found.median)}, the last to wait ${ttft(found.worst)}`,
        `prefill ${speedWithUnit(found.prefill)} together`,
      ].join("; ");
    case "tuned": {
      const usual = bothWords(found.usual);
      if (found.speeds === null) return `nothing is faster beyond doubt than the usual ${usual}`;
      const sure =
        found.gain_low === null ? "" : `; at least ${gainWords(found.gain_low)} in pairs`;
      return `${choiceWords(found.choice)}: ${bothWords(found.speeds)}, usually ${usual}${sure}`;
    }
    case "quality": {
      const own = `perplexity ${fine(found.perplexity)}${nbsp}±${nbsp}${fine(found.error)}`;
      if (found.base === null) return own;
      const { perplexity, divergence, error, same_top } = found.base;
      return `KL ${nats(divergence)}${nbsp}±${nbsp}${nats(error)}; ${own}, the base's ${fine(perplexity)}; ${percent(same_top)} of predictions the same`;
    }
  }
}

type Often = Pick<PlanView, "repetitions" | "until" | "order">;

/** How many samples a plan makes: `5 samples a test`, `samples until ± 2 %`. */
export function oftenWords(plan: Often): string {
  if (plan.order.order === "sustained") return "in turn until the time is up";
  if (plan.until) return `samples until ±${nbsp}${percent(plan.until.relative)}`;
  const turn = plan.order.order === "interleaved" ? ", in turn" : "";
  return `${count(plan.repetitions, "sample")} a${nbsp}test${turn}`;
}

/** Which sample: `sample 4 of 5`, `sample 7, ± 2.4 % (target 2 %)`. */
export function sampleWords(number: number, plan: Often, within: number | null): string {
  if (plan.until) {
    const now = within === null ? "" : `, ±${nbsp}${percent(within)}`;
    return `sample ${number}${now} (target ${percent(plan.until.relative)})`;
  }
  return plan.order.order === "sustained"
    ? `sample ${whole(number)}`
    : `sample ${number} of ${plan.repetitions}`;
}

/** What a test does, for its row. */
export function doingWords(doing: Doing, plan: Often, within: number | null): string {
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
      return sampleWords(doing.number, plan, within);
  }
}

/** `128 + 32 tokens`. */
function lengths({ prompt, generate }: { prompt: number; generate: number }): string {
  return [whole(prompt), "+", whole(generate), "tokens"].join(nbsp);
}

/** What a test measures: `512 tokens`, `128 tokens at depth 4,096`. */
export function testWords(tokens: number, depth: number): string {
  return atDepth(count(tokens, "token"), depth);
}

function atDepth(length: string, depth: number): string {
  return depth === 0 ? length : `${length} at depth${nbsp}${whole(depth)}`;
}
