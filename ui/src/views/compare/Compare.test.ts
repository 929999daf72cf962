import { fireEvent, screen, waitFor, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import type { FigureData } from "$lib/backend/bindings";
import { never } from "$lib/backend/fake";
import four from "$lib/backend/fixtures/four-expected.json";
import { faults } from "$lib/testing/axe";
import { fakeOf, show } from "$lib/testing/render";
import Compare from "./Compare.svelte";

const data = four.data as unknown as FigureData;

beforeEach(() => {
  location.hash = "";
});

const figure = () => screen.findByRole("application", { name: `Figure: ${data.title}` });
const readout = () => screen.getByTestId("readout").textContent;

/** Goes to the page of a run as a link in the page does. */
async function openRun(
  states: { app: { go: (view: "compare", rest: string) => void } },
  run: string,
) {
  states.app.go("compare", run);
  await screen.findByRole("heading", { name: "Run", level: 1 });
}

describe("the figure", () => {
  it("is the app's drawing, put into the page once", async () => {
    const { container, fake } = await show(Compare);
    const drawn = (await figure()).querySelector("svg");
    const parsed = new DOMParser().parseFromString(four.svg, "image/svg+xml").documentElement;
    expect(parsed.childElementCount).toBeGreaterThan(50);
    expect(
      [...(drawn?.children ?? [])].every((each, at) => each.isEqualNode(parsed.children.item(at))),
    ).toBe(true);
    expect(drawn?.childElementCount).toBe(parsed.childElementCount);
    expect(container.querySelectorAll(".drawing svg")).toHaveLength(1);
    expect(fake.asked("figure")).toHaveLength(1);
  });

  it("is asked for the newest of each quantization where nothing is chosen", async () => {
    const { fake } = await show(Compare);
    await figure();
    const [asked] = fake.asked("figure");
    expect(asked?.request.results.map((id) => id.split(" ").at(-1))).toEqual([
      "F16",
      "Q8_0",
      "Q4_1",
      "Q4_0",
    ]);
    expect(screen.getByText("4 of 9 results")).toBeInTheDocument();
  });

  it("is asked for again where the choice, the ceiling or the text size change, not the theme", async () => {
    const user = userEvent.setup();
    const { fake, states } = await show(Compare);
    await figure();
    await user.click(screen.getByRole("checkbox", { name: "SmolLM2 135M Instruct F16" }));
    await waitFor(() => {
      expect(fake.asked("figure").at(-1)?.request.results).toHaveLength(3);
    });
    await user.click(screen.getByRole("button", { name: "Ceiling", pressed: true }));
    await waitFor(() => {
      expect(fake.asked("figure").at(-1)?.request.ceiling).toBe(false);
    });
    const before = fake.asked("figure").length;
    await states.app.change({ theme: "dark" });
    await states.app.change({ text_size: 1.2 });
    await waitFor(() => {
      expect(fake.asked("figure").at(-1)?.request.scale).toBe(1.2);
    });
    expect(fake.asked("figure")).toHaveLength(before + 1);
  });

  it("reads out what its data layer says, by keyboard, and nothing else", async () => {
    const user = userEvent.setup();
    await show(Compare);
    (await figure()).focus();
    const bars = data.marks.filter((mark) => mark.kind === "bar");
    for (const bar of bars) {
      await user.keyboard("{ArrowRight}");
      expect(readout()).toBe(bar.text);
    }
    await user.keyboard("{Home}{ArrowRight}{ArrowDown}");
    expect(readout()).toBe("Q4_0, decode: ceiling 200 tok/s");
    await user.keyboard("{Shift>}{ArrowRight}{/Shift}");
    expect(readout()).toMatch(/^Q4_0, decode: expected /);
    await user.keyboard("{Shift>}{ArrowRight}{/Shift}");
    expect(readout()).toBe(
      data.marks.find((mark) => mark.panel === 1 && mark.repetition === 1)?.text,
    );
    expect(screen.getByTestId("readout")).toHaveAttribute("aria-live", "polite");
    await user.keyboard("{Escape}");
    expect(readout()).toBe("");
  });

  it("keeps the reader's place when the ceiling goes", async () => {
    const user = userEvent.setup();
    await show(Compare);
    (await figure()).focus();
    await user.keyboard("{End}");
    const ceiling = screen.getByRole("button", { name: "Ceiling" });
    await fireEvent.click(ceiling);
    await waitFor(() => {
      expect(readout()).toBe("F16, decode: 48.9 ± 1.6 tok/s, 5 samples");
    });
  });

  it("outlines the mark that is read, where the data layer has it", async () => {
    await show(Compare);
    const group = await figure();
    const bar = data.marks.find((mark) => mark.kind === "bar" && mark.row === 2);
    if (!bar) throw new Error("it is there");
    await fireEvent.pointerMove(group, { clientX: bar.x + bar.w / 2, clientY: bar.y + bar.h / 2 });
    expect(readout()).toBe(bar.text);
    expect(screen.getByTestId("outline").style.left).toBe(`${bar.x - 4}px`);
    await fireEvent.pointerLeave(group);
    expect(readout()).toBe("");
  });

  it("explains a row by Enter, and says so in the list", async () => {
    const user = userEvent.setup();
    const { fake } = await show(Compare);
    (await figure()).focus();
    await user.keyboard("{End}{Enter}");
    await waitFor(() => {
      expect(fake.asked("figure").at(-1)?.request.focus).toContain("F16");
    });
    const explained = await screen.findByRole("button", {
      name: "Explain SmolLM2 135M Instruct F16",
      current: true,
    });
    expect(explained).toBeInTheDocument();
    expect(await figure()).toHaveFocus();
  });

  it("a drawing with anything else than shapes and words is not shown", async () => {
    const fake = fakeOf("usual");
    const { compare } = await import("$lib/backend/fake/compare");
    fake.answer("figure", async (args, self, tell) => ({
      ...(await compare.figure(args, self, tell)),
      svg: '<svg xmlns="http://www.w3.org/2000/svg"><script>document.title="broken"</script></svg>',
    }));
    const { container } = await show(Compare, fake);
    expect(await screen.findByText(/The drawing holds the element script/)).toBeInTheDocument();
    expect(container.querySelector("script")).toBeNull();
  });
});

describe("the ceiling", () => {
  it("cannot be asked for without a read speed, and the page says why", async () => {
    const fake = fakeOf("usual");
    const { compare } = await import("$lib/backend/fake/compare");
    fake.answer("figure", async (args, self, tell) => ({
      ...(await compare.figure(args, self, tell)),
      has_ceiling: false,
    }));
    await show(Compare, fake);
    await figure();
    expect(screen.getByRole("button", { name: "Ceiling" })).toBeDisabled();
    expect(screen.getByText(/The read speed is not known/)).toBeInTheDocument();
    expect(screen.getByRole("link", { name: "Measure it in Settings" })).toHaveAttribute(
      "href",
      "#settings",
    );
  });
});

describe("the overlays", () => {
  it("are switched by keyboard, each on its own", async () => {
    const user = userEvent.setup();
    const { fake } = await show(Compare);
    await figure();
    const last = () => {
      const request = fake.asked("figure").at(-1)?.request;
      return [request?.ceiling, request?.expected, request?.breakdown];
    };
    expect(last()).toEqual([true, true, false]);
    screen.getByRole("button", { name: "Expected", pressed: true }).focus();
    await user.keyboard("{Enter}");
    await waitFor(() => {
      expect(last()).toEqual([true, false, false]);
    });
    await user.tab();
    expect(screen.getByRole("button", { name: "Breakdown", pressed: false })).toHaveFocus();
    await user.keyboard(" ");
    await waitFor(() => {
      expect(last()).toEqual([true, false, true]);
    });
  });

  it("that take a calibration are off without one, and the page says why", async () => {
    await show(Compare, "uncalibrated");
    await figure();
    expect(screen.getByRole("button", { name: "Ceiling" })).toBeEnabled();
    expect(screen.getByRole("button", { name: "Expected" })).toBeDisabled();
    expect(screen.getByRole("button", { name: "Breakdown" })).toBeDisabled();
    expect(screen.getAllByText(/This machine is not calibrated/).length).toBeGreaterThan(0);
  });
});

describe("the figures of what is expected", () => {
  it.each(["Roofline", "Breakdown", "Estimate"])("%s takes a calibration", async (name) => {
    await show(Compare, "uncalibrated");
    await figure();
    expect(screen.getByRole("radio", { name })).toBeDisabled();
    const section = screen.getByRole("region", { name: "Not calibrated yet" });
    expect(section).toHaveTextContent(name);
    expect(within(section).getByRole("button", { name: /^Calibrate/ })).toBeEnabled();
  });

  it.each([
    ["Roofline", "roofline"],
    ["Breakdown", "breakdown"],
    ["Estimate", "estimate"],
  ])("%s is drawn of the results of speeds", async (name, asked) => {
    const user = userEvent.setup();
    const { fake } = await show(Compare);
    await figure();
    await user.click(screen.getByRole("radio", { name }));
    await waitFor(() => {
      expect(fake.asked("figure").at(-1)?.request.figure).toBe(asked);
    });
    expect(fake.asked("figure").at(-1)?.request.results).toHaveLength(4);
    expect(screen.queryByRole("button", { name: "Ceiling" })).toBeNull();
  });
});

describe("the explanation", () => {
  const column = () => screen.getByRole("complementary", { name: "Explanation" });
  const numbers = () =>
    [...column().querySelectorAll(".big")].map((each) => each.textContent.replace("\u00a0", " "));

  it("is three statements, each led by its number, and the others a press away", async () => {
    const user = userEvent.setup();
    await show(Compare);
    await figure();
    expect(numbers()).toEqual(["71 %", "60 %", "2.4 ×"]);
    const phases = [...column().querySelectorAll(".big")].map((each) =>
      [...each.classList].filter((name) => /^(pre|dec)$/.test(name)),
    );
    expect(phases).toEqual([["dec"], ["dec"], ["pre"]]);
    const more = screen.getByRole("button", { name: "More (2)", expanded: false });
    more.focus();
    await user.keyboard("{Enter}");
    expect(numbers()).toEqual(["71 %", "60 %", "2.4 ×", "98 %", "23 kB"]);
    expect(screen.getByRole("button", { name: "Less", expanded: true })).toHaveFocus();
  });

  it("names what a statement rests on", async () => {
    await show(Compare);
    await figure();
    expect(within(column()).getAllByText("Calibrated.")).toHaveLength(2);
  });

  it("of a machine that is not calibrated says so, and calibrates", async () => {
    const user = userEvent.setup();
    const { fake } = await show(Compare, "uncalibrated");
    await figure();
    expect(numbers()).toEqual(["60 %", "8.5 ms", "2.4 ×"]);
    const why = screen.getByRole("region", { name: "Nothing is expected of this result" });
    expect(why).toHaveTextContent("This machine is not calibrated");
    const asked = fake.asked("figure").length;
    await user.click(within(why).getByRole("button", { name: "Calibrate (about 15 s)" }));
    expect(fake.asked("calibrate")).toHaveLength(1);
    await waitFor(() => {
      expect(numbers()).toEqual(["71 %", "60 %", "2.4 ×"]);
    });
    expect(fake.asked("figure").length).toBeGreaterThan(asked);
    expect(screen.queryByRole("region", { name: "Nothing is expected of this result" })).toBeNull();
  });

  it("of another machine's result says why nothing is expected, and offers no calibration", async () => {
    const user = userEvent.setup();
    await show(Compare);
    await figure();
    for (const box of screen.getAllByRole("checkbox", { checked: true })) await user.click(box);
    await user.click(screen.getByRole("checkbox", { name: "Qwen3 1.7B Q4_K_M" }));
    const why = await screen.findByRole("region", { name: "Nothing is expected of this result" });
    expect(why).toHaveTextContent("This result comes from Jetson Orin Nano");
    expect(within(why).queryByRole("button")).toBeNull();
    expect(screen.getByRole("button", { name: "Expected" })).toBeDisabled();
    expect(screen.getByText(/Of another machine only what was measured/)).toBeInTheDocument();
  });

  it("says what to beware of, with advice", async () => {
    await show(Compare, "failures");
    const beware = await screen.findByRole("list", { name: "Beware" });
    expect(beware).toHaveTextContent("SmolLM2 135M Instruct Q4_1: swap in use");
    expect(beware).toHaveTextContent("Close other programs, or choose a smaller quantization.");
  });
});

describe("the list", () => {
  it("has the newest first, what differs, and runs without a result below", async () => {
    await show(Compare, "failures");
    await figure();
    const group = screen.getByRole("region", { name: "Qwen3 0.6B" });
    const names = within(group)
      .getAllByRole("checkbox")
      .map((box) => box.getAttribute("aria-label"));
    expect(names).toEqual(["Qwen3 0.6B Q8_0, d4096", "Qwen3 0.6B Q8_0"]);
    const lost = screen.getByRole("region", { name: "Runs without a result" });
    expect(lost).toHaveTextContent("You stopped it before its first sample.");
  });

  it("goes up and down by arrow keys", async () => {
    const user = userEvent.setup();
    await show(Compare);
    await figure();
    const boxes = screen.getAllByRole("checkbox");
    boxes[0]?.focus();
    await user.keyboard("{ArrowDown}{ArrowDown}");
    expect(boxes[2]).toHaveFocus();
    await user.keyboard("{ArrowUp}");
    expect(boxes[1]).toHaveFocus();
  });

  it("with nothing chosen offers the newest", async () => {
    const user = userEvent.setup();
    const { states } = await show(Compare);
    await figure();
    for (const box of screen.getAllByRole("checkbox", { checked: true })) await user.click(box);
    expect(screen.queryByRole("application")).toBeNull();
    expect(screen.getByRole("button", { name: "Export" })).toBeDisabled();
    await user.click(screen.getByRole("button", { name: "Choose the newest" }));
    await figure();
    expect(states.results.chosen.size).toBe(4);
  });
});

describe("export", () => {
  async function openDialog(form: string, world = fakeOf("usual")) {
    const user = userEvent.setup();
    const shown = await show(Compare, world);
    await figure();
    await user.click(screen.getByRole("button", { name: "Export" }));
    await user.click(screen.getByRole("menuitem", { name: form }));
    const dialog = await screen.findByRole("dialog");
    return { ...shown, user, dialog: within(dialog) };
  }

  it.each([
    ["SVG", "svg", "svg"],
    ["PDF", "pdf", "pdf"],
    ["CSV", "csv", "csv"],
    ["Markdown", "markdown", "md"],
    ["JSON", "json", "json"],
  ])("%s saves what is shown", async (name, form, ending) => {
    const { fake, user, dialog } = await openDialog(name);
    expect(dialog.getByLabelText("Save to")).toHaveValue(
      `/home/ada/Pictures/SmolLM2 135M Instruct.${ending}`,
    );
    await user.click(dialog.getByRole("button", { name: "Save" }));
    expect(await screen.findByText(/^Saved .*\(48 kB\)\.$/)).toBeInTheDocument();
    expect(screen.queryByRole("dialog")).toBeNull();
    const [asked] = fake.asked("export");
    expect(asked?.request).toMatchObject({ form, ceiling: true, replace: false, dark: false });
    expect(asked?.request.results).toEqual(fake.asked("figure")[0]?.request.results);
  });

  it("a PNG says its pixels for each size, and takes dark colours", async () => {
    const { fake, user, dialog } = await openDialog("PNG 2×");
    const pixels = () => dialog.getByTestId("pixels").textContent.trim().replaceAll("\u00a0", " ");
    await waitFor(() => {
      expect(pixels()).toBe("1,256 × 1,370 pixels");
    });
    await user.click(dialog.getByRole("radio", { name: "3×, for print" }));
    await waitFor(() => {
      expect(pixels()).toBe("1,884 × 2,055 pixels");
    });
    await user.click(dialog.getByRole("radio", { name: "Dark" }));
    await user.click(dialog.getByRole("button", { name: "Save" }));
    await screen.findByText(/^Saved /);
    expect(fake.asked("export")[0]?.request).toMatchObject({ pixels: 3, scale: 1, dark: true });
  });

  it("numbers have no colours and no size", async () => {
    const { dialog } = await openDialog("CSV");
    expect(dialog.queryByRole("radiogroup")).toBeNull();
  });

  it("asks before it replaces a file, and forgets that for another path", async () => {
    const fake = fakeOf("usual");
    fake.answer("export", ({ request }) => {
      if (!request.replace) throw { code: "file_exists", message: "It is there.", details: null };
      return { path: request.path, bytes: 10 };
    });
    const { user, dialog } = await openDialog("SVG", fake);
    await user.click(dialog.getByRole("button", { name: "Save" }));
    expect(await dialog.findByRole("alert")).toHaveTextContent(
      "There is a file of this name already",
    );
    const field = dialog.getByLabelText("Save to");
    await user.type(field, "x");
    expect(dialog.getByRole("button", { name: "Save" })).toBeInTheDocument();
    await user.type(field, "{Backspace}");
    await user.click(dialog.getByRole("button", { name: "Replace" }));
    await screen.findByText(/^Saved /);
    expect(fake.asked("export").map(({ request }) => request.replace)).toEqual([false, true]);
  });

  it("a failure stays in the dialog, with what was typed", async () => {
    const fake = fakeOf("usual");
    fake.refuse("export", { code: "not_writable", message: "The disk is full. Make room." });
    const { user, dialog } = await openDialog("SVG", fake);
    const field = dialog.getByLabelText("Save to");
    await user.clear(field);
    expect(dialog.getByRole("button", { name: "Save" })).toBeDisabled();
    await user.type(field, "~/x{Enter}");
    expect(await dialog.findByText(/The disk is full/)).toBeInTheDocument();
    expect(field).toHaveValue("~/x");
  });

  it("the picker's path goes into the field", async () => {
    const { fake, user, dialog } = await openDialog("SVG");
    fake.world.picked = "/tmp/picked.svg";
    await user.click(dialog.getByRole("button", { name: "Choose..." }));
    await waitFor(() => {
      expect(dialog.getByLabelText("Save to")).toHaveValue("/tmp/picked.svg");
    });
    expect(fake.asked("pick_save")[0]?.form).toBe("svg");
  });

  it("what was saved can be shown in its folder", async () => {
    const { fake, user, dialog } = await openDialog("SVG");
    await user.click(dialog.getByRole("button", { name: "Save" }));
    await user.click(await screen.findByRole("button", { name: "Show in its folder" }));
    expect(fake.asked("reveal")[0]?.path).toContain("SmolLM2 135M Instruct.svg");
  });

  it.each([
    ["Copy picture", "picture", "The picture is on the clipboard."],
    ["Copy table", "table", "The table is on the clipboard."],
  ])("%s says that it did", async (name, what, said) => {
    const user = userEvent.setup();
    const { fake } = await show(Compare);
    await figure();
    await user.click(screen.getByRole("button", { name: "Export" }));
    await user.click(screen.getByRole("menuitem", { name }));
    expect(await screen.findByText(said)).toBeInTheDocument();
    expect(fake.asked("copy")[0]?.what).toBe(what);
  });
});

describe("the page of a run", () => {
  it("has what was measured, how, and where", async () => {
    const { states } = await show(Compare);
    await openRun(states, "run 1");
    const test = await screen.findByRole("region", { name: "SmolLM2 135M Instruct Q4_1, pp512" });
    expect(test).toHaveTextContent("300 ± 13 tok/s, median 296");
    expect(within(test).getAllByRole("row")).toHaveLength(6);
    expect(within(test).getByText("n_threads")).toBeInTheDocument();
    expect(within(test).getByText("CPU variant")).toBeInTheDocument();
    expect(within(test).getByText("CPU, weights")).toBeInTheDocument();
    // Unknown is not zero.
    expect(within(test).getByText("Temperature").nextElementSibling).toHaveTextContent("unknown");
  });

  it("of a failed test has the sentence, the advice, the warnings and the log", async () => {
    const { states } = await show(Compare, "failures");
    await openRun(states, "run failed");
    const test = await screen.findByRole("region", { name: "Qwen3 30B-A3B Q4_K_M, pp512" });
    expect(test).toHaveTextContent("Failed. The system ended the engine for lack of memory.");
    expect(test).toHaveTextContent("CPU_Mapped model buffer size");
    expect(test).toHaveTextContent("Swap in use. 2.4 GB of memory lay on the disk.");
    expect(test).toHaveTextContent("not measured");
  });

  it("is deleted, and brought back by keyboard until it is left", async () => {
    const user = userEvent.setup();
    const { fake, states } = await show(Compare);
    await openRun(states, "run 1");
    await user.click(await screen.findByRole("button", { name: "Delete this run" }));
    const undo = await screen.findByRole("button", { name: "Undo" });
    expect(undo).toHaveFocus();
    expect(fake.asked("delete_runs")).toEqual([{ runs: ["run 1"] }]);
    await waitFor(() => {
      expect([...states.results.chosen]).toEqual(["result of Qwen3 0.6B Q8_0 d4096"]);
    });
    await user.keyboard("{Enter}");
    expect(await screen.findByRole("button", { name: "Delete this run" })).toHaveFocus();
    expect(fake.asked("restore_runs")).toEqual([{ runs: ["run 1"] }]);
    expect(screen.getByRole("heading", { name: "Tests" })).toBeInTheDocument();
  });

  it("says where deleting failed, and keeps the run", async () => {
    const user = userEvent.setup();
    const { fake, states } = await show(Compare);
    fake.refuse("delete_runs");
    await openRun(states, "run 1");
    await user.click(await screen.findByRole("button", { name: "Delete this run" }));
    expect(await screen.findByText(/refuses delete_runs/)).toBeInTheDocument();
    expect(screen.getByRole("heading", { name: "Tests" })).toBeInTheDocument();
  });

  it("keeps a note: by Ctrl+Enter, by leaving the field, by leaving the page", async () => {
    const user = userEvent.setup();
    const { fake, states } = await show(Compare);
    await openRun(states, "run 1");
    const note = await screen.findByLabelText("Note");
    await user.type(note, "window open");
    expect(screen.getByTestId("note-state")).toHaveTextContent("Not saved yet");
    await user.keyboard("{Control>}{Enter}{/Control}");
    await waitFor(() => {
      expect(screen.getByTestId("note-state").textContent.trim()).toBe("Saved");
    });
    await user.type(note, ", fan on");
    await user.tab();
    await waitFor(() => {
      expect(fake.world.pages["run 1"]?.note).toBe("window open, fan on");
    });
    await user.type(note, "!");
    states.app.go("compare");
    await figure();
    await waitFor(() => {
      expect(fake.world.pages["run 1"]?.note).toBe("window open, fan on!");
    });
    expect(fake.asked("set_note")).toHaveLength(3);
  });

  it("a note that could not be saved stays in the field, with a next step", async () => {
    const user = userEvent.setup();
    const { fake, states } = await show(Compare);
    fake.refuse("set_note");
    await openRun(states, "run 1");
    const note = await screen.findByLabelText("Note");
    await user.type(note, "x");
    await user.tab();
    expect(await screen.findByRole("button", { name: "Try again" })).toBeInTheDocument();
    expect(note).toHaveValue("x");
    expect(screen.getByTestId("note-state")).toHaveTextContent("Not saved yet");
  });

  it("gives focus back to the link that led there", async () => {
    const user = userEvent.setup();
    const { states } = await show(Compare);
    await figure();
    const link = screen.getByRole("link", { name: "Open its run" });
    await user.click(link);
    states.app.go("compare", "run 1");
    const back = await screen.findByRole("button", { name: "Back to the figure" });
    expect(back).toHaveFocus();
    await user.keyboard("{Enter}");
    await figure();
    await waitFor(() => {
      expect(screen.getByRole("link", { name: "Open its run" })).toHaveFocus();
    });
  });

  it("that is not there says so", async () => {
    const { states } = await show(Compare);
    await openRun(states, "run of long ago");
    expect(await screen.findByText(/This run is not in the history/)).toBeInTheDocument();
  });
});

describe("without anything to show", () => {
  it("nothing measured leads to Measure", async () => {
    const user = userEvent.setup();
    const { states } = await show(Compare, "empty");
    expect(await screen.findByText("Nothing is measured yet.")).toBeInTheDocument();
    await user.click(screen.getByRole("button", { name: "Go to Measure" }));
    expect(states.app.view).toBe("measure");
  });

  it("while the results are read it says so", async () => {
    const fake = fakeOf("usual");
    fake.answer("results", () => never());
    await show(Compare, fake);
    expect(screen.getByText("Reading the results")).toBeInTheDocument();
  });

  it("a failure of the list has a next step that works", async () => {
    const user = userEvent.setup();
    const fake = fakeOf("usual");
    const { compare } = await import("$lib/backend/fake/compare");
    fake.refuse("results");
    await show(Compare, fake);
    expect(await screen.findByText(/refuses results/)).toBeInTheDocument();
    fake.answer("results", compare.results);
    await user.click(screen.getByRole("button", { name: "Try again" }));
    await figure();
  });

  it("a failure of the figure has a next step that works", async () => {
    const user = userEvent.setup();
    const fake = fakeOf("usual");
    const { compare } = await import("$lib/backend/fake/compare");
    fake.refuse("figure");
    await show(Compare, fake);
    expect(await screen.findByText(/refuses figure/)).toBeInTheDocument();
    fake.answer("figure", compare.figure);
    await user.click(screen.getByRole("button", { name: "Try again" }));
    await figure();
  });
});

describe("names", () => {
  it("that are markup are names", async () => {
    const { container, states } = await show(Compare, "hostile");
    await screen.findByRole("application");
    expect(container.querySelector("img, b[onclick], svg[onload], script")).toBeNull();
    expect(screen.getByRole("heading", { name: /<img src=x/ })).toBeInTheDocument();
    await openRun(states, "run failed");
    await screen.findByRole("heading", { name: "Tests" });
    expect(container.querySelector("img, b[onclick], svg[onload], script")).toBeNull();
    expect(document.title).not.toBe("broken");
  });

  it("as long as they come stand whole in a title", async () => {
    await show(Compare, "long names");
    await screen.findByRole("application");
    const [heading] = screen.getAllByRole("heading", { level: 2, name: /exceedingly/ });
    expect(heading?.getAttribute("title")?.length).toBe(300);
  });
});

describe("for everyone", () => {
  it.each(["light", "dark"])("axe finds no fault, %s", async (theme) => {
    document.documentElement.dataset.theme = theme;
    const user = userEvent.setup();
    const { states } = await show(Compare, "failures");
    await figure();
    expect(await faults()).toEqual([]);
    await user.click(screen.getByRole("button", { name: "Export" }));
    expect(await faults()).toEqual([]);
    await user.click(screen.getByRole("menuitem", { name: "PNG 2×" }));
    await screen.findByRole("dialog");
    expect(await faults()).toEqual([]);
    await openRun(states, "run failed");
    await screen.findByRole("heading", { name: "Tests" });
    expect(await faults()).toEqual([]);
  });
});
