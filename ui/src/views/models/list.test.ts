import { describe, expect, it } from "vitest";
import type { ModelGroup } from "$lib/backend/bindings";
import { worlds } from "$lib/backend/fake";
import { isMeasurable, type Filters } from "$lib/state/models.svelte";
import { isFirstDay, matches, measuredCount, scaleEnd, scalesOf, shownGroups } from "./list";

const all: Filters = {
  words: "",
  onDisk: true,
  canBeMade: true,
  canBeDownloaded: true,
  onlyFitting: false,
};
const nothing = (): boolean => false;

function shown(filters: Partial<Filters>, groups = worlds.usual().models.groups): string[] {
  return shownGroups(groups, { ...all, ...filters }, nothing, nothing).flatMap(({ rows }) =>
    rows.map((row) => row.id),
  );
}

/** A model with every quantization that there is. */
function many(): ModelGroup {
  const [group] = worlds.usual().models.groups;
  if (!group) throw new Error("the world has a model");
  const [row] = group.rows;
  if (!row) throw new Error("the model has a row");
  const made = ["Q2_K", "Q3_K_M", "Q4_K_S", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "BF16"];
  group.rows = [
    row,
    ...made.map((quantization) => ({
      ...row,
      id: quantization,
      quantization,
      place: { place: "can_be_made" as const, from: "F16", lossy_source: false },
    })),
  ];
  return group;
}

describe("the list of models", () => {
  it("shows everything until something is left out", () => {
    expect(shown({})).toHaveLength(13);
  });

  it("leaves out by where a quantization is", () => {
    expect(shown({ canBeMade: false })).not.toContain("Qwen3 0.6B Q4_K_M");
    expect(shown({ onDisk: false })).toContain("Qwen3 0.6B Q4_K_M");
    expect(shown({ onDisk: false })).not.toContain("Qwen3 0.6B Q8_0");
  });

  it("leaves out what does not fit, and keeps what may fit", () => {
    const groups = worlds.usual().models.groups;
    const gemma = groups[2]?.rows[0];
    if (gemma) gemma.fits = null;
    const rows = shown({ onlyFitting: true }, groups);
    expect(rows).not.toContain("Qwen3 30B-A3B Q8_0");
    expect(rows).toContain("Gemma 3 270M it Q4_K_M");
  });

  it("finds by every word, in any order, whatever the case and the dashes", () => {
    expect(shown({ words: "instruct SMOLLM2-135m q4_1" })).toEqual(["SmolLM2 135M Instruct Q4_1"]);
    expect(shown({ words: "no such model" })).toEqual([]);
    expect(matches("cafe", ["Café au lait"])).toBe(true);
    expect(matches("  ", ["anything"])).toBe(true);
  });

  it("folds quantizations that can be made where there are many, and keeps the usual ones", () => {
    const group = many();
    const [folded] = shownGroups([group], all, nothing, nothing);
    expect(folded?.rows.map((row) => row.quantization)).toEqual(["Q4_0", "Q4_K_M", "Q6_K", "Q8_0"]);
    expect(folded?.folded).toBe(5);
  });

  it("unfolds on request, while searching, and what is being made", () => {
    const group = many();
    expect(shownGroups([group], all, () => true, nothing)[0]?.rows).toHaveLength(9);
    const searching = { ...all, words: "q2" };
    expect(shownGroups([group], searching, nothing, nothing)[0]?.rows).toHaveLength(1);
    const keep = shownGroups([group], all, nothing, (row) => row === "Q2_K")[0];
    expect(keep?.rows.map((row) => row.id)).toContain("Q2_K");
  });

  it("ends scales at round numbers that hold every value", () => {
    const ends = [0.7, 1, 1.01, 7.05, 99, 101, 205, 612, 1300];
    expect(ends.map(scaleEnd)).toEqual([0.7, 1, 1.2, 8, 100, 120, 250, 700, 1400]);
    expect(scaleEnd(0)).toBeNull();
  });

  it("has one scale for a column, ceilings among it, and none where nothing is known", () => {
    expect(scalesOf(worlds.usual().models.groups)).toEqual({ prefill: 700, decode: 250 });
    expect(scalesOf(worlds.empty().models.groups)).toEqual({ prefill: null, decode: null });
  });

  it("counts what is there and what of it was measured", () => {
    expect(measuredCount(worlds.usual().models.groups)).toEqual({
      there: 9,
      measured: 5,
      predicts: true,
    });
  });

  it("knows a first day by its folders and files", () => {
    expect(isFirstDay(worlds.empty().models.groups, 0)).toBe(true);
    expect(isFirstDay(worlds.empty().models.groups, 1)).toBe(false);
    expect(isFirstDay(worlds.usual().models.groups, 0)).toBe(false);
  });

  it("measures what is on disk with nothing against it, and the built-in model", () => {
    const measurable = worlds
      .failures()
      .models.groups.flatMap((group) =>
        group.rows.filter((row) => isMeasurable(group, row)).map((row) => row.id),
      );
    expect(measurable).toContain("Built-in 150M Q4_K_M");
    expect(measurable).toContain("SmolLM2 135M Instruct Q4_0");
    expect(measurable).not.toContain("SmolLM2 135M Instruct Q4_K_M");
    expect(measurable).not.toContain("Gemma 3 270M it Q4_K_M");
  });
});
