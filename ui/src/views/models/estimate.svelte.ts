import { toProblem, type Backend } from "$lib/backend/backend";
import type { EstimateAt, EstimateView, Problem } from "$lib/backend/bindings";

/** After so many milliseconds without another change, the engine is asked. */
const PAUSE = 150;

interface Wish {
  of: string;
  at: EstimateAt;
}

/**
 * What is known of a model with settings that a person turns: what can be worked out comes at once,
 * what the engine says when the settings stand still. While an answer is awaited, any number of
 * changes become one more question.
 */
export class EstimateState {
  /** The newest answer; it stays while the next is awaited. */
  view = $state.raw<EstimateView | null>(null);
  problem = $state.raw<Problem | null>(null);
  /** The engine is asked. */
  asking = $state(false);

  #backend: Backend;
  #wish: Wish | null = null;
  #busy = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Asks for a model with settings. */
  ask(of: string, at: EstimateAt): void {
    clearTimeout(this.#timer);
    this.#wish = { of, at };
    if (!this.#busy) void this.#answer();
  }

  /** Nothing more is wanted. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#wish = null;
  }

  async #answer(): Promise<void> {
    this.#busy = true;
    let last: Wish | null = null;
    while (this.#wish && this.#wish !== last) {
      last = this.#wish;
      await this.#call(last, false);
    }
    this.#busy = false;
    const wish = this.#wish;
    if (!wish || this.problem || this.view?.memory.source === "engine") return;
    this.#timer = setTimeout(() => void this.#exactly(wish), PAUSE);
  }

  async #exactly(wish: Wish): Promise<void> {
    this.asking = true;
    await this.#call(wish, true);
    this.asking = false;
  }

  async #call(wish: Wish, exact: boolean): Promise<void> {
    try {
      const view = await this.#backend.call("estimate", { request: { ...wish, exact } });
      // Meanwhile something else may be wanted, of which more is known.
      if (this.#wish !== wish) return;
      this.view = view;
      this.problem = null;
    } catch (thrown) {
      if (this.#wish === wish) this.problem = toProblem(thrown);
    }
  }
}
