/**
 * Scripted runs of the fake backend: what a run tells, without an engine.
 *
 * `planOf` (`fake/plans.ts`) makes the plan of a request, `scriptOf` every event of its run from
 * start to end. `fake/scripted-run.ts` plays them.
 */
import type {
  Around,
  BothSpeeds,
  Found,
  MachineNow,
  PlannedRow,
  PlanView,
  RowKind,
  RunEvent,
  RunStep,
  Setting,
  TestEnd,
  TuneStage,
  TuneStep,
  Warning,
} from "./bindings";
import { plannable, sampleOf, speedsOf, type Plannable } from "./fake/plans";

export { planOf, plannable, type Plannable } from "./fake/plans";

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

/** Seconds that a load takes in the scripts, and a change of the test. */
const LOAD_S = 0.4;
const BETWEEN_S = 0.1;

/** How the samples of a test lie around their mean. */
const JITTER = [-0.031, 0.012, -0.006, 0.024, 0.001, -0.014, 0.009, 0.018, -0.013];

const STEADY: MachineNow = {
  swap_bytes: 0,
  clock_hz: 2.1e9,
  temperature_c: null,
  other_load_cores: 0.06,
  steal: 0,
  memory_bytes: 21_600_000_000,
  on_battery: null,
  power_profile: null,
  throttles: null,
};

/** What is read after each sample: this machine tells its clock alone. */
const AROUND: Around = { clock_hz: 2.1e9, temperature_c: null, watts: null };

/** What the samples of a test are so far. */
export interface Sampled {
  values: number[];
  found: Found | null;
  /** How far they lie apart, beside the usual. */
  wide: number;
  /** By how much they have fallen, of 1. */
  fall: number;
}

/** Before the first sample. */
export function sampled(): Sampled {
  return { values: [], found: null, wide: 1, fall: 0 };
}

