import type { PlanRequest, PlanView, Problem, ResultRow, Speed } from "../bindings";
import type { Fake, Handlers } from "../fake";
import { planOf, plannable, scriptOf, type Plannable } from "../fake-runs";
import { begun } from "./estimates";
import { ScriptedRun } from "./scripted-run";
import { worlds } from "./worlds";

/** Every row of Models as a plan asks for it. */
function plannables(fake: Fake): Plannable[] {
  return fake.world.models.groups.flatMap((group) =>
    group.rows.map((row) => {
      const made = plannable(row.id, group.name, row.quantization);
      return {
        ...made,
        prefill: row.prefill?.mean ?? made.prefill,
        decode: row.decode?.mean ?? (row.decode_ceiling ?? made.ceiling ?? 100) * 0.8,
        ceiling: row.decode_ceiling,
        // The built-in model is made by the run that needs it.
        hindrance: group.synthetic ? null : row.hindrance,
        known: row.prefill !== null && row.decode !== null,
      };
    }),
  );
}

/** The tests of a request, in order. */
export function plan(fake: Fake, request: PlanRequest): PlanView {
  const { threads, default_threads } = fake.world.start.settings;
  return planOf(request, plannables(fake), threads ?? default_threads);
}

const runs = new WeakMap<Fake, ScriptedRun>();

function start(fake: Fake, request: PlanRequest): void {
  const view = plan(fake, request);
  const run = new ScriptedRun(
    view,
    scriptOf(view, fake.world.script, plannables(fake), "2026-11-30T14:28:10Z"),
    {
      pace: fake.pace,
      hold: fake.world.hold ?? undefined,
      ended: (results) => {
        keep(fake, view, results);
        fake.tell({ event: "results_changed" });
      },
    },
  );
  fake.world.run = [];
  void run.follow((event) => {
    fake.world.run.push(event);
  });
  runs.set(fake, run);
}

/** The results of a run that ended take the place of those that were there. */
function keep(fake: Fake, view: PlanView, results: string[]): void {
  const { groups } = fake.world.results;
  for (const id of results) {
    const row = view.rows.find((planned) => `result of ${planned.model}` === id);
    if (!row) continue;
    const result: ResultRow = {
      id,
      run: "run 1",
      quantization: row.quantization,
      differs: "",
      at: "2026-11-30T14:32:55Z",
      elsewhere: null,
      prefill: made(fake, view, row.model, "prefill"),
      decode: made(fake, view, row.model, "decode"),
      warnings: [],
      noted: false,
    };
    const group = groups.find(({ name }) => name === row.name);
    if (group) group.rows = [result, ...group.rows.filter((other) => other.id !== id)];
    else groups.unshift({ name: row.name, rows: [result] });
  }
}

function made(
  fake: Fake,
  view: PlanView,
  model: string,
  phase: "prefill" | "decode",
): Speed | null {
  const row = view.rows.find(
    ({ model: id, what }) => id === model && what.kind === "speed" && what.phase === phase,
  );
  const samples = fake.world.run.flatMap(({ step }) =>
    step.step === "sample" && step.position === row?.position ? [step.value] : [],
  );
  if (row?.what.kind !== "speed" || samples.length === 0) return null;
  const mean = samples.reduce((sum, value) => sum + value, 0) / samples.length;
  return {
    mean,
    deviation: samples.length < 2 ? null : mean * 0.02,
    samples,
    tokens: row.what.tokens,
    depth: row.what.depth,
    at: "2026-11-30T14:32:55Z",
  };
}

export const measure: Handlers<
  | "plan"
  | "offers"
  | "start_run"
  | "follow_run"
  | "stop_run"
  | "resumable"
  | "resume_run"
  | "painted"
  | "calibration"
  | "calibrate"
> = {
  plan: ({ request }, fake) => plan(fake, request),
  offers: ({ request }, fake) => {
    const { models, threads } = request;
    return {
      offers: request.tests.map((tests) => {
        const made = plan(fake, { models, threads, tests });
        return {
          tests: made.rows.length,
          seconds: made.seconds,
          why_not: made.rows.length > 0 ? null : (made.hindrances[0]?.sentence ?? null),
        };
      }),
      variants: fake.world.start.machine.engine === null ? [] : ["zen4", "icelake", "haswell"],
      gpus: fake.world.gpus,
    };
  },
  start_run: ({ request }, fake) => {
    if (runs.get(fake)?.going) {
      const busy: Problem = {
        code: "busy",
        message: "A run goes on in this window. Wait for its end or cancel it.",
        details: null,
      };
      throw busy;
    }
    start(fake, request);
    return null;
  },
  resumable: (_, fake) => fake.world.resumable,
  resume_run: (_, fake) => {
    const ids = fake.world.models.groups.flatMap(({ rows }) =>
      rows.flatMap(({ id, hindrance }) => (hindrance === null ? [id] : [])),
    );
    fake.world.resumable = null;
    start(fake, { models: ids.slice(0, 2), tests: { preset: "quick" }, threads: null });
    return null;
  },
  follow_run: async (_, fake, tell) => {
    await runs.get(fake)?.follow((event) => {
      tell(structuredClone(event));
    });
    return null;
  },
  stop_run: ({ how }, fake) => {
    runs.get(fake)?.stop(how);
    return null;
  },
  painted: ({ ticket }, fake) => {
    runs.get(fake)?.painted(ticket);
    return null;
  },
  calibration: (_, fake) => fake.world.calibration,
  calibrate: (_, fake) =>
    begun(fake, { id: "job calibrate", kind: "calibrate", title: "This machine", row: "" }, () => {
      const at = new Date().toISOString();
      const { machine } = fake.world.start;
      Object.assign(machine, {
        read_bytes_s: 18_000_000_000,
        read_at: at,
        calibrated_at: at,
      });
      const { calibration } = worlds.usual();
      fake.world.calibration = calibration && { ...calibration, at };
      fake.tell({ event: "machine", machine });
      fake.tell({ event: "models_changed" });
    }),
};
