/**
 * Scripted runs of the fake backend: what a run tells, without an engine.
 *
 * `planOf` makes the plan of a request, `scriptOf` every event of its run from start to end.
 * `fake/scripted-run.ts` plays them.
 */
import type {
  Hindrance,
  MachineNow,
  PhaseName,
  PlannedRow,
  PlanRequest,
  PlanView,
  RunEvent,
  RunStep,
  TestEnd,
  Tests,
  Warning,
} from "./bindings";

/** What happens in a run beside the usual. */
export type RunScript =
  | "usual"
  /** The worker of the second test is killed after its first sample; the rest goes on. */
  | "killed"
  /** Another measurement has the machine at first. */
  | "waits"
  /** The best CPU variant dies under the first test, which runs again with the next. */
  | "set aside"
  /** No engine starts, so that nothing can be measured. */
  | "no engine";

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

/** Seconds that a load takes in the scripts, and a change of the test. */
const LOAD_S = 0.4;
const BETWEEN_S = 0.1;

/** How the samples of a test lie around their mean. */
const JITTER = [-0.031, 0.012, -0.006, 0.024, 0.001, -0.014, 0.009, 0.018, -0.013];

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

interface Shape {
  phase: PhaseName;
  tokens: number;
  depth: number;
}

function shapesOf(tests: Tests): { shapes: Shape[]; repetitions: number } {
  if (tests.preset !== "own") {
    const shapes: Shape[] = [
      { phase: "prefill", tokens: 512, depth: 0 },
      { phase: "decode", tokens: 128, depth: 0 },
    ];
    return { shapes, repetitions: tests.preset === "quick" ? 3 : 5 };
  }
  const depths = tests.depth.length === 0 ? [0] : tests.depth;
  const shapes = depths.flatMap((depth) => [
    ...tests.prompt.map((tokens): Shape => ({ phase: "prefill", tokens, depth })),
    ...tests.generate.map((tokens): Shape => ({ phase: "decode", tokens, depth })),
  ]);
  return { shapes, repetitions: tests.repetitions };
}

/** Speed of the script's model at a depth: decode loses more, as it reads the cache for each token. */
function speedOf(model: Plannable, shape: Shape): number {
  const empty = shape.phase === "prefill" ? model.prefill : model.decode;
  return empty / (1 + shape.depth / 8192);
}

/** The plan of a request. */
export function planOf(
  request: PlanRequest,
  models: readonly Plannable[],
  defaultThreads: number,
): PlanView {
  const { shapes, repetitions } = shapesOf(request.tests);
  const rows: PlannedRow[] = [];
  const hindrances: Hindrance[] = [];
  for (const id of request.models) {
    const model = models.find((candidate) => candidate.id === id) ?? plannable(id, id, "unknown");
    if (model.hindrance !== null) {
      hindrances.push({
        model: id,
        name: `${model.name} ${model.quantization}`,
        sentence: model.hindrance,
      });
      continue;
    }
    for (const shape of shapes) {
      const sample = shape.tokens / speedOf(model, shape);
      rows.push({
        ...shape,
        position: rows.length,
        model: id,
        name: model.name,
        quantization: model.quantization,
        seconds: model.known ? sample * (repetitions + 1) + BETWEEN_S : null,
        ceiling:
          shape.phase === "decode" && model.ceiling !== null
            ? model.ceiling / (1 + shape.depth / 9000)
            : null,
      });
    }
  }
  const seconds = rows.map((row) => row.seconds);
  const all = seconds.every((time) => time !== null)
    ? seconds.reduce((total, time) => total + time, 0)
    : null;
  return {
    rows,
    repetitions,
    threads: request.threads ?? defaultThreads,
    seconds: all,
    hindrances,
  };
}

const STEADY: MachineNow = {
  swap_bytes: 0,
  clock_hz: 2.1e9,
  temperature_c: null,
  other_load_cores: 0.06,
  steal: 0,
};

