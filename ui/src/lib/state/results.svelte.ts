import { SvelteSet } from "svelte/reactivity";
import { toProblem, type Backend } from "$lib/backend/backend";
import type { Problem, ResultsView } from "$lib/backend/bindings";

/** Results there are, and which of them are compared. */
export class ResultsState {
  view = $state.raw<ResultsView | null>(null);
  problem = $state<Problem | null>(null);
  readonly chosen = new SvelteSet<string>();

  #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Asks for the list. */
  async refresh(): Promise<void> {
    try {
      this.view = await this.#backend.call("results", {});
      this.problem = null;
    } catch (thrown) {
      this.problem = toProblem(thrown);
    }
  }
}
