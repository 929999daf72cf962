// The way through a figure, by keyboard and by pointer. Everything comes from its data layer.

import type { FigureData, Mark } from "$lib/backend/bindings";

/** A mark whose words say the whole cell: one stop for a keyboard. */
export function isHeadline(mark: Mark): boolean {
  return mark.kind === "bar" || mark.kind === "point" || mark.kind === "missing";
}

/** What a key press is made of here. */
export interface Press {
  key: string;
  shiftKey?: boolean;
  ctrlKey?: boolean;
  altKey?: boolean;
  metaKey?: boolean;
}

/**
 * Where a key leads from a mark (`null` = from outside), as an index into the marks; `null` where
 * the key does not lead anywhere, so that it is left to the window.
 *
 * Left and right go through the headlines in reading order. Up and down (or Shift with left and
 * right) go through what belongs to one of them: its ceiling, its parts and its samples. Home and End go to
 * the first and the last headline. Ends are ends: nothing wraps around.
 */
export function walk(marks: Mark[], at: number | null, press: Press): number | null {
  if (press.ctrlKey || press.altKey || press.metaKey) return null;
  const headlines = marks.flatMap((mark, index) => (isHeadline(mark) ? [index] : []));
  const first = headlines[0];
  const last = headlines.at(-1);
  if (first === undefined || last === undefined) return null;
  if (press.key === "Home") return first;
  if (press.key === "End") return last;
  const step = stepOf(press);
  if (step === null) return null;
  const current = at === null ? undefined : marks[at];
  if (at === null || !current) return step.by > 0 ? first : last;
  if (step.inside) {
    const cell = marks.flatMap((mark, index) => (sameCell(mark, current) ? [index] : []));
    return cell[cell.indexOf(at) + step.by] ?? at;
  }
  const headline = marks.findIndex((mark) => isHeadline(mark) && sameCell(mark, current));
  // From a sample, "left" leads to its own bar first.
  if (step.by < 0 && headline >= 0 && headline !== at) return headline;
  return headlines[headlines.indexOf(headline) + step.by] ?? at;
}

function stepOf(press: Press): { by: 1 | -1; inside: boolean } | null {
  switch (press.key) {
    case "ArrowRight":
      return { by: 1, inside: press.shiftKey === true };
    case "ArrowLeft":
      return { by: -1, inside: press.shiftKey === true };
    case "ArrowDown":
      return { by: 1, inside: true };
    case "ArrowUp":
      return { by: -1, inside: true };
    default:
      return null;
  }
}

function sameCell(a: Mark, b: Mark): boolean {
  return a.cell === b.cell;
}

/** How far a pointer may be from a small mark and still mean it, in user units. */
const NEAR = 3;

/**
 * The mark under a point in user units: the smallest one there, so that a sample is found on a
 * band and a ceiling on a bar. `null` = none.
 */
export function markAt(data: FigureData, x: number, y: number): number | null {
  let found: number | null = null;
  let least = Infinity;
  data.marks.forEach((mark, index) => {
    const away = Math.hypot(
      Math.max(mark.x - x, 0, x - mark.x - mark.w),
      Math.max(mark.y - y, 0, y - mark.y - mark.h),
    );
    // Distance comes first: a point inside one mark never means its neighbour.
    const rank = away * 1e9 + mark.w * mark.h;
    if (away <= NEAR && rank < least) {
      least = rank;
      found = index;
    }
  });
  return found;
}

/** Every headline in words, for those who do not see the picture. */
export function inWords(data: FigureData): string {
  return data.marks
    .filter(isHeadline)
    .map((mark) => mark.text)
    .join(". ");
}
