/** Plans of the fake backend: the rows of a request, and what a script's model does with each. */
import type {
  Found,
  Hindrance,
  PhaseName,
  PlannedRow,
  PlanRequest,
  PlanView,
  RowKind,
  RowOrder,
  Setting,
  Sweep,
  Tests,
  Unit,
} from "../bindings";

/** A row of Models as far as a plan asks for it. */
export interface Plannable {
  id: string;
  name: string;
  quantization: string;
  /** Tokens per second that the script gives, with an empty cache. */
  prefill: number;
  decode: number;
  ceiling: number | null;
  /** Why it cannot be measured. */
  hindrance: string | null;
  /** It was measured before, so that its time is known. */
  known: boolean;
}

/** Seconds between two tests. */
const BETWEEN_S = 0.1;
/** Seconds of a load, and of making a context. */
const LOAD_S = 0.6;
const CONTEXT_S = 0.02;
/** Tokens that a model of the scripts was made for. */
const CONTEXT = 8192;

/** A row of Models made up from its name, always the same: for rows that the fake knows no more of. */
export function plannable(id: string, name: string, quantization: string): Plannable {
  const seed = [...`${name} ${quantization}`].reduce(
    (hash, letter) => (hash * 31 + (letter.codePointAt(0) ?? 0)) % 9973,
    7,
  );
  const decode = 8 + (seed % 130);
  const prefill = decode * (3 + (seed % 5));
  return {
    id,
    name,
    quantization,
    prefill,
    decode,
    ceiling: decode * 1.18,
    hindrance: null,
    known: true,
  };
}

function speed(phase: PhaseName, tokens: number, depth: number): RowKind {
  return { kind: "speed", phase, tokens, depth };
}

const bothSpeeds = [speed("prefill", 512, 0), speed("decode", 128, 0)];

interface Shapes {
  kinds: RowKind[];
  repetitions: number;
  settings?: Setting[][];
  order?: RowOrder;
  until?: PlanView["until"];
}

function shapesOf(tests: Tests): Shapes {
  switch (tests.preset) {
    case "quick":
      return { kinds: bothSpeeds, repetitions: 3 };
    case "article":
      return { kinds: bothSpeeds, repetitions: 5 };
    case "tune":
      return { kinds: [{ kind: "tune", target: tests.target }], repetitions: 1 };
    case "context_curve": {
      const depths = [0, 512, 1024, 2048, 4096, CONTEXT - 512];
      const kinds = depths
        .filter((depth) => depth <= (tests.deepest ?? CONTEXT))
        .flatMap((depth) => [speed("prefill", 512, depth), speed("decode", 128, depth)]);
      return { kinds, repetitions: 3 };
    }
    case "long_document":
      return {
        kinds: [
          speed("prefill", 4096, 0),
          speed("decode", 128, 4096),
          { kind: "first_token", prompt: 4096, cold: false },
        ],
        repetitions: 3,
      };
    case "users": {
      const { prompt, generate, split_kv, shared_prompt } = tests;
      return {
        kinds: tests.users.map((users) => ({
          kind: "users",
          users,
          prompt,
          generate,
          split_kv,
          shared_prompt,
        })),
        repetitions: 3,
      };
    }
    case "face_off": {
      const judged: RowKind = { kind: "quality", tokens: 8192, chunk: 512, base: "F16" };
      return { kinds: tests.quality ? [...bothSpeeds, judged] : bothSpeeds, repetitions: 5 };
    }
    case "first_token": {
      const { prompt, cache } = tests;
      const cold = cache === "each" ? [true, false] : [cache === "cold"];
      return {
        kinds: cold.map((cold) => ({ kind: "first_token", prompt, cold })),
        repetitions: 3,
      };
    }
    case "prefix_cache": {
      const { prompt, changed } = tests;
      return { kinds: [{ kind: "prefix_cache", prompt, changed }], repetitions: 3 };
    }
    case "roofline": {
      const batches = Array.from({ length: 10 }, (_, power) => speed("prefill", 2 ** power, 0));
      return { kinds: [...batches, speed("decode", 32, 0)], repetitions: 3 };
    }
    case "sustained":
      return {
        kinds: bothSpeeds,
        repetitions: 1,
        order: { order: "sustained", seconds: tests.minutes * 60 },
      };
    case "offload":
      return {
        kinds: bothSpeeds,
        repetitions: 3,
        settings: ["0", "8", "16", "24", "32"].map((value) => [{ key: "n_gpu_layers", value }]),
      };
    case "own": {
      const depths = tests.depth.length === 0 ? [0] : tests.depth;
      const kinds = depths.flatMap((depth) => [
        ...tests.prompt.map((tokens) => speed("prefill", tokens, depth)),
        ...tests.generate.map((tokens) => speed("decode", tokens, depth)),
      ]);
      return {
        kinds,
        repetitions: tests.repetitions,
        settings: settingsOf(tests.sweep),
        order: { order: tests.interleaved ? "interleaved" : "one_by_one" },
        until: tests.until === null ? null : { relative: tests.until / 100, at_most: 50 },
      };
    }
  }
}

