import type { Tests } from "$lib/backend/bindings";

/** Which tests: two that are ready, and the person's own. */
export type PresetName = Tests["preset"];

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
export function parseList(text: string, least: number): Parsed<number[]> {
  const parts = text.split(/[\s,;]+/).filter((part) => part !== "");
  const values: number[] = [];
  for (const part of parts) {
    const value = Number(part);
    if (!/^\d+$/.test(part) || value < least || value > MOST_TOKENS) {
      const shown = part.length > 20 ? `${part.slice(0, 20)}...` : part;
      return {
        value: null,
        wrong: `"${shown}" is no number of tokens. Write whole numbers from ${String(least)} on with commas between, like 512, 2048.`,
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

/** What the person chose to measure; it outlives a change of the view. */
export class SetupState {
  preset = $state<PresetName>("quick");
  prompt = $state("512");
  generate = $state("128");
  depth = $state("0");
  repetitions = $state("5");
  /** Nothing typed = as the settings say. */
  threads = $state("");

  /** Each field read. */
  get fields(): {
    prompt: Parsed<number[]>;
    generate: Parsed<number[]>;
    depth: Parsed<number[]>;
    repetitions: Parsed<number>;
  } {
    return {
      prompt: parseList(this.prompt, 1),
      generate: parseList(this.generate, 1),
      depth: parseList(this.depth, 0),
      repetitions: parseCount(this.repetitions, 1, MOST_REPETITIONS),
    };
  }

  /** The tests that are chosen, or why they are none yet. */
  get tests(): Parsed<Tests> {
    if (this.preset !== "own") return { value: { preset: this.preset }, wrong: null };
    const { prompt, generate, depth, repetitions } = this.fields;
    if (
      prompt.value === null ||
      generate.value === null ||
      depth.value === null ||
      repetitions.value === null
    )
      return { value: null, wrong: "One of the values cannot be read: see beside it." };
    if (prompt.value.length + generate.value.length === 0)
      return { value: null, wrong: "Give a prompt length, an answer length, or both." };
    return {
      value: {
        preset: "own",
        prompt: prompt.value,
        generate: generate.value,
        depth: depth.value.length === 0 ? [0] : depth.value,
        repetitions: repetitions.value,
      },
      wrong: null,
    };
  }

  /** Threads that are chosen, `null` for those of the settings, or why they are none. */
  threadsUpTo(most: number): Parsed<number | null> {
    if (this.threads.trim() === "") return { value: null, wrong: null };
    return parseCount(this.threads, 1, most);
  }
}