/** Writes events with a clock that only goes forward. */
class Script {
  readonly events: RunEvent[] = [];
  #now = 0;
  #ticket = 0;

  constructor(
    readonly plan: PlanView,
    readonly models: readonly Plannable[],
  ) {}

  /** Something happens so many seconds later. */
  then(seconds: number, step: RunStep): void {
    this.#now += seconds;
    this.events.push({ at_s: this.#now, left_s: null, step });
  }

  get now(): number {
    return this.#now;
  }

  engine(variant: string): void {
    this.then(BETWEEN_S, {
      step: "engine",
      variant,
      build: 11434,
      devices: ["AMD EPYC 9B14"],
    });
  }

  begin(row: PlannedRow, attempt = 1): number {
    const test = `test-${String(row.position)}-${String(attempt)}`;
    this.then(0, { step: "test_started", position: row.position, test });
    return this.now;
  }

  load(row: PlannedRow): void {
    for (const fraction of [0, 0.5, 1]) {
      const what = { doing: "loading" as const, fraction };
      this.then(fraction === 0 ? 0 : LOAD_S / 2, {
        step: "doing",
        position: row.position,
        what,
      });
    }
  }

  /** Warm-up and so many samples; gives the speeds. */
  measure(row: PlannedRow, count: number): number[] {
    const { position } = row;
    const model =
      this.models.find((candidate) => candidate.id === row.model) ??
      plannable(row.model, row.name, row.quantization);
    const speed = speedOf(model, row);
    this.then(0.05, { step: "doing", position, what: { doing: "warmup" } });
    let before = row.tokens / speed;
    const speeds: number[] = [];
    for (let number = 1; number <= count; number += 1) {
      if (row.depth > 0) {
        this.then(before, {
          step: "doing",
          position,
          what: { doing: "depth", restored: number > 1 },
        });
        before = number > 1 ? 0.02 : row.depth / model.prefill;
      }
      this.#ticket += 1;
      const what = { doing: "timing" as const, number, ticket: this.#ticket };
      this.then(before, { step: "doing", position, what });
      const made = speed * (1 + (JITTER[(position * 2 + number - 1) % JITTER.length] ?? 0));
      speeds.push(made);
      this.then(row.tokens / made, {
        step: "sample",
        position,
        number,
        tokens_per_second: made,
        seconds: row.tokens / made,
      });
      before = 0.02;
    }
    return speeds;
  }

  end(
    row: PlannedRow,
    startedS: number,
    end: TestEnd,
    speeds: readonly number[],
    warnings: Warning[] = [],
  ): void {
    this.then(
      BETWEEN_S,
      ended(row.position, this.now + BETWEEN_S - startedS, end, speeds, warnings),
    );
  }

  /** Every event, each with the seconds that are left then. */
  finished(): RunEvent[] {
    return this.events.map((event) => ({
      ...event,
      left_s: this.plan.seconds === null && event.at_s < 8 ? null : this.#now - event.at_s,
    }));
  }
}

/** The step of a test that ended with these samples. */
export function ended(
  position: number,
  seconds: number,
  end: TestEnd,
  speeds: readonly number[],
  warnings: Warning[] = [],
): RunStep {
  const mean =
    speeds.length === 0 ? null : speeds.reduce((sum, value) => sum + value, 0) / speeds.length;
  const squares = mean === null ? 0 : speeds.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    step: "test_ended",
    position,
    end,
    mean,
    deviation: speeds.length < 2 ? null : Math.sqrt(squares / (speeds.length - 1)),
    seconds,
    warnings,
    machine: STEADY,
  };
}

function failed(code: string, message: string, log: string[]): TestEnd {
  return { end: "failed", code, message, log };
}

/** Results that a run leaves: one for each model with a sample. */
export function resultsOf(events: readonly RunEvent[], plan: PlanView): string[] {
  const models = new Set<string>();
  for (const { step } of events) {
    if (step.step === "sample") {
      const row = plan.rows.find((planned) => planned.position === step.position);
      if (row !== undefined) {
        models.add(row.model);
      }
    }
  }
  return [...models].map((model) => `result of ${model}`);
}

/** Every event of a run, from its start to its end. */
export function scriptOf(
  plan: PlanView,
  script: RunScript,
  models: readonly Plannable[] = [],
  askedAt = "2026-03-14T14:28:10Z",
): RunEvent[] {
  const run = new Script(plan, models);
  run.then(0, { step: "asked", plan, at: askedAt });
  if (script === "waits") {
    run.then(0.05, {
      step: "waiting",
      sentence:
        "Another measurement has this machine: twospeed bench (process 4711), since 12 s. This one begins when it has ended.",
    });
    run.then(6, { step: "started", run: "run 1" });
  } else {
    run.then(0.05, { step: "started", run: "run 1" });
  }
  if (script === "no engine") {
    return withoutEngine(run, plan);
  }
  run.engine(script === "set aside" ? "sapphirerapids" : "zen4");
  let loaded: string | null = null;
  for (const row of plan.rows) {
    let startedS = run.begin(row);
    if (loaded !== row.model) {
      run.load(row);
      loaded = row.model;
    }
    if (script === "set aside" && row.position === 0) {
      run.then(0.05, { step: "doing", position: 0, what: { doing: "warmup" } });
      const died = failed(
        "engine_illegal_instruction",
        `The engine's build for sapphirerapids CPUs used an instruction that this CPU refuses (SIGILL) while measuring ${row.name}. Leave this build aside on this machine and use the next best.`,
        ["load_backend: loaded CPU backend from libggml-cpu-sapphirerapids.so"],
      );
      run.end(row, startedS, died, []);
      run.engine("zen4");
      startedS = run.begin(row, 2);
      run.load(row);
    }
    if (script === "killed" && row.position === 1) {
      const speeds = run.measure(row, Math.min(1, plan.repetitions));
      const what = { doing: "timing" as const, number: 2, ticket: 1000 };
      run.then(0.02, { step: "doing", position: 1, what });
      const killed = failed(
        "engine_killed",
        `The engine was killed while measuring ${row.name} (perhaps out of memory). If nobody ended it, try a smaller quantization or a shorter context.`,
        [
          "llama_model_loader: loaded meta data with 32 key-value pairs and 272 tensors",
          "llama_context: n_ctx_seq (640) < n_ctx_train (8192)",
          "llama_kv_cache: size = 15.00 MiB (640 cells, 30 layers, 1/1 seqs)",
        ],
      );
      run.end(row, startedS, killed, speeds);
      run.engine("zen4");
      loaded = null;
      continue;
    }
    const speeds = run.measure(row, plan.repetitions);
    run.end(row, startedS, { end: "done" }, speeds, warningsOf(row, script));
  }
  run.then(0.05, { step: "read_speed" });
  run.then(0.05, {
    step: "ended",
    end: { end: "complete" },
    results: resultsOf(run.events, plan),
  });
  return run.finished();
}

function warningsOf(row: PlannedRow, script: RunScript): Warning[] {
  if (script === "set aside") {
    return [{ warning: "variant_set_aside", died: "sapphirerapids", ran: "zen4" }];
  }
  return script === "killed" && row.position === 0
    ? [
        { warning: "other_load", cores: 0.8 },
        { warning: "slow_first_sample", by: 1.6 },
      ]
    : [];
}

function withoutEngine(run: Script, plan: PlanView): RunEvent[] {
  const message =
    "The engine is not there: /usr/lib/twospeed/engine/twospeed does not exist. Reinstall Twospeed.";
  plan.rows.forEach((row, index) => {
    const startedS = run.begin(row);
    const end: TestEnd =
      index === 0
        ? failed("engine_missing", message, [])
        : { end: "skipped", reason: `Not tried, since there is no engine. ${message}` };
    run.end(row, startedS, end, []);
  });
  run.then(0, {
    step: "ended",
    end: { end: "failed", code: "engine_missing", message },
    results: [],
  });
  return run.finished();
}
