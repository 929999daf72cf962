import { screen, waitFor, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import type { FigureData } from "$lib/backend/bindings";
import context from "$lib/backend/fixtures/context.json";
import firstToken from "$lib/backend/fixtures/first-token.json";
import quantization from "$lib/backend/fixtures/quantization.json";
import sustained from "$lib/backend/fixtures/sustained.json";
import users from "$lib/backend/fixtures/users.json";
import { faults } from "$lib/testing/axe";
import { fakeOf, show } from "$lib/testing/render";
import Compare from "./Compare.svelte";
import { inWords, isHeadline, walk } from "./marks";

beforeEach(() => {
  location.hash = "";
});

const figures = [
  ["Context", "context", context],
  ["Users", "users", users],
  ["First token", "first_token", firstToken],
  ["Quantization", "quantization", quantization],
  ["Sustained", "sustained", sustained],
] as const;

const titled = (data: { title: string }) =>
  screen.findByRole("application", { name: `Figure: ${data.title}` });

describe.each(figures)("the figure %s", (name, figure, { data }) => {
  it("is chosen in the head and asked for with its own results", async () => {
    const user = userEvent.setup();
    const { fake } = await show(Compare);
    await user.click(await screen.findByRole("radio", { name }));
    expect(await titled(data)).toBeInTheDocument();
    const asked = fake.asked("figure").at(-1)?.request;
    expect(asked?.figure).toBe(figure);
    expect(asked?.results.length).toBeGreaterThan(0);
    expect(asked?.results.every((id) => id.startsWith(`${figure} of `))).toBe(true);
    const list = within(screen.getByRole("region", { name: "Results" }));
    expect(list.getAllByRole("checkbox", { checked: true })).toHaveLength(
      asked?.results.length ?? 0,
    );
    expect(screen.queryByRole("button", { name: "Ceiling" })).not.toBeInTheDocument();
  });

  it("is explained by three statements, each led by its number", async () => {
    const user = userEvent.setup();
    const { container } = await show(Compare);
    await user.click(await screen.findByRole("radio", { name }));
    await titled(data);
    const numbers = [...container.querySelectorAll(".fact .big")].map((each) => each.textContent);
    expect(numbers).toHaveLength(3);
    for (const number of numbers) expect(number).toMatch(/\d/);
  });

  it("is read by keyboard, cell by cell", async () => {
    const user = userEvent.setup();
    await show(Compare);
    await user.click(await screen.findByRole("radio", { name }));
    (await titled(data)).focus();
    await user.keyboard("{ArrowRight}{ArrowRight}");
    const headlines = (data as unknown as FigureData).marks.filter(isHeadline);
    expect(screen.getByTestId("readout").textContent).toBe(headlines[1]?.text);
  });

  it("is exported as what is shown", async () => {
    const user = userEvent.setup();
    const { fake } = await show(Compare);
    await user.click(await screen.findByRole("radio", { name }));
    await titled(data);
    await user.click(screen.getByRole("button", { name: "Export" }));
    await user.click(screen.getByRole("menuitem", { name: "Copy table" }));
    await waitFor(() => {
      expect(fake.asked("copy").at(-1)?.request.figure).toBe(figure);
    });
  });
});

describe("the choice of a figure", () => {
  it("offers what was measured; of the others it says what to measure", async () => {
    const fake = fakeOf("usual");
    fake.world.results.others = fake.world.results.others.map((other) =>
      other.figure === "context" ? other : { ...other, groups: [] },
    );
    await show(Compare, fake);
    expect(await screen.findByRole("radio", { name: "Context" })).toBeEnabled();
    for (const name of ["Users", "First token", "Quantization", "Sustained"]) {
      expect(screen.getByRole("radio", { name })).toBeDisabled();
    }
    const missing = within(screen.getByRole("region", { name: "Not measured yet" }));
    expect(missing.getAllByRole("term").map((each) => each.textContent)).toEqual([
      "Users",
      "First token",
      "Quantization",
      "Sustained",
    ]);
    expect(missing.getByText(/preset Sustained/)).toBeInTheDocument();
  });

  it("is a group of radio buttons without faults, and goes by arrow keys", async () => {
    const { container } = await show(Compare);
    await screen.findByRole("radio", { name: "Speeds", checked: true });
    expect(await faults(container)).toEqual([]);
  });

  it("keeps what was chosen for each figure", async () => {
    const user = userEvent.setup();
    const { states } = await show(Compare);
    await user.click(await screen.findByRole("checkbox", { name: /SmolLM2.* F16/ }));
    const speeds = [...states.results.chosen];
    await user.click(screen.getByRole("radio", { name: "Users" }));
    await titled(users.data);
    await user.click(screen.getByRole("radio", { name: "Speeds" }));
    expect([...states.results.chosen].sort()).toEqual([...speeds].sort());
  });
});

describe("the way through a timeline", () => {
  const marks = (firstToken.data as unknown as FigureData).marks;

  it("goes down through the parts of a wait and what was reused", () => {
    const repeated = marks.findIndex(
      (mark) => isHeadline(mark) && mark.text.startsWith("Repeated"),
    );
    const kinds: string[] = [];
    let at = repeated;
    for (let step = 0; step < 20; step += 1) {
      const to = walk(marks, at, { key: "ArrowDown" });
      if (to === null || to === at) break;
      at = to;
      kinds.push(marks[at]?.kind ?? "");
    }
    expect(new Set(kinds)).toEqual(new Set(["part", "sample", "reused"]));
    expect(walk(marks, at, { key: "ArrowLeft" })).toBe(repeated);
  });

  it("is told to those who do not see it", () => {
    const words = inWords(firstToken.data as unknown as FigureData);
    expect(words).toContain("511 of 512 prompt tokens reused from the cache");
  });
});

describe("a run's page", () => {
  it("shows what another kind of test found, and lets a flagged result be allowed", async () => {
    const user = userEvent.setup();
    const fake = fakeOf("usual");
    const test = fake.world.pages["run 1"]?.tests[0];
    if (!test) throw new Error("the world has it");
    test.suspect = "It is 40 times faster than the memory of any known device.";
    test.readings = [{ name: "Decode, all together", value: "401 tok/s" }];
    test.mean = null;
    const { states } = await show(Compare, fake);
    states.app.go("compare", "run 1");
    expect(await screen.findByText(/faster than the memory/)).toBeInTheDocument();
    expect(screen.getByText("Decode, all together")).toBeInTheDocument();
    await user.click(screen.getByRole("button", { name: "Allow it in figures" }));
    expect(await screen.findByRole("button", { name: "Leave it out again" })).toBeInTheDocument();
    expect(fake.asked("allow_test")).toEqual([{ test: test.id, allowed: true }]);
  });

  it("shows joules, clock and temperature where they could be read", async () => {
    const fake = fakeOf("usual");
    const test = fake.world.pages["run 1"]?.tests[0];
    const [sample] = test?.samples ?? [];
    if (!test || !sample) throw new Error("the world has it");
    test.joules_per_token = 0.42;
    sample.clock_hz = 3_140_000_000;
    sample.temperature_c = 71;
    const { states } = await show(Compare, fake);
    states.app.go("compare", "run 1");
    expect(await screen.findByText(/0\.42\sJ for\s+each token/)).toBeInTheDocument();
    expect(screen.getByText("3.14")).toBeInTheDocument();
    expect(screen.getByText("71")).toBeInTheDocument();
  });
});
