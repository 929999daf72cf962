import type { FileCaches, Sweep, Tests, TuneFor } from "$lib/backend/bindings";

/** Which tests: some that are ready, and the person's own. */
export type PresetName = Tests["preset"];

/** Every preset, by what it is for, in the order they are shown. */
export const presetGroups: { name: string; presets: PresetName[] }[] = [
  { name: "Both speeds", presets: ["quick", "article", "own"] },
  {
    name: "One question",
    presets: ["context_curve", "long_document", "first_token", "prefix_cache", "users", "roofline"],
  },
  { name: "To decide", presets: ["face_off", "tune", "offload"] },
  { name: "Endurance", presets: ["sustained"] },
];

/** A list of numbers as it was typed, or a sentence about what is wrong with it. */
export type Parsed<T> = { value: T; wrong: null } | { value: null; wrong: string };

/** Most tokens of a test: as many as the engine's own counts allow, and far more than any context. */
const MOST_TOKENS = 10_000_000;
/** Most repetitions: more would run for days. */
const MOST_REPETITIONS = 1000;

/**
 * Reads `512, 2048`. Separators are commas, semicolons and spaces, for which reason digits are not
 * grouped. Nothing typed = an empty list.
 */
export function parseList(
  text: string,
  least: number,
  most = MOST_TOKENS,
  what = "number of tokens",
): Parsed<number[]> {
  const parts = text.split(/[\s,;]+/).filter((part) => part !== "");
  const values: number[] = [];
  for (const part of parts) {
    const value = Number(part);
    if (!/^\d+$/.test(part) || value < least || value > most) {
      const shown = part.length > 20 ? `${part.slice(0, 20)}...` : part;
      return {
        value: null,
        wrong: `"${shown}" is no ${what}. Write whole numbers from ${String(least)} ${most === MOST_TOKENS ? "on" : `to ${String(most)}`} with commas between, like ${most === MOST_TOKENS ? "512, 2048" : "1, 2, 4"}.`,
      };
    }
    if (!values.includes(value)) values.push(value);
  }
  return { value: values, wrong: null };
}

/** Reads one whole number between two others. */
export function parseCount(text: string, least: number, most: number): Parsed<number> {
  const typed = text.trim();
  const value = Number(typed);
  if (!/^\d+$/.test(typed) || value < least || value > most)
    return {
      value: null,
      wrong: `Write a whole number from ${String(least)} to ${String(most)}.`,
    };
  return { value, wrong: null };
}

/** Reads one number, whole or not, between two others. */
function parseNumber(text: string, over: number, below: number): Parsed<number> {
  const typed = text.trim();
  const value = Number(typed);
  if (!/^\d+(\.\d+)?$/.test(typed) || value <= over || value >= below)
    return {
      value: null,
      wrong: `Write a number between ${String(over)} and ${String(below)}.`,
    };
  return { value, wrong: null };
}

/** Reads what may be left empty. */
function optional<T>(text: string, parse: (text: string) => Parsed<T>): Parsed<T | null> {
  return text.trim() === "" ? { value: null, wrong: null } : parse(text);
}

/** Most users: as many sequences as the engine keeps apart. */
const MOST_USERS = 256;
/** Longest sustained run, minutes. */
const MOST_MINUTES = 24 * 60;

/** Settings that are chosen from a list, by the key of {@link Sweep}. */
export const sweepChoices = {
  cache: ["f16", "q8_0", "q5_1", "q4_0"],
  flash_attention: ["auto", "on", "off"],
  load_mode: ["auto", "mmap", "none", "mlock", "dio"],
  repack: ["on", "off"],
} as const;

/** What is typed for the sweep. */
class SweepState {
  threads = $state("");
  batch = $state("");
  microBatch = $state("");
  cache = $state<string[]>([]);
  flash_attention = $state<string[]>([]);
  load_mode = $state<string[]>([]);
  repack = $state<string[]>([]);
  variant = $state<string[]>([]);

  get fields(): Record<"threads" | "batch" | "microBatch", Parsed<number[]>> {
    return {
      threads: parseList(this.threads, 1),
      batch: parseList(this.batch, 1),
      microBatch: parseList(this.microBatch, 1),
    };
  }

  /** What is chosen; `null` where a field cannot be read. */
  get chosen(): Sweep | null {
    const { threads, batch, microBatch } = this.fields;
    if (threads.value === null || batch.value === null || microBatch.value === null) return null;
    return {
      threads: threads.value,
      batch: batch.value,
      micro_batch: microBatch.value,
      cache: [...this.cache],
      flash_attention: [...this.flash_attention],
      load_mode: [...this.load_mode],
      repack: this.repack.map((each) => each === "on"),
      variant: [...this.variant],
    };
  }

  /** How many settings it turns. */
  get count(): number {
    const { fields } = this;
    const lists = [fields.threads.value, fields.batch.value, fields.microBatch.value];
    const chosen = [this.cache, this.flash_attention, this.load_mode, this.repack, this.variant];
    return [...lists, ...chosen].filter((list) => (list?.length ?? 0) > 0).length;
  }
}

/** A sentence for the tests as a whole; what is wrong stands beside each field. */
const UNREAD = "One of the values cannot be read: see beside it.";