/** Every combination; what has one value differs from nothing and is not said. */
function settingsOf(sweep: Sweep): Setting[][] {
  const lists: [string, readonly (string | number | boolean)[]][] = [
    ["variant", sweep.variant],
    ["load_mode", sweep.load_mode],
    ["repack", sweep.repack],
    ["type_kv", sweep.cache],
    ["flash_attn", sweep.flash_attention],
    ["n_batch", sweep.batch],
    ["n_ubatch", sweep.micro_batch],
    ["n_threads", sweep.threads],
  ];
  return lists
    .filter(([, values]) => values.length > 1)
    .reduce<Setting[][]>(
      (all, [key, values]) =>
        all.flatMap((settings) =>
          values.map((value) => [...settings, { key, value: String(value) }]),
        ),
      [[]],
    );
}

function unitOf(what: RowKind): Unit {
  switch (what.kind) {
    case "first_token":
    case "prefix_cache":
      return "seconds";
    case "quality":
      return what.base === null ? "perplexity" : "divergence";
    case "tune":
      return "gain";
    default:
      return "tokens_per_second";
  }
}

/** What one sample of the script's model finds. */
export interface Made {
  value: number;
  found: Found;
  seconds: number;
}

/** A sample without any noise. */
export function sampleOf(model: Plannable, what: RowKind): Made {
  const { prefill, decode } = model;
  const none: Found = { found: "speed" };
  switch (what.kind) {
    case "speed": {
      // Decode loses more with the depth, as it reads the cache for each token.
      const empty = what.phase === "prefill" ? prefill : decode;
      const value = empty / (1 + what.depth / 8192);
      return { value, found: none, seconds: what.tokens / value };
    }
    case "both": {
      const seconds = what.prompt / prefill + what.generate / decode;
      return { value: (what.prompt + what.generate) / seconds, found: none, seconds };
    }
    case "first_token": {
      const load = what.cold === true ? LOAD_S : LOAD_S / 10;
      const read = what.prompt / prefill;
      const value = load + CONTEXT_S + 0.001 + read + 0.0002;
      const found: Found = {
        found: "first_token",
        load,
        context: CONTEXT_S,
        resident: what.cold === true ? 0 : 1,
        tokenize: 0.001,
        prefill: read,
        sample: 0.0002,
        decode: 1 / decode,
      };
      return { value, found, seconds: value + 7 / decode };
    }
    case "prefix_cache": {
      const { prompt, changed } = what;
      const request = (computed: number, shared: number): Served => ({
        ttft: computed / prefill + 0.002,
        prompt,
        reused: prompt - computed,
        shared,
      });
      const requests = [request(prompt, 0), request(1, prompt), request(changed, prompt - changed)];
      const seconds = requests.reduce((sum, { ttft }) => sum + ttft, 0);
      return { value: requests[1]?.ttft ?? 0, found: { found: "prefix_cache", requests }, seconds };
    }
    case "users": {
      const { users, prompt, generate } = what;
      const each = decode / (0.9 + 0.1 * users);
      const one = prompt / prefill;
      const found: Found = {
        found: "users",
        prefill,
        each,
        median: (one * (users + 1)) / 2,
        worst: one * users,
      };
      return { value: each * users, found, seconds: one * users + generate / each };
    }
    case "tune": {
      const usual = { prefill, decode };
      const found: Found = {
        found: "tuned",
        choice: [
          { key: "n_threads", value: "2" },
          { key: "n_ubatch", value: "1024" },
        ],
        gain_low: 1.09,
        usual,
        speeds: { prefill: prefill * 1.15, decode: decode * 1.1 },
      };
      return { value: 1.12, found, seconds: 90 };
    }
    case "quality": {
      const own = { perplexity: 18.42, error: 0.31 };
      const base = { perplexity: 17.9, divergence: 0.041, error: 0.001, same_top: 0.91 };
      const against = what.base === null ? null : base;
      const found: Found = { found: "quality", ...own, base: against };
      const seconds = (2 * (what.tokens ?? 32_768)) / prefill;
      return { value: against?.divergence ?? own.perplexity, found, seconds };
    }
  }
}

