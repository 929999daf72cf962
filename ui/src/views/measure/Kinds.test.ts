import { screen, waitFor, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, test } from "vitest";
import type { PlanRequest } from "$lib/backend/bindings";
import { planOf, scriptOf } from "$lib/backend/fake-runs";
import type { PresetName } from "$lib/state/setup.svelte";
import { faults } from "$lib/testing/axe";
import { fakeOf, type Shown } from "$lib/testing/render";
import { chosen, MODELS, press, Q4, Q8, row, text, told, untilEnd } from "./testing";

beforeEach(() => {
  location.hash = "";
});

describe("presets", () => {
  const preset = (name: string): HTMLElement => screen.getByRole("radio", { name });

  test("are grouped, explained in a line, and say what they would take", async () => {
    await chosen();
    const names = screen.getAllByRole("radio").map((each) => each.getAttribute("value"));
    expect(names).toHaveLength(12);
    expect(names).not.toContain("offload");
    await waitFor(() => {
      expect(preset("Context curve")).toHaveAccessibleDescription(
        /both speeds as the context fills about \d/,
      );
    });
    expect(preset("Sustained")).toHaveAccessibleDescription(/about 10\u00a0min$/);
  });

  test("have Offload where the engine computes on a GPU", async () => {
    const fake = fakeOf("usual");
    fake.world.gpus = ["NVIDIA GeForce RTX 4090"];
    await chosen("usual", [Q4], fake);
    await userEvent.click(await screen.findByRole("radio", { name: "Offload" }));
    await waitFor(() => {
      expect(screen.getAllByText(/GPU layers 32/)).toHaveLength(2);
    });
  });

  test("are chosen by keyboard", async () => {
    const { fake } = await chosen();
    preset("Quick").focus();
    await userEvent.keyboard("{ArrowDown}");
    expect(preset("Article")).toBeChecked();
    await waitFor(() => {
      expect(fake.asked("plan").at(-1)?.request.tests).toEqual({ preset: "article" });
    });
  });

  test("have their own values beside them", async () => {
    const { fake } = await chosen("usual", [Q4]);
    await userEvent.click(preset("Users"));
    const users = screen.getByRole("textbox", { name: "Users" });
    await userEvent.clear(users);
    await userEvent.type(users, "1, 300");
    expect(users).toHaveAccessibleDescription(/"300" is no number of users/);
    await userEvent.clear(users);
    await userEvent.type(users, "1, 2");
    await userEvent.click(screen.getByRole("checkbox", { name: "One prompt for all" }));
    await waitFor(() => {
      expect(fake.asked("plan").at(-1)?.request.tests).toMatchObject({
        preset: "users",
        users: [1, 2],
        shared_prompt: true,
      });
    });
    expect(await screen.findAllByText(/one prompt/)).not.toHaveLength(0);
  });

  test("settings side by side are turned on and off, and rows say in what they differ", async () => {
    const { fake } = await chosen("usual", [Q4]);
    await userEvent.click(preset("Own values"));
    await userEvent.click(screen.getByText(/Settings side by side/));
    const cache = screen.getByRole("group", { name: "Cache type" });
    for (const name of ["q8_0", "f16"]) {
      await userEvent.click(within(cache).getByRole("button", { name }));
    }
    await waitFor(() => {
      expect(screen.getAllByRole("rowheader").map(text)).toEqual([
        "Prefill 512 tokens cache f16",
        "Decode 128 tokens cache f16",
        "Prefill 512 tokens cache q8_0",
        "Decode 128 tokens cache q8_0",
      ]);
    });
    await userEvent.click(within(cache).getByRole("button", { name: "q8_0" }));
    await waitFor(() => {
      expect(fake.asked("plan").at(-1)?.request.tests).toMatchObject({ sweep: { cache: ["f16"] } });
    });
  });

  test("tests that are left out are rows that say why", async () => {
    const { states } = await chosen("usual", [Q4]);
    states.run.setup.preset = "own";
    states.run.setup.prompt = "512, 16384";
    const why = await screen.findByText(/made for a context of 8,192 tokens/);
    expect(text(why.closest("tr") as Element)).toContain("Prefill 16,384 tokens");
    expect(screen.getByRole("button", { name: "Start" })).toBeEnabled();
  });

  test("a choice whose time cannot be had leaves the others", async () => {
    const fake = fakeOf("usual");
    fake.refuse("offers");
    const { container } = await chosen("usual", [Q4], fake);
    expect(text(container)).toMatch(/About \d+ seconds/);
    expect(await faults()).toEqual([]);
  });
});

