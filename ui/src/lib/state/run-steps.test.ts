import { describe, expect, test } from "vitest";

import type { PlanView, RunEvent, RunStep, Tests } from "$lib/backend/bindings";
import { planOf, plannable, scriptOf, type RunScript } from "$lib/backend/fake-runs";
import {
  grouped,
  over,
  reduce,
  runOf,
  shares,
  spentS,
  summary,
  timeOver,
  type Run,
} from "./run-steps";

const MODELS = [
  plannable("a", "SmolLM2 135M Instruct", "Q4_1"),
  plannable("b", "Gemma 3 270M", "Q4_K_M"),
];
const PLAN = planOf({ models: ["a", "b"], tests: { preset: "quick" }, threads: null }, MODELS, 2);

/** Own values: three samples of nothing but what is given. */
function own(values: Partial<Extract<Tests, { preset: "own" }>>): Tests {
  return {
    preset: "own",
    prompt: [],
    generate: [],
    depth: [0],
    repetitions: 3,
    until: null,
    interleaved: false,
    sweep: {
      threads: [],
      batch: [],
      micro_batch: [],
      cache: [],
      flash_attention: [],
      load_mode: [],
      repack: [],
      variant: [],
    },
    ...values,
  };
}

function whole(script: RunScript, plan: PlanView = PLAN): Run {
  return existing(runOf(scriptOf(plan, script, MODELS)));
}

/** The state after the first event that fits. */
function until(script: RunScript, fits: (step: RunStep) => boolean, plan = PLAN): Run {
  const events = scriptOf(plan, script, MODELS);
  return existing(runOf(events.slice(0, events.findIndex(({ step }) => fits(step)) + 1)));
}

function existing(state: Run | null): Run {
  if (state === null) {
    throw new Error("there is no run");
  }
  return state;
}

function at(state: Run, position: number): Run["tests"][number] {
  const found = state.tests[position];
  if (found === undefined) {
    throw new Error(`there is no test ${String(position)}`);
  }
  return found;
}

const timing =
  (number: number) =>
  (step: RunStep): boolean =>
    step.step === "doing" && step.what.doing === "timing" && step.what.number === number;

describe("a run", () => {
  test("does not exist before it is asked for", () => {
    expect(runOf([])).toBeNull();
    const stray: RunEvent = { at_s: 1, left_s: null, step: { step: "read_speed" } };
    expect(reduce(null, stray)).toBeNull();
  });

  test("has every test waiting when it is asked for", () => {
    const state = until("usual", ({ step }) => step === "asked");
    expect(state.phase).toBe("asked");
    expect(state.tests.map(({ status }) => status)).toEqual(["waits", "waits", "waits", "waits"]);
    expect(state.leftS).not.toBeNull();
    expect(spentS(state)).toBeNull();
  });

  test("knows the test that runs, its stages and its samples", () => {
    const state = until("usual", timing(3));
    const first = at(state, 0);
    expect(state.running).toBe(0);
    expect(first.status).toBe("runs");
    expect(first.stages.map(({ what }) => what)).toEqual(["loading", "warmup"]);
    expect(first.stages.every(({ toS }) => toS !== null)).toBe(true);
    expect(first.samples.map(({ number }) => number)).toEqual([1, 2]);
    expect(state.doing).toMatchObject({ doing: "timing", number: 3 });
  });

  test("is complete with every test done and its results", () => {
    const state = whole("usual");
    expect(state.phase).toBe("ended");
    expect(over(state)).toBe(4);
    expect(state.tests.map(({ status }) => status)).toEqual(["done", "done", "done", "done"]);
    expect(state.ended).toEqual({
      end: { end: "complete" },
      results: ["result of a", "result of b"],
    });
    expect(state.leftS).toBe(0);
  });

  test("is the same told again from its start, whatever was told before", () => {
    const events = scriptOf(PLAN, "killed", MODELS);
    const some = events.slice(0, 20).reduce(reduce, null);
    expect(events.reduce(reduce, some)).toEqual(runOf(events));
  });

  test("counts the seconds from its beginning, without the wait for another measurement", () => {
    const waiting = until("waits", ({ step }) => step === "waiting");
    expect(waiting.phase).toBe("waiting");
    expect(waiting.waiting).toContain("Another measurement");
    const begun = until("waits", ({ step }) => step === "started");
    expect(begun.waiting).toBeNull();
    expect(spentS(begun)).toBe(0);
    expect(begun.atS).toBeGreaterThan(6);
  });

  test("goes on after a killed worker, and the failed test keeps its sample", () => {
    const state = whole("killed");
    expect(state.tests.map(({ status }) => status)).toEqual(["done", "failed", "done", "done"]);
    const killed = at(state, 1);
    expect(killed.failure?.code).toBe("engine_killed");
    expect(killed.failure?.log.length).toBeGreaterThan(0);
    expect(killed.samples).toHaveLength(1);
    expect(killed.mean).toBe(killed.samples[0]?.value);
    expect(killed.deviation).toBeNull();
  });

  test("begins a test anew after a CPU variant was set aside, and remembers the first attempt", () => {
    const state = whole("set aside");
    const again = at(state, 0);
    expect(again.status).toBe("done");
    expect(again.failure).toBeNull();
    expect(again.earlier.map(({ code }) => code)).toEqual(["engine_illegal_instruction"]);
    expect(again.stages.map(({ what }) => what)).toEqual(["loading", "warmup"]);
    expect(state.engine?.variant).toBe("zen4");
  });

  test("says of tests that were never tried why", () => {
    const state = whole("no engine");
    expect(at(state, 0).status).toBe("failed");
    expect(at(state, 1).status).toBe("skipped");
    expect(at(state, 1).reason).toContain("no engine");
    expect(state.ended?.end.end).toBe("failed");
  });

  test("keeps what the machine was like after the last test that ran", () => {
    expect(until("usual", timing(1)).machine).toBeNull();
    expect(whole("usual").machine?.clock_hz).toBe(2.1e9);
  });

  test("fills the cache once as a stage, though it is restored before each sample", () => {
    const deep = planOf(
      {
        models: ["a"],
        tests: own({ generate: [32], depth: [4096] }),
        threads: null,
      },
      MODELS,
      2,
    );
    const test = at(whole("usual", deep), 0);
    expect(test.stages.map(({ what }) => what)).toEqual(["loading", "warmup", "depth"]);
    expect(test.samples).toHaveLength(3);
  });
});