type Served = Extract<Found, { found: "prefix_cache" }>["requests"][number];

/** Mean and deviation of main figures. */
export function speedsOf(values: readonly number[]): {
  mean: number | null;
  deviation: number | null;
} {
  if (values.length === 0) return { mean: null, deviation: null };
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    mean,
    deviation: values.length < 2 ? null : Math.sqrt(squares / (values.length - 1)),
  };
}

/** The plan of a request. */
export function planOf(
  request: PlanRequest,
  models: readonly Plannable[],
  defaultThreads: number,
): PlanView {
  const { kinds, repetitions, settings = [[]], order, until } = shapesOf(request.tests);
  const rows: PlannedRow[] = [];
  const hindrances: Hindrance[] = [];
  for (const id of request.models) {
    const model = models.find((candidate) => candidate.id === id) ?? plannable(id, id, "unknown");
    const name = `${model.name} ${model.quantization}`;
    if (model.hindrance !== null) {
      hindrances.push({ model: id, name, sentence: model.hindrance, rows: [] });
      continue;
    }
    const tooLong = kinds.filter((what) => lengthOf(what) > CONTEXT);
    if (tooLong.length > 0) {
      const sentence = `${name} was made for a context of 8,192 tokens: take shorter lengths or a lower depth.`;
      hindrances.push({ model: id, name, sentence, rows: tooLong });
    }
    for (const setting of settings) {
      for (const what of kinds.filter((what) => !tooLong.includes(what))) {
        rows.push(rowOf(model, what, rows.length, repetitions, setting));
      }
    }
  }
  const seconds = rows.map((row) => row.seconds);
  const all = seconds.every((time) => time !== null)
    ? seconds.reduce((total, time) => total + time, 0)
    : null;
  return {
    asked: request,
    rows,
    repetitions,
    until: until ?? null,
    order: order ?? { order: "one_by_one" },
    threads: request.threads ?? defaultThreads,
    seconds: order?.order === "sustained" ? order.seconds : all,
    hindrances,
  };
}

function lengthOf(what: RowKind): number {
  return what.kind === "speed" ? what.tokens + what.depth : 0;
}

function rowOf(
  model: Plannable,
  what: RowKind,
  position: number,
  repetitions: number,
  settings: Setting[],
): PlannedRow {
  const isDecode = what.kind === "speed" && what.phase === "decode";
  const { seconds } = sampleOf(model, what);
  const count = what.kind === "quality" ? 0 : repetitions;
  const filling = "depth" in what ? what.depth / model.prefill : 0;
  // The built-in base judges against itself: that is its perplexity alone.
  const judged: RowKind =
    what.kind === "quality" && what.base === model.quantization ? { ...what, base: null } : what;
  return {
    position,
    model: model.id,
    name: model.name,
    quantization: model.quantization,
    what: judged,
    unit: unitOf(judged),
    settings,
    seconds: model.known ? seconds * (count + 1) + filling + BETWEEN_S : null,
    ceiling: isDecode && model.ceiling !== null ? model.ceiling / (1 + what.depth / 9000) : null,
  };
}
