import { tick } from "svelte";

/** The way to a run's page, so that focus finds back to the link that led there. */
export class Way {
  #from: { run: string; explanation: boolean } | null = null;

  /** Remembers a link to a run that was followed. */
  readonly follow = (event: MouseEvent): void => {
    const link = event.target instanceof Element ? event.target.closest("a[data-run]") : null;
    if (!(link instanceof HTMLElement) || link.dataset.run === undefined) return;
    this.#from = {
      run: link.dataset.run,
      explanation: link.dataset.from === "explanation",
    };
  };

  /** Focuses the link to a run that was left. */
  async back(left: string): Promise<void> {
    await tick();
    const links = [...document.querySelectorAll<HTMLElement>("a[data-run]")].filter(
      (link) => link.dataset.run === left,
    );
    const wanted = this.#from?.run === left && this.#from.explanation ? "explanation" : undefined;
    const link = links.find((each) => each.dataset.from === wanted) ?? links[0];
    (link ?? document.querySelector<HTMLElement>("[data-home]"))?.focus();
  }
}
