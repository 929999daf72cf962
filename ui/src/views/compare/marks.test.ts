import { describe, expect, it } from "vitest";
import type { FigureData, Mark, MarkKind } from "$lib/backend/bindings";
import four from "$lib/backend/fixtures/four.json";
import { inWords, isHeadline, markAt, walk } from "./marks";

const data = four.data as unknown as FigureData;
const marks = data.marks;

/** Index of a mark. */
function find(
  kind: MarkKind,
  row: number,
  panel: number,
  repetition: number | null = null,
): number {
  const found = marks.findIndex(
    (mark) =>
      mark.kind === kind &&
      mark.row === row &&
      mark.panel === panel &&
      mark.repetition === repetition,
  );
  expect(found).toBeGreaterThanOrEqual(0);
  return found;
}

const press = (key: string, shiftKey = false) => ({ key, shiftKey });

describe("by keyboard", () => {
  it("the first arrow leads to the first bar, the last one backwards", () => {
    expect(walk(marks, null, press("ArrowRight"))).toBe(find("bar", 0, 0));
    expect(walk(marks, null, press("ArrowLeft"))).toBe(find("bar", 3, 1));
  });

  it("right goes from prefill to decode and on to the next row, and stays at the end", () => {
    const way = [find("bar", 0, 0)];
    for (let step = 0; step < 9; step += 1) {
      way.push(walk(marks, way.at(-1) ?? null, press("ArrowRight")) ?? -1);
    }
    const bars = marks.flatMap((mark, at) => (isHeadline(mark) ? [at] : []));
    expect(bars).toHaveLength(8);
    expect(way).toEqual([...bars, bars[7], bars[7]]);
  });

  it.each(["ArrowDown", "Shift+ArrowRight"])(
    "%s goes through the ceiling and the samples",
    (key) => {
      const down = press(key.replace("Shift+", ""), key.startsWith("Shift"));
      let at = find("bar", 1, 1);
      const seen: string[] = [];
      for (let step = 0; step < 7; step += 1) {
        at = walk(marks, at, down) ?? -1;
        seen.push(marks[at]?.kind ?? "");
      }
      expect(seen).toEqual(["ceiling", "sample", "sample", "sample", "sample", "sample", "sample"]);
      expect(at).toBe(find("sample", 1, 1, 5));
    },
  );

  it("up goes back to the bar and stays there", () => {
    const sample = find("sample", 0, 0, 1);
    const bar = find("bar", 0, 0);
    expect(walk(marks, sample, press("ArrowUp"))).toBe(bar);
    expect(walk(marks, bar, press("ArrowUp"))).toBe(bar);
  });

  it("left leads from a sample to its own bar, right to the next bar", () => {
    const sample = find("sample", 1, 0, 3);
    expect(walk(marks, sample, press("ArrowLeft"))).toBe(find("bar", 1, 0));
    expect(walk(marks, sample, press("ArrowRight"))).toBe(find("bar", 1, 1));
  });

  it("Home and End lead to the first and the last bar", () => {
    expect(walk(marks, find("sample", 1, 0, 3), press("Home"))).toBe(find("bar", 0, 0));
    expect(walk(marks, null, press("End"))).toBe(find("bar", 3, 1));
  });

  it("other keys, and keys of the window, lead nowhere", () => {
    expect(walk(marks, 0, press("a"))).toBeNull();
    expect(walk(marks, 0, { key: "ArrowRight", altKey: true })).toBeNull();
    expect(walk([], null, press("ArrowRight"))).toBeNull();
  });
});

describe("by pointer", () => {
  const middle = (mark: Mark | undefined): [number, number] =>
    mark ? [mark.x + mark.w / 2, mark.y + mark.h / 2] : [-1, -1];

  it("every mark is found at its middle", () => {
    marks.forEach((mark, at) => {
      const found = markAt(data, ...middle(mark));
      // Samples may lie on each other: the one found is at the same place then.
      if (found !== at) expect(middle(marks[found ?? -1])).toEqual(middle(mark));
    });
  });

  it("near a sample is the sample, in the open nothing", () => {
    const sample = marks[find("sample", 0, 0, 4)];
    if (!sample) throw new Error("it is there");
    expect(markAt(data, sample.x + sample.w + 2, sample.y + 2)).toBe(find("sample", 0, 0, 4));
    expect(markAt(data, 2, 2)).toBeNull();
  });
});

it("in words a figure is its bars", () => {
  expect(inWords(data)).toContain("Q4_1, prefill: 300 ± 13 tok/s, 5 samples");
  expect(inWords(data)).not.toContain("sample 1 of 5");
});
