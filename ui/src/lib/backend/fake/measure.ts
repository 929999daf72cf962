import type { ModelRow, PlannedRow, PlanRequest, PlanView, RunStep } from "../bindings";
import type { Fake, Handlers } from "../fake";

/** The tests of a request, in order. */
export function plan(fake: Fake, request: PlanRequest): PlanView {
  const { tests } = request;
  const own = tests.preset === "own";
  const repetitions = own ? tests.repetitions : tests.preset === "quick" ? 3 : 5;
  const prompt = own ? tests.prompt : [512];
  const generate = own ? tests.generate : [128];
  const depths = own && tests.depth.length > 0 ? tests.depth : [0];
  const rows: PlannedRow[] = [];
  const view: PlanView = {
    rows,
    repetitions,
    threads: request.threads ?? fake.world.start.settings.default_threads,
    seconds: null,
    hindrances: [],
  };
  for (const id of request.models) {
    const group = fake.world.models.groups.find((each) => each.rows.some((row) => row.id === id));
    const row: ModelRow | undefined = group?.rows.find((each) => each.id === id);
    if (!group || !row) continue;
    if (row.hindrance !== null) {
      const name = `${group.name} ${row.quantization}`;
      view.hindrances.push({ model: id, name, sentence: row.hindrance });
      continue;
    }
    const test = (phase: "prefill" | "decode", tokens: number, depth: number): void => {
      const speed = phase === "prefill" ? row.prefill : row.decode;
      rows.push({
        position: rows.length,
        model: id,
        name: group.name,
        quantization: row.quantization,
        phase,
        tokens,
        depth,
        seconds: speed ? ((repetitions + 1) * tokens) / speed.mean : null,
        ceiling: phase === "decode" ? row.decode_ceiling : null,
      });
    };
    for (const depth of depths) {
      for (const tokens of prompt) test("prefill", tokens, depth);
      for (const tokens of generate) test("decode", tokens, depth);
    }
  }
  const known = rows.map((row) => row.seconds);
  view.seconds = known.every((seconds) => seconds !== null)
    ? known.reduce((sum, seconds) => sum + seconds, 0)
    : null;
  return view;
}

const listeners = new WeakMap<Fake, Set<() => void>>();

function say(fake: Fake, step: RunStep): void {
  const at_s = fake.world.run.length * 0.5;
  fake.world.run.push({ at_s, left_s: null, step });
  for (const wake of listeners.get(fake) ?? []) wake();
}

async function play(fake: Fake, view: PlanView): Promise<void> {
  say(fake, { step: "started", run: "run new" });
  say(fake, { step: "engine", variant: "zen4", build: 11434, devices: ["CPU"] });
  const results: string[] = [];
  for (const { position, tokens } of view.rows) {
    say(fake, { step: "test_started", position, test: `test ${position}` });
    say(fake, { step: "doing", position, what: { doing: "loading", fraction: 0.5 } });
    await fake.wait(300);
    say(fake, { step: "doing", position, what: { doing: "warmup" } });
    await fake.wait(500);
    const speed = tokens > 200 ? 612 - 40 * position : 107 - 8 * position;
    for (let number = 1; number <= view.repetitions; number += 1) {
      say(fake, { step: "doing", position, what: { doing: "timing", number, ticket: number } });
      await fake.wait(700);
      const tokens_per_second = speed * (1 + 0.02 * (number - 2));
      const seconds = tokens / tokens_per_second;
      say(fake, { step: "sample", position, number, tokens_per_second, seconds });
    }
    say(fake, {
      step: "test_ended",
      position,
      end: { end: "done" },
      mean: speed,
      deviation: view.repetitions > 1 ? speed * 0.02 : null,
      seconds: 4,
      warnings: [],
      machine: {
        swap_bytes: 0,
        clock_hz: 2.1e9,
        temperature_c: null,
        other_load_cores: 0.03,
        steal: null,
      },
    });
  }
  say(fake, { step: "ended", end: { end: "complete" }, results });
  fake.tell({ event: "results_changed" });
}

export const measure: Handlers<
  "plan" | "start_run" | "follow_run" | "stop_run" | "painted" | "calibrate"
> = {
  plan: ({ request }, fake) => plan(fake, request),
  start_run: ({ request }, fake) => {
    fake.world.run = [];
    const view = plan(fake, request);
    say(fake, { step: "asked", plan: view, at: "2026-11-30T14:28:10Z" });
    void play(fake, view);
    return null;
  },
  follow_run: (_, fake, tell) =>
    new Promise((resolve) => {
      let next = 0;
      const wakers = listeners.get(fake) ?? new Set<() => void>();
      listeners.set(fake, wakers);
      const wake = (): void => {
        for (; next < fake.world.run.length; next += 1) {
          const event = fake.world.run[next];
          if (!event) return;
          tell(structuredClone(event));
          if (event.step.step === "ended") {
            wakers.delete(wake);
            resolve(null);
          }
        }
      };
      wakers.add(wake);
      wake();
    }),
  stop_run: (_, fake) => {
    say(fake, { step: "ended", end: { end: "stopped" }, results: [] });
    return null;
  },
  painted: () => null,
  calibrate: async (_, fake) => {
    await fake.wait(1500);
    const machine = fake.world.start.machine;
    machine.read_bytes_s = 18_000_000_000;
    machine.read_at = new Date().toISOString();
    fake.tell({ event: "machine", machine });
    return machine;
  },
};
