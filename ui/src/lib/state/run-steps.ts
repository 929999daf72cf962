/**
 * A run as the page knows it: nothing but what its events said, in order.
 *
 * `reduce` is pure: the same events give the same state, so a run survives a reload (`follow_run`
 * tells it from its start) and every state of the page can be made in a test.
 */
import type {
  Around,
  Doing,
  Found,
  MachineNow,
  PlannedRow,
  PlanView,
  RunEnd,
  RunEvent,
  RunStep,
  TestEnd,
  Warning,
} from "$lib/backend/bindings";
import { raced, type Race } from "./race";

/** A sample that is made and stored. */
export interface MadeSample {
  /** From 1. */
  number: number;
  /** Its main figure, in the unit of its row. */
  value: number;
  seconds: number;
  /** When it was made, seconds since the run was asked for. */
  atS: number;
}

/** A step of a test before its samples: load, warm-up, filling the cache. Times are of the run. */
export interface Stage {
  what: "loading" | "warmup" | "depth" | "text";
  fromS: number;
  /** `null` = it goes on. */
  toS: number | null;
  /** From 0 to 1, of loading. */
  fraction: number | null;
  /** The cache's state was kept, of depth. */
  restored: boolean;
}

/** How a test failed. */
export type Failure = Extract<TestEnd, { end: "failed" }>;

/** One test of the plan. */
export interface TestState {
  planned: PlannedRow;
  status: "waits" | "runs" | TestEnd["end"];
  /** Its id in the history; `null` = not begun. */
  test: string | null;
  startedS: number | null;
  /** Its stages so far, each once: of the depth before every sample only the first is kept. */
  stages: Stage[];
  samples: MadeSample[];
  /** Mean of its samples so far, in the unit of its row; `null` without samples. */
  mean: number | null;
  /** Standard deviation; `null` for less than two samples. */
  deviation: number | null;
  /** Half-width of the 95 % confidence interval of the mean over the mean; `null` = not known. */
  within: number | null;
  /** What else its last sample found, and all of them once it has ended. */
  found: Found | null;
  /** Seconds from its start to its end; `null` = not ended. */
  seconds: number | null;
  warnings: Warning[];
  failure: Failure | null;
  /** Why it was never started, a sentence. */
  reason: string | null;
  /** How far its race of settings is; `null` = it is none, or has not got so far. */
  race: Race | null;
  /** Attempts before this one that ended with a CPU variant set aside. */
  earlier: Failure[];
}

/** The worker that is there. */
export interface EngineNow {
  variant: string;
  build: number;
  devices: string[];
}

/** How a run ended. */
export interface Ended {
  end: RunEnd;
  results: string[];
}

/** A run. */
export interface Run {
  phase: "asked" | "waiting" | "going" | "ended";
  plan: PlanView;
  /** When it was asked for (UTC). */
  askedAt: string;
  /** For what it waits, a sentence. */
  waiting: string | null;
  /** Its id in the history; `null` = not begun. */
  run: string | null;
  /** When it began, seconds since it was asked for. */
  startedS: number | null;
  /** When the newest event happened, seconds since it was asked for. */
  atS: number;
  /** Seconds the rest will take; `null` = not known. */
  leftS: number | null;
  engine: EngineNow | null;
  tests: TestState[];
  /** Position of the test that runs. */
  running: number | null;
  /** What it does. */
  doing: Doing | null;
  /** The machine after the last test. */
  machine: MachineNow | null;
  /** The machine after the last sample. */
  around: Around | null;
  ended: Ended | null;
}

/** The state after all of these, or `null` where the first is not `asked`. */
export function runOf(events: readonly RunEvent[]): Run | null {
  return events.reduce<Run | null>(reduce, null);
}

