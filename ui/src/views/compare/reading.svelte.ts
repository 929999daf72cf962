import type { FigureData, Mark } from "$lib/backend/bindings";
import { walk, type Press } from "./marks";

/** The mark that is read out: the one under the pointer, or else the one the keyboard is at. */
export class Reading {
  #data: () => FigureData | null;
  #pointed = $state.raw<Mark | null>(null);
  #kept = $state.raw<Mark | null>(null);
  #keptRow = "";

  /** The mark, as it stands in the figure now; `null` = none. */
  readonly mark = $derived.by(() => this.#now());

  constructor(data: () => FigureData | null) {
    this.#data = data;
  }

  #now(): Mark | null {
    const data = this.#data();
    if (!data) return null;
    if (this.#pointed && data.marks.includes(this.#pointed)) return this.#pointed;
    const kept = this.#kept;
    if (!kept) return null;
    // Another drawing of the same results keeps the reader where they were.
    return (
      data.marks.find(
        (mark) =>
          mark.kind === kept.kind &&
          mark.panel === kept.panel &&
          mark.repetition === kept.repetition &&
          mark.at === kept.at &&
          mark.part === kept.part &&
          rowName(data, mark.row) === this.#keptRow,
      ) ?? null
    );
  }

  /** The pointer is at this mark, or at none. */
  point(index: number | null): void {
    this.#pointed = index === null ? null : (this.#data()?.marks[index] ?? null);
  }

  /** Goes where a key leads; `null` where it leads nowhere. */
  press(press: Press): Mark | null {
    const data = this.#data();
    if (!data) return null;
    const mark = this.mark;
    const to = walk(data.marks, mark ? data.marks.indexOf(mark) : null, press);
    return to === null ? null : this.keep(to);
  }

  /** Stays at a mark. */
  keep(index: number): Mark | null {
    const data = this.#data();
    const mark = data?.marks[index] ?? null;
    this.#pointed = null;
    this.#keptRow = data && mark ? rowName(data, mark.row) : "";
    this.#kept = mark;
    return mark;
  }

  /** Leaves every mark. */
  leave(): void {
    this.#pointed = null;
    this.#kept = null;
  }
}

function rowName(data: FigureData, row: number): string {
  const found = data.rows[row];
  return found ? JSON.stringify([found.group, found.label, found.details]) : "";
}