describe("a run of another kind", () => {
  async function ran(preset: PresetName, ids = [Q4]): Promise<Shown> {
    const shown = await chosen("usual", ids);
    shown.states.run.setup.preset = preset;
    await waitFor(() => {
      expect(shown.fake.asked("plan").at(-1)?.request.tests.preset).toBe(preset);
    });
    await press("Start");
    await untilEnd();
    return shown;
  }

  test("of a first token adds up its parts", async () => {
    const { container } = await ran("first_token");
    expect(text(container)).toMatch(
      /load 0\.60 s \+ context 20 ms \+ tokenize 1\.0 ms \+ prefill [\d.]+ s/,
    );
    expect(container.querySelector("table.without-ceiling")).not.toBeNull();
    expect(text(row(0))).toMatch(/First token 512-token prompt, file cold [\d.]+ s/);
    expect(await faults()).toEqual([]);
  });

  test("of a prefix cache says how much was reused", async () => {
    const { container } = await ran("prefix_cache");
    expect(text(container)).toContain("(511 of 512 reused)");
    expect(text(container)).toContain("(384 of 512 reused)");
  });

  test("of users says what each gets and who waits longest", async () => {
    const { container } = await ran("users");
    expect(document.querySelectorAll("tr[data-position]")).toHaveLength(4);
    expect(text(container)).toMatch(/tok\/s each; first token after .* the last to wait/);
  });

  test("of quality stands beside the speeds, each with its unit", async () => {
    const { container } = await ran("face_off", [Q4, Q8]);
    expect(text(row(2))).toContain("0.041 KL");
    expect(text(row(0))).toContain("tok/s");
    expect(text(container)).toContain("perplexity 18.42 ± 0.31, the base's 17.90");
    expect(await faults()).toEqual([]);
  });

  test("for a set time shows what is held against its start", async () => {
    const { fake, states, container } = await chosen("usual", [Q4]);
    states.run.setup.preset = "sustained";
    await waitFor(() => {
      expect(fake.asked("plan").at(-1)?.request.tests.preset).toBe("sustained");
    });
    fake.world.hold = 90;
    await press("Start");
    await waitFor(() => {
      expect(text(container)).toMatch(/\d+ % prefill ?\d+ % decode/);
    });
    expect(text(container)).toContain("100 % = the first 3 samples");
    expect(text(container)).toContain("Samples over time");
    expect(await faults()).toEqual([]);
  });

  test("of tuning shows the race, and then what was found beside the usual", async () => {
    const { fake, states, container } = await chosen("usual", [Q4]);
    states.run.setup.preset = "tune";
    await waitFor(() => {
      expect(fake.asked("plan").at(-1)?.request.tests.preset).toBe("tune");
    });
    fake.world.hold = 14;
    await press("Start");
    await waitFor(() => {
      expect(text(container)).toMatch(/threads 1 56 %, out/);
    });
    expect(text(container)).toContain("How many threads");
    expect(text(container)).toContain("All 72 combinations would take 6 min 20 s");
    expect(await faults()).toEqual([]);
  });

  test("of tuning ends with its gain", async () => {
    const { container } = await ran("tune");
    expect(text(row(0))).toContain("+12 % gain");
    expect(text(container)).toContain("threads 2, micro-batch 1024:");
    expect(text(container)).toContain("at least +9.0 % in pairs");
  });

  test("until the mean is known says how well it is", async () => {
    const { fake, states } = await chosen("usual", [Q4]);
    states.run.setup.preset = "own";
    states.run.setup.until = "2";
    await waitFor(() => {
      expect(fake.asked("plan").at(-1)?.request.tests).toMatchObject({ until: 2 });
    });
    const all = scriptOf(
      planOf(fake.asked("plan").at(-1)?.request as PlanRequest, MODELS, 2),
      "usual",
      MODELS,
    );
    const say = told(fake);
    await press("Start");
    const at = all.findIndex(
      ({ step }) => step.step === "doing" && step.what.doing === "timing" && step.what.number === 7,
    );
    for (const event of all.slice(0, at + 1)) await say(event);
    expect(text(row(0))).toMatch(/sample 7, ± [\d.]+ % \(target 2\.0 %\)/);
    expect(screen.getByText("Sample 7")).toBeVisible();
  });
});

describe("a run with tests that are missing", () => {
  test("is offered, and goes on", async () => {
    const { fake } = await chosen("usual", [Q4], fakeOf("failures"));
    const bar = await screen.findByRole("region", { name: "A run to go on with" });
    expect(text(bar)).toContain("5 of 12 tests are missing");
    expect(text(bar)).toContain(
      "was cut off: SmolLM2 135M Instruct Q4_1 and Gemma 3 270M it Q4_K_M",
    );
    expect(await faults()).toEqual([]);
    await press("Resume");
    await untilEnd();
    expect(fake.asked("resume_run")).toEqual([{ run: "run 1" }]);
  });

  test("is left for another time", async () => {
    await chosen("usual", [Q4], fakeOf("failures"));
    await press("Not now");
    expect(screen.queryByRole("region", { name: "A run to go on with" })).toBeNull();
  });

  test("that cannot go on says so", async () => {
    const fake = fakeOf("failures");
    await chosen("usual", [Q4], fake);
    fake.refuse("resume_run", { code: "model_gone", message: "Its model is gone. Put it back." });
    await press("Resume");
    expect(await screen.findByRole("alert")).toHaveTextContent("Its model is gone.");
  });
});