/** The state after one more event. What does not belong to the run is passed over. */
export function reduce(before: Run | null, event: RunEvent): Run | null {
  const { step } = event;
  if (step.step === "asked") {
    return asked(step.plan, step.at, event);
  }
  if (before === null) {
    return null;
  }
  const state: Run = { ...before, atS: event.at_s, leftS: event.left_s };
  switch (step.step) {
    case "waiting":
      return { ...state, phase: "waiting", waiting: step.sentence };
    case "started":
      return { ...state, phase: "going", waiting: null, run: step.run, startedS: event.at_s };
    case "engine": {
      const { variant, build, devices } = step;
      return { ...state, engine: { variant, build, devices } };
    }
    case "test_started":
      return {
        ...withTest(state, step.position, (test) => begun(test, step.test, event.at_s)),
        running: step.position,
        doing: null,
      };
    case "doing":
      return {
        ...withTest(state, step.position, (test) => ({
          ...test,
          stages: staged(test.stages, step.what, event.at_s),
        })),
        running: step.position,
        doing: step.what,
      };
    case "sample":
      return {
        ...withTest(state, step.position, (test) => sampled(test, step, event.at_s)),
        running: step.position,
        doing: null,
        around: step.around,
      };
    case "test_ended":
      return {
        ...withTest(state, step.position, (test) => ({
          ...test,
          ...endOf(step.end),
          stages: closed(test.stages, event.at_s),
          mean: step.mean,
          deviation: step.deviation,
          found: step.found,
          seconds: step.seconds,
          warnings: step.warnings,
        })),
        running: state.running === step.position ? null : state.running,
        doing: null,
        // A test that never ran looked at nothing.
        machine: step.end.end === "skipped" ? state.machine : step.machine,
      };
    case "tuning":
      return {
        ...withTest(state, step.position, (test) => ({
          ...test,
          race: raced(test.race, step.what),
        })),
        running: step.position,
      };
    case "read_speed":
      return state;
    case "ended":
      return {
        ...state,
        phase: "ended",
        waiting: null,
        running: null,
        doing: null,
        leftS: 0,
        ended: { end: step.end, results: step.results },
      };
  }
}

function asked(plan: PlanView, at: string, event: RunEvent): Run {
  return {
    phase: "asked",
    plan,
    askedAt: at,
    waiting: null,
    run: null,
    startedS: null,
    atS: event.at_s,
    leftS: event.left_s ?? plan.seconds,
    engine: null,
    tests: plan.rows.map(waits),
    running: null,
    doing: null,
    machine: null,
    around: null,
    ended: null,
  };
}

function waits(planned: PlannedRow): TestState {
  return {
    planned,
    status: "waits",
    test: null,
    startedS: null,
    stages: [],
    samples: [],
    mean: null,
    deviation: null,
    within: null,
    found: null,
    seconds: null,
    warnings: [],
    failure: null,
    reason: null,
    race: null,
    earlier: [],
  };
}

/** It begins, or begins again: what its first attempt left is set aside. */
function begun(test: TestState, id: string, atS: number): TestState {
  const earlier = test.failure === null ? test.earlier : [...test.earlier, test.failure];
  return { ...waits(test.planned), status: "runs", test: id, startedS: atS, earlier };
}

function endOf(end: TestEnd): Pick<TestState, "status" | "failure" | "reason"> {
  return {
    status: end.end,
    failure: end.end === "failed" ? end : null,
    reason: end.end === "skipped" ? end.reason : null,
  };
}

function sampled(
  test: TestState,
  { number, value, seconds, found, within }: Extract<RunStep, { step: "sample" }>,
  atS: number,
): TestState {
  const sample = { number, value, seconds, atS };
  const samples = [...test.samples.filter((made) => made.number !== number), sample];
  return { ...test, samples, found, within, ...summary(samples.map((made) => made.value)) };
}

/** Mean, and standard deviation with n - 1: one sample has none. */
export function summary(values: readonly number[]): {
  mean: number | null;
  deviation: number | null;
} {
  if (values.length === 0) {
    return { mean: null, deviation: null };
  }
  const mean = sum(values) / values.length;
  const squares = sum(values.map((value) => (value - mean) ** 2));
  return { mean, deviation: values.length < 2 ? null : Math.sqrt(squares / (values.length - 1)) };
}