/** What the person chose to measure; it outlives a change of the view. */
export class SetupState {
  preset = $state<PresetName>("quick");
  /** Of own values. */
  prompt = $state("512");
  generate = $state("128");
  depth = $state("0");
  repetitions = $state("5");
  /** Nothing typed = as often as is said. */
  until = $state("");
  interleaved = $state(false);
  readonly sweep = new SweepState();
  /** Nothing typed = as deep, or as long, as may be. */
  deepest = $state("");
  longest = $state("");
  users = $state("1, 2, 4, 8");
  usersPrompt = $state("128");
  usersAnswer = $state("64");
  splitKv = $state(false);
  sharedPrompt = $state(false);
  quality = $state(true);
  /** Row of Models; `null` = the best that is on this disk. */
  base = $state<string | null>(null);
  firstPrompt = $state("512");
  fileCaches = $state<FileCaches>("each");
  cachePrompt = $state("512");
  changed = $state("128");
  minutes = $state("10");
  tuneFor = $state<TuneFor["tune"]>("mix");
  tunePrompt = $state("512");
  tuneAnswer = $state("128");
  /** Nothing typed = as the settings say. */
  threads = $state("");

  /** Each field read. */
  get fields(): Record<"prompt" | "generate" | "depth" | "users", Parsed<number[]>> &
    Record<
      | "repetitions"
      | "usersPrompt"
      | "usersAnswer"
      | "firstPrompt"
      | "cachePrompt"
      | "changed"
      | "minutes"
      | "tunePrompt"
      | "tuneAnswer",
      Parsed<number>
    > &
    Record<"until" | "deepest" | "longest", Parsed<number | null>> {
    const tokens = (text: string): Parsed<number> => parseCount(text, 1, MOST_TOKENS);
    const cachePrompt = parseCount(this.cachePrompt, 2, MOST_TOKENS);
    return {
      prompt: parseList(this.prompt, 1),
      generate: parseList(this.generate, 1),
      depth: parseList(this.depth, 0),
      repetitions: parseCount(this.repetitions, 1, MOST_REPETITIONS),
      until: optional(this.until, (text) => parseNumber(text, 0, 100)),
      deepest: optional(this.deepest, tokens),
      longest: optional(this.longest, tokens),
      users: parseList(this.users, 1, MOST_USERS, "number of users"),
      usersPrompt: tokens(this.usersPrompt),
      usersAnswer: tokens(this.usersAnswer),
      firstPrompt: tokens(this.firstPrompt),
      cachePrompt,
      changed: parseCount(this.changed, 1, (cachePrompt.value ?? MOST_TOKENS) - 1),
      minutes: parseCount(this.minutes, 1, MOST_MINUTES),
      tunePrompt: tokens(this.tunePrompt),
      tuneAnswer: tokens(this.tuneAnswer),
    };
  }

  /** The tests that are chosen, or why they are none yet. */
  get tests(): Parsed<Tests> {
    return this.testsOf(this.preset);
  }

  /** The tests of a preset as it is filled in, or why they are none yet. */
  testsOf(preset: PresetName): Parsed<Tests> {
    const { fields } = this;
    switch (preset) {
      case "quick":
      case "article":
      case "roofline":
      case "offload":
        return { value: { preset }, wrong: null };
      case "context_curve":
        return read({ deepest: fields.deepest }, (values) => ({ preset, ...values }));
      case "long_document":
        return read({ longest: fields.longest }, (values) => ({ preset, ...values }));
      case "users": {
        if (fields.users.value?.length === 0)
          return { value: null, wrong: "Give at least one number of users." };
        return read(
          { users: fields.users, prompt: fields.usersPrompt, generate: fields.usersAnswer },
          (values) => ({
            preset,
            ...values,
            split_kv: this.splitKv,
            shared_prompt: this.sharedPrompt,
          }),
        );
      }
      case "face_off":
        return { value: { preset, base: this.base, quality: this.quality }, wrong: null };
      case "first_token":
        return read({ prompt: fields.firstPrompt }, (values) => ({
          preset,
          ...values,
          cache: this.fileCaches,
        }));
      case "prefix_cache":
        return read({ prompt: fields.cachePrompt, changed: fields.changed }, (values) => ({
          preset,
          ...values,
        }));
      case "sustained":
        return read({ minutes: fields.minutes }, (values) => ({ preset, ...values }));
      case "tune":
        if (this.tuneFor !== "mix")
          return { value: { preset, target: { tune: this.tuneFor } }, wrong: null };
        return read({ prompt: fields.tunePrompt, generate: fields.tuneAnswer }, (values) => ({
          preset,
          target: { tune: "mix", ...values },
        }));
      case "own":
        return this.#own();
    }
  }

  #own(): Parsed<Tests> {
    const { prompt, generate, depth, repetitions, until } = this.fields;
    const sweep = this.sweep.chosen;
    if (sweep === null) return { value: null, wrong: UNREAD };
    if (prompt.value?.length === 0 && generate.value?.length === 0)
      return { value: null, wrong: "Give a prompt length, an answer length, or both." };
    return read({ prompt, generate, depth, repetitions, until }, (values) => ({
      preset: "own",
      ...values,
      depth: values.depth.length === 0 ? [0] : values.depth,
      interleaved: this.interleaved,
      sweep,
    }));
  }

  /** Threads that are chosen, `null` for those of the settings, or why they are none. */
  threadsUpTo(most: number): Parsed<number | null> {
    return optional(this.threads, (text) => parseCount(text, 1, most));
  }
}

/** All of these fields, where all of them could be read. */
function read<T extends Record<string, unknown>>(
  fields: { [K in keyof T]: Parsed<T[K]> },
  then: (values: T) => Tests,
): Parsed<Tests> {
  const values: Partial<T> = {};
  for (const key of Object.keys(fields) as (keyof T)[]) {
    const field = fields[key];
    if (field.wrong !== null) return { value: null, wrong: UNREAD };
    values[key] = field.value as T[typeof key];
  }
  return { value: then(values as T), wrong: null };
}
