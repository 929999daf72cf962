import { SvelteSet } from "svelte/reactivity";
import { toProblem, type Backend } from "$lib/backend/backend";
import type { ModelGroup, ModelRow, ModelsView, Problem } from "$lib/backend/bindings";

/**
 * Whether a row can be measured: it is on disk and nothing stands against it.
 *
 * The built-in model is the exception: a run makes it where it is not there yet.
 */
export function isMeasurable(group: ModelGroup, row: ModelRow): boolean {
  if (row.place.place === "on_disk") return row.hindrance === null;
  return isUnmadeBuiltin(group, row);
}

/** Whether a row is the built-in model, not made yet. */
export function isUnmadeBuiltin(group: ModelGroup, row: ModelRow): boolean {
  return (
    group.synthetic &&
    row.place.place === "can_be_made" &&
    group.rows.every((each) => each.place.place !== "on_disk")
  );
}

/** The list as it is now, made of the groups before where they are the same: those are not drawn again. */
function kept(before: ModelsView | null, now: ModelsView): ModelsView {
  if (!before) return now;
  const known = new Map(before.groups.map((group) => [group.id, group]));
  const groups = now.groups.map((group) => {
    const same = known.get(group.id);
    return same && JSON.stringify(same) === JSON.stringify(group) ? same : group;
  });
  return { ...now, groups };
}

/** What of the list is shown. */
export interface Filters {
  /** Words that all have to be in a row's names. */
  words: string;
  onDisk: boolean;
  canBeMade: boolean;
  canBeDownloaded: boolean;
  onlyFitting: boolean;
}

/** The list of models, and which of them are selected. */
export class ModelsState {
  /** `null` = not asked or not answered yet. */
  view = $state.raw<ModelsView | null>(null);
  problem = $state<Problem | null>(null);
  /** Ids of rows, in the order in which they were selected. */
  readonly selected = new SvelteSet<string>();
  filters = $state<Filters>({
    words: "",
    onDisk: true,
    canBeMade: true,
    canBeDownloaded: true,
    onlyFitting: false,
  });
  /** Rows whose details are open. */
  readonly open = new SvelteSet<string>();
  /** Groups of which every quantization that can be made is shown. */
  readonly unfolded = new SvelteSet<string>();
  /** The row that the view is to bring into sight. */
  sought = $state<string | null>(null);

  #backend: Backend;
  #asking: Promise<void> | null = null;
  #again = false;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Asks for the list. While an answer is awaited, any number of wishes become one more question. */
  refresh(): Promise<void> {
    if (this.#asking) {
      this.#again = true;
      return this.#asking;
    }
    this.#asking = this.#ask().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #ask(): Promise<void> {
    do {
      this.#again = false;
      try {
        this.view = kept(this.view, await this.#backend.call("models", {}));
        this.problem = null;
        this.#forget();
      } catch (thrown) {
        this.problem = toProblem(thrown);
      }
      // `refresh` sets it while the answer is awaited.
    } while (this.#again as boolean);
  }

  /** Rows that are gone are not selected any more. */
  #forget(): void {
    for (const id of this.selected) if (!this.row(id)) this.selected.delete(id);
  }

  /** A row by its id. */
  row(id: string): { group: ModelGroup; row: ModelRow } | undefined {
    for (const group of this.view?.groups ?? []) {
      const row = group.rows.find((each) => each.id === id);
      if (row) return { group, row };
    }
    return undefined;
  }

  /** Selects a row, or no longer. */
  toggle(id: string): void {
    if (!this.selected.delete(id)) this.selected.add(id);
  }

  /** Selects these rows besides those that are, and brings the first into sight. */
  choose(ids: string[]): void {
    for (const id of ids) this.selected.add(id);
    this.sought = ids[0] ?? this.sought;
  }

  /** Rows that are selected and can be measured, in that order. */
  get chosen(): { group: ModelGroup; row: ModelRow }[] {
    return [...this.selected]
      .flatMap((id) => this.row(id) ?? [])
      .filter(({ group, row }) => isMeasurable(group, row));
  }
}
