import type { ModelGroup, ModelRow } from "$lib/backend/bindings";
import { isUnmadeBuiltin, type Filters } from "$lib/state/models.svelte";

/** A group as it is shown. */
export interface ShownGroup {
  group: ModelGroup;
  rows: ModelRow[];
  /** Quantizations that can be made and are not shown, until they are asked for. */
  folded: number;
}

/** So many that can be made are shown without being asked for. */
const MOST_UNASKED = 4;

/** Of many that can be made, these are shown at once. */
const USUAL = new Set(["Q4_K_M", "Q6_K", "Q8_0"]);

/** Letters that are the same to a person who searches. */
function plain(text: string): string {
  return text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/[_-]+/g, "");
}

/** Whether every word of `words` is in one of the texts. */
export function matches(words: string, texts: (string | null)[]): boolean {
  // A name with its spaces and without them: `smollm2-135m` finds `SmolLM2 135M`.
  const all = texts
    .filter((text) => text !== null)
    .map(plain)
    .flatMap((text) => [text, text.replace(/\s+/g, "")])
    .join(" ");
  return plain(words)
    .split(/\s+/)
    .every((word) => all.includes(word));
}

function passes(row: ModelRow, filters: Filters): boolean {
  if (filters.onlyFitting && row.fits === false) return false;
  switch (row.place.place) {
    case "on_disk":
      return filters.onDisk;
    case "can_be_made":
      return filters.canBeMade;
    case "can_be_downloaded":
      return filters.canBeDownloaded;
  }
}

/**
 * The groups and rows that are shown.
 *
 * Of more than four quantizations that can be made, only the usual ones are shown at once, unless
 * the person searches, unfolds the group, or `keep` names a row (one that is being made).
 */
export function shownGroups(
  groups: readonly ModelGroup[],
  filters: Filters,
  unfolded: (group: string) => boolean,
  keep: (row: string) => boolean,
): ShownGroup[] {
  const searches = plain(filters.words).trim() !== "";
  return groups.flatMap((group) => {
    const rows = group.rows.filter(
      (row) =>
        passes(row, filters) &&
        matches(filters.words, [group.name, group.architecture, row.quantization, row.file]),
    );
    if (rows.length === 0) return [];
    const makeable = rows.filter((row) => row.place.place === "can_be_made").length;
    if (searches || makeable <= MOST_UNASKED || unfolded(group.id))
      return [{ group, rows, folded: 0 }];
    const first = rows.filter(
      (row) =>
        row.place.place !== "can_be_made" ||
        USUAL.has(row.quantization) ||
        isUnmadeBuiltin(group, row) ||
        keep(row.id),
    );
    return [{ group, rows: first, folded: rows.length - first.length }];
  });
}

/** The ends of the scales that all bars of a column share; `null` = nothing to draw. */
export interface Scales {
  prefill: number | null;
  decode: number | null;
}

/** The smallest of 1, 1.2, 1.4, 1.6, 2, 2.5, 3, 4, 5, 6, 7, 8, 10 times a power of ten that holds a value. */
export function scaleEnd(most: number): number | null {
  if (!(most > 0)) return null;
  const power = 10 ** Math.floor(Math.log10(most));
  const steps = [1, 1.2, 1.4, 1.6, 2, 2.5, 3, 4, 5, 6, 7, 8, 10];
  const step = steps.find((each) => each * power >= most * 0.9999) ?? 10;
  return Number((step * power).toPrecision(3));
}

/** Scales for everything that is known, shown or not: a bar keeps its length while one searches. */
export function scalesOf(groups: readonly ModelGroup[]): Scales {
  const rows = groups.flatMap((group) => group.rows);
  const most = (values: (number | null | undefined)[]): number =>
    values.reduce<number>((sum, value) => Math.max(sum, value ?? 0), 0);
  return {
    prefill: scaleEnd(most(rows.map((row) => row.prefill?.mean ?? row.prefill_expected?.high))),
    decode: scaleEnd(
      most(
        rows.flatMap((row) => [row.decode?.mean ?? row.decode_expected?.high, row.decode_ceiling]),
      ),
    ),
  };
}

/** How many rows on disk there are, how many of them were measured, and whether speeds are predicted. */
export function measuredCount(groups: readonly ModelGroup[]): {
  there: number;
  measured: number;
  predicts: boolean;
} {
  const all = groups.flatMap((group) => group.rows);
  const rows = all.filter((row) => row.place.place === "on_disk" || row.prefill || row.decode);
  return {
    there: rows.length,
    measured: rows.filter((row) => row.prefill ?? row.decode).length,
    predicts: all.some((row) => row.prefill_expected ?? row.decode_expected),
  };
}

/** Whether the person has no model of their own yet. */
export function isFirstDay(groups: readonly ModelGroup[], folders: number): boolean {
  return (
    folders === 0 &&
    groups.every(
      (group) => group.synthetic || group.rows.every((row) => row.place.place !== "on_disk"),
    )
  );
}
