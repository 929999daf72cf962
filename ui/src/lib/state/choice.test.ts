import { describe, expect, it } from "vitest";
import type { FigureName, ResultRow, ResultsView } from "$lib/backend/bindings";
import { automatic, automaticOf, groupsOf, labelOf, stillThere } from "./choice";

const speed = { mean: 100, deviation: 1, samples: [100], tokens: 512, depth: 0, at: "" };

function row(id: string, quantization: string, more: Partial<ResultRow> = {}): ResultRow {
  return {
    id,
    run: "run",
    quantization,
    differs: "",
    at: "2026-11-30T14:02:00Z",
    elsewhere: null,
    prefill: speed,
    decode: speed,
    warnings: [],
    noted: false,
    ...more,
  };
}

function named(groups: ResultRow[][]) {
  return groups.map((rows, at) => ({ name: `model ${at}`, rows }));
}

function view(...groups: ResultRow[][]): ResultsView {
  return { groups: named(groups), others: [], runs: [], calibrated: true };
}

describe("what is shown where nobody has chosen", () => {
  it("is the newest of each quantization of the model measured last", () => {
    const results = view(
      [row("new", "Q4_0"), row("old", "Q4_0"), row("other", "Q8_0")],
      [row("before", "Q4_0")],
    );
    expect(automatic(results)).toEqual(["new", "other"]);
  });

  it("keeps to the settings of the newest result where it can", () => {
    const deep = { differs: "d4096" };
    const results = view([
      row("shallow Q4", "Q4_0"),
      row("deep Q8", "Q8_0", deep),
      row("shallow Q8", "Q8_0"),
      row("deep F16", "F16", deep),
    ]);
    expect(automatic(results)).toEqual(["shallow Q4", "shallow Q8", "deep F16"]);
  });

  it("is from this machine, unless everything comes from others", () => {
    const other = { elsewhere: "Jetson" };
    expect(automatic(view([row("far", "Q4_0", other)], [row("near", "Q8_0")]))).toEqual(["near"]);
    expect(automatic(view([row("far", "Q4_0", other)]))).toEqual(["far"]);
  });

  it("leaves out what has no speed at all", () => {
    const none = { prefill: null, decode: null };
    expect(automatic(view([row("none", "Q4_0", none)], [row("some", "Q8_0")]))).toEqual(["some"]);
    expect(automatic(view())).toEqual([]);
  });
});

it("what was chosen and is gone is not chosen any more", () => {
  const results = view([row("a", "Q4_0"), row("b", "Q8_0")]);
  expect(stillThere(["gone", "b"], results.groups)).toEqual(["b"]);
});

it("a result is called by its quantization and by what differs", () => {
  expect(labelOf(row("a", "Q8_0"))).toBe("Q8_0");
  expect(labelOf(row("a", "Q8_0", { differs: "d4096" }))).toBe("Q8_0, d4096");
});

describe("what another figure shows where nobody has chosen", () => {
  const other = (figure: FigureName, ...groups: ResultRow[][]): ResultsView => ({
    ...view(),
    others: [{ figure, groups: named(groups) }],
  });

  it("is what the newest run of the model measured last has", () => {
    const results = other(
      "context",
      [row("new", "Q4_0"), row("same run", "Q8_0"), row("old", "Q4_0", { run: "before" })],
      [row("another model", "Q4_0")],
    );
    expect(automaticOf(results, "context")).toEqual(["new", "same run"]);
    expect(automaticOf(results, "users")).toEqual([]);
    expect(groupsOf(results, "context")).toHaveLength(2);
  });

  it("is each quantization of the model measured last, whichever run it is from", () => {
    const results = other("quantization", [
      row("new Q4", "Q4_0"),
      row("old Q4", "Q4_0", { run: "before" }),
      row("Q8", "Q8_0", { run: "before" }),
    ]);
    expect(automaticOf(results, "quantization")).toEqual(["new Q4", "Q8"]);
  });
});
