import { toProblem, type Backend } from "$lib/backend/backend";
import type { FigureRequest, FigureView, Problem } from "$lib/backend/bindings";

/** The figure that is shown: the answer to the newest question, and the one before until then. */
export class FigureState {
  view = $state.raw<FigureView | null>(null);
  problem = $state.raw<Problem | null>(null);
  /** An answer is on its way. */
  asking = $state(false);
  /** What the figure in sight was drawn for. */
  request = $state.raw<FigureRequest | null>(null);

  #backend: Backend;
  #asked = 0;
  #key = "";

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Asks for a figure, unless it is the one that was asked for last. */
  async ask(request: FigureRequest): Promise<void> {
    const key = JSON.stringify(request);
    if (key === this.#key) return;
    this.#key = key;
    const asked = ++this.#asked;
    this.asking = true;
    try {
      const view = await this.#backend.call("figure", { request });
      if (asked !== this.#asked) return;
      this.view = view;
      this.request = request;
      this.problem = null;
    } catch (thrown) {
      if (asked !== this.#asked) return;
      this.view = null;
      this.problem = toProblem(thrown);
      // The same question may be asked again.
      this.#key = "";
    }
    this.asking = false;
  }

  /** What was asked for may look otherwise by now: the same question is asked again. */
  forget(): void {
    this.#key = "";
  }

  /** Nothing is chosen: nothing is shown, and a late answer is not either. */
  clear(): void {
    this.#asked += 1;
    this.#key = "";
    this.view = null;
    this.problem = null;
    this.asking = false;
  }
}
