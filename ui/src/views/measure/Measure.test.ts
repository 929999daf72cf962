import { cleanup, render, screen, waitFor, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { tick } from "svelte";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { planOf, plannable, scriptOf, type RunScript } from "$lib/backend/fake-runs";
import type { RunEvent } from "$lib/backend/bindings";
import { createStates, type States } from "$lib/state/context";
import { faults } from "$lib/testing/axe";
import Provide from "$lib/testing/Provide.svelte";
import { fakeOf, show } from "$lib/testing/render";
import Measure from "./Measure.svelte";
import { chosen, MODELS, never, press, Q4, Q8, QUICK, row, text, told, untilEnd } from "./testing";

beforeEach(() => {
  location.hash = "";
});

afterEach(() => {
  vi.useRealTimers();
});

function events(script: RunScript = "usual"): RunEvent[] {
  return scriptOf(planOf(QUICK, MODELS, 2), script, MODELS);
}

const isTiming = ({ step }: RunEvent): boolean =>
  step.step === "doing" && step.what.doing === "timing";

describe("before a run", () => {
  test("without a chosen model it says where to choose one, and leads there", async () => {
    const { states, container } = await show(Measure, "usual");
    expect(text(container)).toContain("No model is chosen");
    await press("Choose in Models");
    expect(states.app.view).toBe("models");
  });

  test("the built-in model is added at once", async () => {
    const { states } = await show(Measure, "empty");
    await press("Add the built-in model");
    expect([...states.models.selected]).toEqual(["Built-in 150M Q4_K_M"]);
    await waitFor(() => {
      expect(screen.getByRole("button", { name: "Start" })).toBeEnabled();
    });
  });

  test("a list of models that is not there yet is being read", async () => {
    const fake = fakeOf("usual");
    fake.answer("models", () => never());
    const states = createStates(fake);
    render(Provide, { states, view: Measure });
    expect(screen.getByRole("status")).toHaveTextContent("Reading the list of models.");
  });

  test("a list of models that cannot be read says so and can be asked for again", async () => {
    const fake = fakeOf("usual");
    fake.refuse("models");
    await show(Measure, fake);
    expect(screen.getByRole("alert")).toHaveTextContent("refuses models");
    await press("Try again");
    expect(fake.asked("models")).toHaveLength(2);
  });

  test("the planned tests and their time are shown", async () => {
    const { container } = await chosen();
    expect(text(container)).toMatch(/About \d+ seconds/);
    expect(screen.getAllByRole("rowheader").map(text)).toEqual([
      "Prefill 512 tokens",
      "Decode 128 tokens",
      "Prefill 512 tokens",
      "Decode 128 tokens",
    ]);
  });

  test("a time that is not known is said to be unknown", async () => {
    const fake = fakeOf("usual");
    for (const group of fake.world.models.groups) {
      for (const each of group.rows) each.prefill = null;
    }
    const { container } = await chosen("usual", [Q4], fake);
    expect(text(container)).toContain("Time is known after the first test");
    expect(screen.getAllByText("not known yet")).toHaveLength(2);
  });

  test("Article asks for five samples", async () => {
    const { fake, container } = await chosen();
    await userEvent.click(screen.getByRole("radio", { name: "Article" }));
    await waitFor(() => {
      expect(text(container)).toContain("5 samples a test");
    });
    expect(fake.asked("plan").at(-1)?.request.tests).toEqual({ preset: "article" });
  });

  test("own values are read from lists, and wrong ones say what is wrong", async () => {
    const { fake } = await chosen();
    await userEvent.click(screen.getByRole("radio", { name: "Own values" }));
    const depth = screen.getByRole("textbox", { name: "Depth, tokens" });
    await userEvent.clear(depth);
    await userEvent.type(depth, "0, 4k");
    expect(depth).toHaveAccessibleDescription(/"4k" is no number of tokens/);
    const start = screen.getByRole("button", { name: "Start" });
    expect(start).toBeDisabled();
    expect(start).toHaveAccessibleDescription(/cannot be read/);
    await userEvent.type(depth, "{Backspace}096");
    await waitFor(() => {
      expect(start).toBeEnabled();
    });
    expect(fake.asked("plan").at(-1)?.request.tests).toEqual({
      preset: "own",
      prompt: [512],
      generate: [128],
      depth: [0, 4096],
      repetitions: 5,
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
    });
  });

  test("neither a prompt nor an answer is nothing to measure", async () => {
    await chosen();
    await userEvent.click(screen.getByRole("radio", { name: "Own values" }));
    await userEvent.clear(screen.getByRole("textbox", { name: "Prompt, tokens" }));
    await userEvent.clear(screen.getByRole("textbox", { name: "Answer, tokens" }));
    expect(screen.getByText(/Give a prompt length/)).toBeVisible();
    expect(screen.getByRole("button", { name: "Start" })).toBeDisabled();
  });

  test("more threads than make sense are refused beside their field", async () => {
    const { fake } = await chosen();
    const most = fake.world.start.settings.most_threads;
    const threads = screen.getByRole("textbox", { name: "Threads" });
    await userEvent.type(threads, String(most + 1));
    expect(threads).toHaveAccessibleDescription(`Write a whole number from 1 to ${String(most)}.`);
    expect(screen.getByRole("button", { name: "Start" })).toBeDisabled();
  });

  test("a model that cannot be measured says why, and the others are measured", async () => {
    await chosen("usual", [Q4, "Gemma 3 270M it Q4_K_M"], fakeOf("failures"));
    expect(await screen.findByText(/This file has no tokenizer/)).toBeVisible();
    expect(screen.getByRole("button", { name: "Start" })).toBeEnabled();
  });

  test("what the plan itself leaves out is said too", async () => {
    const fake = fakeOf("usual");
    fake.answer("plan", ({ request }) => {
      const sentence = "This model has no decode. Measure its prefill alone.";
      return planOf(request, [{ ...plannable(Q4, "SmolLM2", "Q4_1"), hindrance: sentence }], 2);
    });
    const states = createStates(fake);
    await Promise.all([states.app.start(), states.models.refresh()]);
    states.models.choose([Q4]);
    render(Provide, { states, view: Measure });
    expect(await screen.findByText(/This model has no decode/)).toBeVisible();
    const start = screen.getByRole("button", { name: "Start" });
    expect(start).toBeDisabled();
    expect(start).toHaveAccessibleDescription("None of these models can be measured.");
  });

  test("a model is removed by keyboard and focus goes on to the next", async () => {
    const { states } = await chosen();
    screen.getByRole("button", { name: `Remove ${Q4}` }).focus();
    await userEvent.keyboard("{Enter}");
    expect([...states.models.selected]).toEqual([Q8]);
    expect(screen.getByRole("button", { name: `Remove ${Q8}` })).toHaveFocus();
  });

  test("a plan that is refused says so", async () => {
    const fake = fakeOf("usual");
    const states = createStates(fake);
    await Promise.all([states.app.start(), states.models.refresh()]);
    fake.refuse("plan");
    states.models.choose([Q4]);
    render(Provide, { states, view: Measure });
    expect(await screen.findByRole("alert")).toHaveTextContent("refuses plan");
    expect(screen.getByRole("button", { name: "Start" })).toBeDisabled();
  });

  test("a start that is refused leaves the choice and says so", async () => {
    const { fake } = await chosen();
    fake.refuse("start_run", { code: "busy", message: "A run goes on. Wait for its end." });
    await press("Start");
    expect(await screen.findByRole("alert")).toHaveTextContent("A run goes on.");
    expect(screen.getByRole("button", { name: "Start" })).toBeEnabled();
  });
});

describe("a run", () => {
  test("fills its rows, and its results can be compared", async () => {
    const { fake, states } = await chosen();
    await press("Start");
    await untilEnd();
    expect(screen.getByTestId("headline")).toHaveTextContent(/^Done in /);
    const means = screen.getAllByTestId("measured").map(text);
    expect(means).toHaveLength(4);
    for (const [position, mean] of means.entries()) {
      expect(mean).not.toBe("");
      expect(text(row(position))).toContain("done in");
    }
    // The mean of each row is the one that was told.
    const ends = fake.world.run.flatMap(({ step }) =>
      step.step === "test_ended" ? [step.mean] : [],
    );
    expect(means.map(Number)).toEqual(ends.map((mean) => Number(mean?.toPrecision(3))));
    await press("Compare these results");
    expect(states.app.view).toBe("compare");
    expect([...states.results.chosen].sort()).toEqual([`result of ${Q4}`, `result of ${Q8}`]);
  });

  test("can be measured again", async () => {
    const { fake } = await chosen("usual", [Q4]);
    await press("Start");
    await untilEnd();
    await press("Measure again");
    await waitFor(() => {
      expect(fake.asked("start_run")).toHaveLength(2);
    });
    expect(fake.asked("start_run")[1]).toEqual(fake.asked("start_run")[0]);
    await untilEnd();
  });

  test("with a killed worker says what happened in its row while the rest goes on", async () => {
    const { container } = await chosen("killed");
    await press("Start");
    await untilEnd();
    expect(text(row(1))).toContain("failed: engine killed");
    expect(text(row(2))).toContain("done in");
    expect(text(container)).toContain("The engine was killed while measuring");
    expect(text(container)).toContain("1 test failed");
    const log = screen.getByText("Last lines of the engine").closest("details");
    expect(log).not.toHaveAttribute("open");
    expect(log).toHaveTextContent("llama_kv_cache");
    // Warnings stand under their row, with advice.
    expect(screen.getByText("Other programs at work.")).toBeVisible();
    expect(await faults()).toEqual([]);
  });

  test("begins a test anew after a CPU variant was set aside, and says so once", async () => {
    const { container } = await chosen("set aside");
    await press("Start");
    await untilEnd();
    expect(text(row(0))).toContain("done in");
    expect(text(container)).toContain("First attempt. The engine's build for sapphirerapids");
    expect(screen.getAllByText("Another CPU variant.")).toHaveLength(1);
  });

  test("without an engine says so once and tries nothing", async () => {
    const { container } = await chosen("no engine");
    await press("Start");
    await untilEnd();
    expect(screen.getByTestId("headline")).toHaveTextContent("The run could not go on");
    expect(text(row(3))).toContain("not tried");
    expect(text(container).match(/since there is no engine/g)).toHaveLength(1);
    expect(screen.queryByRole("button", { name: "Compare these results" })).toBeNull();
  });

  test("that waits for another measurement says for which", async () => {
    const { fake, container } = await chosen("waits");
    fake.world.hold = 2;
    await press("Start");
    await waitFor(() => {
      expect(screen.getByTestId("headline")).toHaveTextContent("Waiting for another measurement");
    });
    expect(text(container)).toContain("twospeed bench (process 4711)");
  });

  test("is cancelled, and what is measured is kept", async () => {
    const { fake, container } = await chosen();
    fake.world.hold = 14;
    await press("Start");
    await waitFor(() => {
      expect(fake.world.run).toHaveLength(14);
    });
    await press("Cancel");
    await untilEnd();
    expect(fake.asked("stop_run")).toEqual([{ how: "now" }]);
    expect(screen.getByTestId("headline")).toHaveTextContent(/^Stopped after /);
    expect(text(container)).toContain("What was measured before is kept.");
    expect(text(row(3))).toContain("not tried");
  });

  test("stops after this test, and the button says so", async () => {
    const { fake } = await chosen();
    fake.answer("stop_run", () => null);
    fake.world.hold = 14;
    await press("Start");
    await waitFor(() => {
      expect(fake.world.run).toHaveLength(14);
    });
    await press("Stop after this test");
    const asked = await screen.findByRole("button", { name: "Stopping after this test" });
    expect(asked).toHaveAttribute("aria-disabled", "true");
    await userEvent.click(asked);
    expect(fake.asked("stop_run")).toEqual([{ how: "after_test" }]);
  });

  test("that cannot be stopped says so, and the button is as before", async () => {
    const { fake, states } = await chosen();
    fake.world.hold = 8;
    await press("Start");
    fake.refuse("stop_run");
    await press("Cancel");
    await waitFor(() => {
      expect(states.app.notices.some(({ failed }) => failed)).toBe(true);
    });
    expect(screen.getByRole("button", { name: "Cancel" })).toBeVisible();
  });

  test("outlives a change of the view and a reload of the page", async () => {
    const { fake, states } = await chosen("usual", [Q4]);
    fake.world.hold = 12;
    await press("Start");
    await waitFor(() => {
      expect(fake.world.run).toHaveLength(12);
    });
    await waitFor(() => {
      expect(states.run.progress).toEqual({ done: 0, of: 2 });
    });
    const before = text(row(0));
    cleanup();
    render(Provide, { states, view: Measure });
    expect(text(row(0))).toBe(before);
    cleanup();
    fake.world.start.running = true;
    await show(Measure, fake);
    await waitFor(() => {
      expect(text(row(0))).toBe(before);
    });
  });

  test("makes way once it is over and other models are chosen", async () => {
    const { states } = await chosen("usual", [Q4]);
    await press("Start");
    await untilEnd();
    cleanup();
    states.models.choose([Q8]);
    render(Provide, { states, view: Measure });
    expect(await screen.findByRole("button", { name: "Start" })).toBeVisible();
  });

  test("of twelve tests with long names keeps its table whole", async () => {
    const fake = fakeOf("long names");
    const ids = fake.world.models.groups
      .flatMap((group) => group.rows)
      .filter((each) => each.hindrance === null)
      .slice(0, 3)
      .map(({ id }) => id);
    const { states } = await chosen("usual", ids, fake);
    states.run.setup.preset = "own";
    states.run.setup.depth = "0, 64";
    states.run.setup.repetitions = "2";
    await waitFor(() => {
      expect(screen.getAllByRole("rowheader")).toHaveLength(12);
    });
    await press("Start");
    await untilEnd();
    expect(document.querySelectorAll("tr[data-position]")).toHaveLength(12);
    expect(await faults()).toEqual([]);
  });

  test("names of models are text, whatever they hold", async () => {
    const fake = fakeOf("hostile");
    const { container } = await chosen("usual", [Q4], fake);
    await press("Start");
    await untilEnd();
    expect(container.querySelector("img, script, b b")).toBeNull();
  });
});

describe("while a sample is timed", () => {
  test("nothing on the page changes and no timer is set, until the next event", async () => {
    const { fake, container } = await chosen("usual", [Q4]);
    const say = told(fake);
    await press("Start");
    const all = events();
    const at = all.findIndex(isTiming);
    for (const event of all.slice(0, at)) await say(event);
    vi.useFakeTimers({ toFake: ["setTimeout", "setInterval", "requestAnimationFrame"] });
    await say(all[at] as RunEvent);
    expect(fake.asked("painted")).toEqual([]);
    // Two frames: the one that shows the state, and the one that proves it was shown.
    await vi.advanceTimersByTimeAsync(100);
    expect(fake.asked("painted")).toEqual([{ ticket: 1 }]);

    const changes: MutationRecord[] = [];
    const observer = new MutationObserver((records) => changes.push(...records));
    observer.observe(document, {
      subtree: true,
      childList: true,
      attributes: true,
      characterData: true,
    });
    expect(vi.getTimerCount()).toBe(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(changes.concat(observer.takeRecords())).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);

    await say(all[at + 1] as RunEvent);
    await vi.advanceTimersByTimeAsync(0);
    expect(changes.concat(observer.takeRecords()).length).toBeGreaterThan(0);
    expect(text(container)).toContain("Sample 1");
    observer.disconnect();
  });

  test("only the newest ticket is painted where a run is told from its start", async () => {
    const { fake } = await chosen("usual", [Q4]);
    const say = told(fake);
    await press("Start");
    const all = events();
    const last = all.reduce((found, event, index) => (isTiming(event) ? index : found), 0);
    for (const event of all.slice(0, last + 1)) await say(event);
    await waitFor(() => {
      expect(fake.asked("painted")).toHaveLength(1);
    });
    expect(fake.asked("painted")).toEqual([{ ticket: 6 }]);
  });

  test("a hidden window has nothing to paint and says so at once", async () => {
    const { fake } = await chosen("usual", [Q4]);
    const say = told(fake);
    await press("Start");
    vi.spyOn(document, "visibilityState", "get").mockReturnValue("hidden");
    const all = events();
    for (const event of all.slice(0, all.findIndex(isTiming) + 1)) await say(event);
    await Promise.resolve();
    expect(fake.asked("painted")).toEqual([{ ticket: 1 }]);
  });

  test("it is painted also while another view is open", async () => {
    const { fake, states } = await chosen("usual", [Q4]);
    const say = told(fake);
    await press("Start");
    cleanup();
    const all = events();
    for (const event of all.slice(0, all.findIndex(isTiming) + 1)) await say(event);
    await waitFor(() => {
      expect(fake.asked("painted")).toEqual([{ ticket: 1 }]);
    });
    expect(states.run.progress).toEqual({ done: 0, of: 2 });
  });

  test("samples are not read out; the headline and the ends of tests are", async () => {
    const { fake, container } = await chosen("usual", [Q4]);
    const say = told(fake);
    await press("Start");
    const all = events();
    const end = all.findIndex(({ step }) => step.step === "test_ended");
    for (const event of all.slice(0, end)) await say(event);
    expect(screen.getByTestId("announcement")).toHaveTextContent("");
    for (const live of container.querySelectorAll("[aria-live]")) {
      expect(live.querySelector("table, ol")).toBeNull();
    }
    await say(all[end] as RunEvent);
    expect(screen.getByTestId("announcement")).toHaveTextContent(
      /SmolLM2 135M Instruct Q4_1, prefill of 512 tokens: \d+ tok\/s\. 1 of 2 tests done/,
    );
  });
});

describe("axe finds nothing", () => {
  for (const theme of ["light", "dark"] as const) {
    const inTheme = (): void => {
      document.documentElement.dataset.theme = theme;
    };
    test(`without a model, ${theme}`, async () => {
      inTheme();
      await show(Measure, "empty");
      expect(await faults()).toEqual([]);
    });
    test(`before a run with own values, one of them wrong, ${theme}`, async () => {
      inTheme();
      const { states } = await chosen();
      states.run.setup.preset = "own";
      states.run.setup.repetitions = "none";
      await tick();
      expect(await faults()).toEqual([]);
    });
    test(`while a sample is timed, ${theme}`, async () => {
      inTheme();
      const { fake } = await chosen("usual", [Q4]);
      const say = told(fake);
      await press("Start");
      const all = events();
      for (const event of all.slice(0, all.findIndex(isTiming) + 1)) await say(event);
      expect(within(row(0)).getByText("sample 1 of 3")).toBeVisible();
      expect(await faults()).toEqual([]);
    });
  }
});

test("states are apart from one page to the next", () => {
  const one: States = createStates(fakeOf("usual"));
  const other: States = createStates(fakeOf("usual"));
  one.run.setup.preset = "own";
  expect(other.run.setup.preset).toBe("quick");
});
