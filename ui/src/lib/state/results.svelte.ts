import { SvelteSet } from "svelte/reactivity";
import { toProblem, type Backend } from "$lib/backend/backend";
import type { FigureName, Problem, ResultGroup, ResultsView } from "$lib/backend/bindings";
import { automaticOf, groupsOf, stillThere } from "./choice";

/** Results there are, which of them are compared, and which one is explained. */
export class ResultsState {
  /** `null` = not asked for yet, or the answer is not there. */
  view = $state.raw<ResultsView | null>(null);
  problem = $state<Problem | null>(null);
  /** The figure that is shown. */
  figure = $state<FigureName>("speeds");
  /** Its results. */
  readonly groups = $derived.by((): ResultGroup[] =>
    this.view ? groupsOf(this.view, this.figure) : [],
  );
  /** The compared ones. The figure has an order of its own. */
  readonly chosen = new SvelteSet<string>();
  /** The explained one; `null` = the first of the figure. */
  focus = $state<string | null>(null);
  /** The ceiling is drawn. */
  ceiling = $state(true);
  /** What is expected is drawn. */
  expected = $state(true);
  /** What the expected time is made of is drawn. */
  breakdown = $state(false);

  #backend: Backend;
  /** What was chosen without the person, so that newer results may take its place. */
  #automatic: readonly string[] = [];
  #asked = 0;
  /** What was chosen for the figures that are not shown. */
  readonly #kept: Partial<Record<FigureName, { ids: string[]; automatic: readonly string[] }>> = {};

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Asks for the list, and chooses where nobody has chosen. */
  async refresh(): Promise<void> {
    const asked = ++this.#asked;
    try {
      const view = await this.#backend.call("results", {});
      // A later question has a newer answer.
      if (asked !== this.#asked) return;
      this.view = view;
      this.problem = null;
      this.#choose(view);
    } catch (thrown) {
      if (asked === this.#asked) this.problem = toProblem(thrown);
    }
  }

  /** Shows another figure, with what was chosen for it before. */
  show(figure: FigureName): void {
    if (figure === this.figure) return;
    this.#kept[this.figure] = { ids: [...this.chosen], automatic: this.#automatic };
    const kept = this.#kept[figure];
    this.figure = figure;
    this.focus = null;
    this.#automatic = kept?.automatic ?? [];
    this.#set(kept?.ids ?? []);
    if (this.view) this.#choose(this.view);
  }

  #choose(view: ResultsView): void {
    const kept = stillThere(this.chosen, groupsOf(view, this.figure));
    const own = this.chosen.size > 0 && !this.#isAutomatic();
    // What the person chose stays, unless nothing of it is left.
    if (own && kept.length > 0) this.#set(kept);
    else this.chooseNewest();
  }

  #isAutomatic(): boolean {
    return (
      this.chosen.size === this.#automatic.length &&
      this.#automatic.every((id) => this.chosen.has(id))
    );
  }

  #set(ids: Iterable<string>): void {
    const wanted = [...ids];
    for (const id of [...this.chosen]) if (!wanted.includes(id)) this.chosen.delete(id);
    for (const id of wanted) this.chosen.add(id);
    if (this.focus !== null && !this.chosen.has(this.focus)) this.focus = null;
  }

  /** Chooses the newest results of the model that was measured last. */
  chooseNewest(): void {
    this.#automatic = this.view ? automaticOf(this.view, this.figure) : [];
    this.#set(this.#automatic);
  }

  /** Chooses these speeds and no others. */
  choose(ids: Iterable<string>): void {
    this.show("speeds");
    this.#automatic = [];
    this.#set(ids);
  }

  /** Takes one in or leaves it out. */
  toggle(id: string, wanted: boolean): void {
    if (wanted) this.chosen.add(id);
    else this.chosen.delete(id);
    if (!wanted && this.focus === id) this.focus = null;
  }

  /** Explains one, which is compared from then on. */
  explain(id: string): void {
    this.chosen.add(id);
    this.focus = id;
  }
}
