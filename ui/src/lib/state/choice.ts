// Which results are shown where nobody has chosen yet.

import type { FigureName, ResultGroup, ResultRow, ResultsView } from "$lib/backend/bindings";

/**
 * The newest of each quantization of the model that was measured last, under the settings of its
 * newest result: a result of other settings is taken only where a quantization has no other.
 * Results of other machines are taken only where there are no results of this one.
 */
export function automatic(view: ResultsView): string[] {
  const groups = view.groups.filter((group) => group.rows.some(hasSpeed));
  const own = groups.find((group) => group.rows.some((row) => hasSpeed(row) && isOwn(row)));
  if (own) return newestOfEach(own.rows.filter(isOwn));
  return groups[0] ? newestOfEach(groups[0].rows) : [];
}

function newestOfEach(rows: ResultRow[]): string[] {
  const measured = rows.filter(hasSpeed);
  const usual = measured[0]?.differs;
  const quantizations = [...new Set(measured.map((row) => row.quantization))];
  return quantizations.flatMap((quantization) => {
    const ofIt = measured.filter((row) => row.quantization === quantization);
    const row = ofIt.find((row) => row.differs === usual) ?? ofIt[0];
    return row ? [row.id] : [];
  });
}

const hasSpeed = (row: ResultRow) => row.prefill !== null || row.decode !== null;
const isOwn = (row: ResultRow) => row.elsewhere === null;

/** The figures in the order in which they are offered. */
export const figureNames: readonly FigureName[] = [
  "speeds",
  "context",
  "users",
  "first_token",
  "quantization",
  "sustained",
  "roofline",
  "breakdown",
  "estimate",
];

/** Whether a figure is made of what is expected, which takes a calibrated machine. */
export function isExpected(figure: FigureName): boolean {
  return figure === "roofline" || figure === "breakdown" || figure === "estimate";
}

/** The results of a figure; what is expected is shown of the results of speeds. */
export function groupsOf(view: ResultsView, figure: FigureName): ResultGroup[] {
  if (figure === "speeds" || isExpected(figure)) return view.groups;
  return view.others.find((other) => other.figure === figure)?.groups ?? [];
}

/**
 * What a figure shows where nobody has chosen: of speeds the newest of each quantization; of
 * quantizations the same of the model that was measured last; of the others what the newest run
 * of that model has.
 */
export function automaticOf(view: ResultsView, figure: FigureName): string[] {
  if (figure === "speeds" || isExpected(figure)) return automatic(view);
  const groups = groupsOf(view, figure);
  const group = groups.find(({ rows }) => rows.some(isOwn)) ?? groups[0];
  const newest = group?.rows.find(isOwn) ?? group?.rows[0];
  if (!group || !newest) return [];
  if (figure === "quantization") {
    const quantizations = new Map<string, string>();
    for (const row of group.rows) {
      if (!quantizations.has(row.quantization)) quantizations.set(row.quantization, row.id);
    }
    return [...quantizations.values()];
  }
  return group.rows.filter((row) => row.run === newest.run).map((row) => row.id);
}

/** All results in the order of the list. */
export function allRows(groups: readonly ResultGroup[]): ResultRow[] {
  return groups.flatMap((group) => group.rows);
}

/** The chosen ones that are still there, in the order of the list. */
export function stillThere(chosen: Iterable<string>, groups: readonly ResultGroup[]): string[] {
  const wanted = new Set(chosen);
  return allRows(groups)
    .map((row) => row.id)
    .filter((id) => wanted.has(id));
}

/** What a result is called where its model is not in sight. */
export function nameOf(group: ResultGroup, row: ResultRow): string {
  return `${group.name} ${labelOf(row)}`;
}

/** What a result is called under the name of its model. */
export function labelOf(row: ResultRow): string {
  return row.differs === "" ? row.quantization : `${row.quantization}, ${row.differs}`;
}
