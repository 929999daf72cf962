import type { ResultGroup, ResultsView, RunPage } from "../bindings";
import type { Fake, Handlers } from "../fake";
import { figureOf } from "../fake-results";

/** Runs that were deleted, and may come back. */
const deleted = new WeakMap<Fake, Set<string>>();

function gone(fake: Fake): Set<string> {
  const runs = deleted.get(fake) ?? new Set<string>();
  deleted.set(fake, runs);
  return runs;
}

/** The results of the runs that are there. */
function results(fake: Fake): ResultsView {
  const { groups, others, runs } = fake.world.results;
  const isThere = (run: string): boolean => !gone(fake).has(run);
  const left = (all: ResultGroup[]): ResultGroup[] =>
    all
      .map((group) => ({ ...group, rows: group.rows.filter((row) => isThere(row.run)) }))
      .filter((group) => group.rows.length > 0);
  return {
    groups: left(groups),
    others: others.map((other) => ({ ...other, groups: left(other.groups) })),
    runs: runs.filter((run) => isThere(run.id)),
    calibrated: fake.world.start.machine.calibrated_at !== null,
  };
}

function pageOf(fake: Fake, run: string): RunPage {
  const page = gone(fake).has(run) ? undefined : fake.world.pages[run];
  if (page) return page;
  const message = "This run is not in the history. It was deleted, or belongs to another folder.";
  throw { code: "unknown_run", message, details: null };
}

export const compare: Handlers<
  | "results"
  | "figure"
  | "run_page"
  | "delete_runs"
  | "restore_runs"
  | "set_note"
  | "allow_test"
  | "export"
  | "copy"
  | "pick_save"
  | "reveal"
> = {
  results: (_, fake) => results(fake),
  figure: ({ request }, fake) => fake.world.figure ?? figureOf(results(fake), request),
  run_page: ({ run }, fake) => pageOf(fake, run),
  delete_runs: ({ runs }, fake) => {
    for (const run of runs) gone(fake).add(run);
    fake.tell({ event: "results_changed" });
    return null;
  },
  restore_runs: ({ runs }, fake) => {
    for (const run of runs) gone(fake).delete(run);
    fake.tell({ event: "results_changed" });
    return null;
  },
  set_note: ({ run, note }, fake) => {
    pageOf(fake, run).note = note;
    return null;
  },
  allow_test: ({ test, allowed }, fake) => {
    for (const page of Object.values(fake.world.pages)) {
      for (const each of page.tests) if (each.id === test) each.allowed = allowed;
    }
    return null;
  },
  export: ({ request }) => ({ path: request.path, bytes: 48_211 }),
  copy: () => null,
  pick_save: ({ suggested }, fake) => fake.world.picked ?? suggested,
  reveal: () => null,
};