describe("tests that take turns", () => {
  const inTurn = planOf(
    {
      models: ["a"],
      tests: own({ prompt: [512], generate: [128], interleaved: true }),
      threads: null,
    },
    MODELS,
    2,
  );

  test("run side by side, and one of them has its turn", () => {
    const state = until("usual", timing(2), inTurn);
    expect(state.tests.map(({ status }) => status)).toEqual(["runs", "runs"]);
    expect(state.running).toBe(0);
    expect(state.tests.map(({ samples }) => samples.length)).toEqual([1, 1]);
  });

  test("all end with their own samples", () => {
    const state = whole("usual", inTurn);
    expect(state.tests.map(({ samples }) => samples.length)).toEqual([3, 3]);
    expect(over(state)).toBe(2);
  });

  test("for a set time are over when that is", () => {
    const plan = planOf(
      { models: ["a"], tests: { preset: "sustained", minutes: 1 }, threads: null },
      MODELS,
      2,
    );
    expect(plan.seconds).toBe(60);
    expect(timeOver(until("usual", ({ step }) => step === "asked", plan))).toBe(0);
    expect(timeOver(whole("usual", plan))).toBe(1);
    expect(timeOver(whole("usual"))).toBeNull();
  });
});

describe("kinds beside the two speeds", () => {
  function of(tests: Tests): Run {
    return whole("usual", planOf({ models: ["a"], tests, threads: null }, MODELS, 2));
  }

  test("keep what they found beside their main figure", () => {
    const state = of({ preset: "first_token", prompt: 512, cache: "each" });
    expect(state.tests.map(({ found }) => found?.found)).toEqual(["first_token", "first_token"]);
    expect(state.tests.every(({ mean }) => mean !== null && mean > 0)).toBe(true);
  });

  test("a text is judged once, whatever the repetitions, and its reading is a stage", () => {
    const state = of({ preset: "face_off", base: null, quality: true });
    const judged = at(state, 2);
    expect(judged.samples).toHaveLength(1);
    expect(judged.stages.map(({ what }) => what)).toContain("text");
    expect(judged.mean).toBeCloseTo(0.041);
  });
});

describe("the summary of samples", () => {
  test("of none is unknown, not zero", () => {
    expect(summary([])).toEqual({ mean: null, deviation: null });
  });

  test("of one has no deviation", () => {
    expect(summary([50])).toEqual({ mean: 50, deviation: null });
  });

  test("divides by n - 1", () => {
    // 2, 4, 9: mean 5, squares 9 + 1 + 16 = 26, 26 / 2 = 13.
    expect(summary([2, 4, 9])).toEqual({ mean: 5, deviation: Math.sqrt(13) });
  });
});

describe("the plan as a bar", () => {
  test("is drawn by planned seconds before anything ran", () => {
    const state = until("usual", ({ step }) => step === "asked");
    expect(shares(state).map(({ seconds }) => seconds)).toEqual(
      PLAN.rows.map(({ seconds }) => seconds),
    );
    expect(shares(state).every(({ done }) => done === 0)).toBe(true);
  });

  test("gives tests of unknown time the same width", () => {
    const unknown = MODELS.map((model) => ({ ...model, known: false }));
    const plan = planOf(
      { models: ["a", "b"], tests: { preset: "quick" }, threads: null },
      unknown,
      2,
    );
    expect(plan.seconds).toBeNull();
    const widths = shares(until("usual", ({ step }) => step === "asked", plan));
    expect(new Set(widths.map(({ seconds }) => seconds)).size).toBe(1);
  });

  test("has the running test partly done and never more than whole", () => {
    for (const number of [1, 2, 3]) {
      const running = shares(until("usual", timing(number)))[0];
      expect(running?.done).toBeGreaterThan(0);
      expect(running?.done).toBeLessThanOrEqual(1);
    }
  });

  test("takes the seconds that were measured once a test is over", () => {
    const state = whole("usual");
    expect(shares(state).map(({ seconds }) => seconds)).toEqual(
      state.tests.map(({ seconds }) => seconds),
    );
  });
});

test("tests stand with their model, in the order of the plan", () => {
  const groups = grouped(whole("usual").tests);
  expect(groups.map(({ model, tests }) => [model, tests.length])).toEqual([
    ["a", 2],
    ["b", 2],
  ]);
});