/** Half-width of the interval of the mean, near enough for a script: 2.5 s / sqrt(n) over the mean. */
function withinOf(values: readonly number[]): number | null {
  if (values.length < 2) return null;
  const { mean, deviation } = speedsOf(values);
  return mean === null || deviation === null
    ? null
    : (2.5 * deviation) / Math.sqrt(values.length) / mean;
}

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

  #model(row: PlannedRow): Plannable {
    return (
      this.models.find((candidate) => candidate.id === row.model) ??
      plannable(row.model, row.name, row.quantization)
    );
  }

  /** What comes before the samples of a test; gives the seconds until the first. */
  #before(row: PlannedRow): number {
    const { position, what } = row;
    const { seconds } = sampleOf(this.#model(row), what);
    if (what.kind === "quality") {
      const chunks = Math.max(1, Math.round((what.tokens ?? 32_768) / what.chunk));
      for (const done of [0, Math.floor(chunks / 2), chunks]) {
        const step = { doing: "text" as const, done, chunks };
        this.then(done === 0 ? 0.05 : seconds / 2, { step: "doing", position, what: step });
      }
      return 0;
    }
    if (what.kind !== "first_token") {
      this.then(0.05, { step: "doing", position, what: { doing: "warmup" } });
    }
    return seconds;
  }

  /** One sample after its stages. */
  sample(row: PlannedRow, number: number, before: number, made: Sampled): void {
    const { position, what } = row;
    const model = this.#model(row);
    let wait = before;
    if (what.kind === "first_token") {
      this.load(row);
      wait = 0.02;
    } else if ("depth" in what && what.depth > 0) {
      const restored = number > 1;
      this.then(wait, { step: "doing", position, what: { doing: "depth", restored } });
      wait = restored ? 0.02 : what.depth / model.prefill;
    }
    const { value, found, seconds } = sampleOf(model, what);
    if (what.kind !== "quality") {
      this.#ticket += 1;
      const timing = { doing: "timing" as const, number, ticket: this.#ticket };
      this.then(wait, { step: "doing", position, what: timing });
    }
    const off = 1 + (JITTER[(position * 2 + number - 1) % JITTER.length] ?? 0) * made.wide;
    const fall = 1 - made.fall;
    const isSpeed = row.unit === "tokens_per_second";
    const speed = what.kind === "quality" ? 1 : off * fall;
    const measured = isSpeed ? value * speed : value / speed;
    made.values.push(measured);
    made.found = found;
    const took = what.kind === "quality" ? 0.02 : seconds / speed;
    this.then(took, {
      step: "sample",
      position,
      number,
      value: measured,
      found,
      seconds: what.kind === "quality" ? seconds : took,
      within: withinOf(made.values),
      around: AROUND,
    });
  }

  /** Warm-up and so many samples. */
  measure(row: PlannedRow, count: number): Sampled {
    let before = this.#before(row);
    const made = sampled();
    const most = row.what.kind === "quality" ? 1 : count;
    for (let number = 1; number <= most; number += 1) {
      this.sample(row, number, before, made);
      before = 0.02;
    }
    return made;
  }

  /** A race of settings, and what came of it. */
  race(row: PlannedRow, startedS: number): void {
    const { position } = row;
    const model = this.#model(row);
    const { value, found } = sampleOf(model, row.what);
    const tell = (seconds: number, what: TuneStep): void => {
      this.then(seconds, { step: "tuning", position, what });
    };
    const { prefill, decode } = model;
    const speeds = (factor: number): BothSpeeds => ({
      prefill: prefill * factor,
      decode: decode * factor,
    });
    tell(8, {
      tuning: "searching",
      speeds: speeds(1),
      combinations: 72,
      grid_s: 380,
      budget_s: 95,
    });
    const threads = (count: number): Setting => ({ key: "n_threads", value: String(count) });
    const micro = (size: number): Setting => ({ key: "n_ubatch", value: String(size) });
    const stages: [TuneStage, [Setting[], number][]][] = [
      [
        "threads",
        [
          [[], 1],
          [[threads(1)], 0.56],
          [[threads(2)], 1.06],
        ],
      ],
      [
        "micro_batch",
        [
          [[threads(2)], 1],
          [[threads(2), micro(128)], 0.88],
          [[threads(2), micro(1024)], 1.05],
        ],
      ],
    ];
    for (const [stage, racers] of stages) {
      tell(0.1, { tuning: "stage", stage, choices: racers.map(([choice]) => choice) });
      for (const [choice, share] of racers) {
        const what: RowKind = { kind: "speed", phase: "decode", tokens: 16, depth: 0 };
        tell(0.1, { tuning: "testing", choice, what });
        tell(3, { tuning: "measured", choice, speeds: speeds(share), share });
        if (share < 0.9) tell(0.1, { tuning: "dropped", choice, share, reason: null });
      }
      const [best] = racers.at(-1) ?? [[]];
      tell(0.1, { tuning: "best", choice: best, out_of_time: false });
    }
    const choice = [threads(2), micro(1024)];
    tell(0.1, { tuning: "final", choice, pairs: 9 });
    tell(20, { tuning: "measured", choice, speeds: speeds(value), share: value });
    this.end(row, startedS, { end: "done" }, { ...sampled(), values: [value], found });
  }

  /** Rounds over all tests, a sample of each at a time. */
  inTurn(count: number): void {
    const { rows } = this.plan;
    const started = new Map<PlannedRow, number>();
    const made = new Map(rows.map((row) => [row, sampled()]));
    const { order } = this.plan;
    const round = order.order === "sustained" ? order.seconds / count : 0;
    for (let number = 1; number <= count; number += 1) {
      // Rounds of a set time fill it.
      this.#now = Math.max(this.#now, round * (number - 1));
      for (const row of rows) {
        let before = 0.02;
        if (number === 1) {
          started.set(row, this.begin(row));
          if (row.position === 0) this.load(row);
          before = this.#before(row);
        }
        const all = made.get(row) ?? sampled();
        // What is warm after a while is slower: that is what a long run is for.
        all.fall = order.order === "sustained" ? 0.12 * (1 - Math.exp(-number / 6)) : 0;
        this.sample(row, number, before, all);
      }
    }
    for (const row of rows) {
      this.end(row, started.get(row) ?? 0, { end: "done" }, made.get(row) ?? sampled());
    }
  }

  end(
    row: PlannedRow,
    startedS: number,
    end: TestEnd,
    made: Sampled,
    warnings: Warning[] = [],
  ): void {
    this.then(BETWEEN_S, ended(row.position, this.now + BETWEEN_S - startedS, end, made, warnings));
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
  made: Pick<Sampled, "values" | "found">,
  warnings: Warning[] = [],
): RunStep {
  return {
    step: "test_ended",
    position,
    end,
    ...speedsOf(made.values),
    found: made.found,
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
  const { order, until } = plan;
  if (order.order !== "one_by_one") {
    run.inTurn(order.order === "sustained" ? Math.min(40, order.seconds / 15) : plan.repetitions);
    return finish(run, plan);
  }
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
      run.end(row, startedS, died, sampled());
      run.engine("zen4");
      startedS = run.begin(row, 2);
      run.load(row);
    }
    if (script === "killed" && row.position === 1) {
      const made = run.measure(row, Math.min(1, plan.repetitions));
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
      run.end(row, startedS, killed, made);
      run.engine("zen4");
      loaded = null;
      continue;
    }
    if (row.what.kind === "tune") {
      run.race(row, startedS);
      continue;
    }
    const made = run.measure(row, plan.repetitions + (until ? 4 : 0));
    run.end(row, startedS, { end: "done" }, made, warningsOf(row, script));
  }
  return finish(run, plan);
}

function finish(run: Script, plan: PlanView): RunEvent[] {
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
    run.end(row, startedS, end, sampled());
  });
  run.then(0, {
    step: "ended",
    end: { end: "failed", code: "engine_missing", message },
    results: [],
  });
  return run.finished();
}