function staged(stages: Stage[], doing: Doing, atS: number): Stage[] {
  if (doing.doing === "timing") {
    return closed(stages, atS);
  }
  const fraction = doing.doing === "loading" ? doing.fraction : null;
  const open = stages.at(-1);
  if (open?.what === doing.doing && open.toS === null) {
    return [...stages.slice(0, -1), { ...open, fraction }];
  }
  if (stages.some((stage) => stage.what === doing.doing)) {
    return closed(stages, atS);
  }
  const restored = doing.doing === "depth" && doing.restored;
  return [...closed(stages, atS), { what: doing.doing, fromS: atS, toS: null, fraction, restored }];
}

function closed(stages: Stage[], atS: number): Stage[] {
  return stages.map((stage) => (stage.toS === null ? { ...stage, toS: atS } : stage));
}

function withTest(state: Run, position: number, change: (test: TestState) => TestState): Run {
  const tests = state.tests.map((test) =>
    test.planned.position === position ? change(test) : test,
  );
  return { ...state, tests };
}

/** Tests that are over, however they ended, so that what is left can be counted. */
export function over(state: Run): number {
  return state.tests.filter((test) => test.status !== "waits" && test.status !== "runs").length;
}

/** Seconds since it began, without the wait before; `null` = not begun. */
export function spentS(state: Run): number | null {
  return state.startedS === null ? null : Math.max(0, state.atS - state.startedS);
}

/** The tests of one model, which follow each other in the plan. */
export interface TestGroup {
  /** Row of Models. */
  model: string;
  name: string;
  quantization: string;
  tests: TestState[];
}

/** Tests by model, in the order of the plan. */
export function grouped(tests: readonly TestState[]): TestGroup[] {
  const groups: TestGroup[] = [];
  for (const test of tests) {
    const { model, name, quantization } = test.planned;
    const last = groups.at(-1);
    if (last?.model === model) {
      last.tests.push(test);
    } else {
      groups.push({ model, name, quantization, tests: [test] });
    }
  }
  return groups;
}

/** A piece of the bar that shows the plan as time. */
export interface Share {
  test: TestState;
  /** Seconds it took or will take: its width beside the others. */
  seconds: number;
  /** How much of it is done, 0 to 1. */
  done: number;
}

/** Seconds of a test whose time is not known, where no other's is known either. */
const SOME_SECONDS = 1;

/**
 * How wide each test is drawn: by the seconds it took, else by those that are planned. A test whose
 * time is not known is drawn as wide as the known ones are on average.
 */
export function shares(state: Run): Share[] {
  const known = state.tests
    .map((test) => test.seconds ?? test.planned.seconds)
    .filter((seconds): seconds is number => seconds !== null && seconds > 0);
  const usual = known.length === 0 ? SOME_SECONDS : sum(known) / known.length;
  return state.tests.map((test) => {
    const planned = test.planned.seconds ?? usual;
    if (test.status === "waits" || test.status === "skipped") {
      return { test, seconds: planned, done: 0 };
    }
    if (test.status === "runs") {
      return running(test, state, planned);
    }
    return { test, seconds: test.seconds ?? planned, done: 1 };
  });
}

function running(test: TestState, state: Run, planned: number): Share {
  const spent = Math.max(0, state.atS - (test.startedS ?? state.atS));
  const made = test.samples.length / Math.max(1, state.plan.repetitions);
  if (state.plan.order.order !== "one_by_one") {
    return { test, seconds: planned, done: Math.min(1, made) };
  }
  // Without a plan the repetitions to come are taken to last as long as those that are made.
  const foreseen = test.planned.seconds === null && made > 0 ? spent / made : planned;
  const seconds = Math.max(foreseen, spent);
  return { test, seconds, done: seconds === 0 ? 0 : spent / seconds };
}

/** How much of a run for a set time is over, 0 to 1; `null` where none is set. */
export function timeOver(state: Run): number | null {
  const { order } = state.plan;
  if (order.order !== "sustained") return null;
  if (state.ended) return 1;
  if (state.leftS === null || state.startedS === null) return 0;
  return Math.min(1, Math.max(0, 1 - state.leftS / order.seconds));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
