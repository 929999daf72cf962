import { toProblem, type Backend } from "$lib/backend/backend";
import type { CopyWhat, Exported, Form, Problem } from "$lib/backend/bindings";
import { chartForms, numberForms, requestFor, usualSize, type Shown } from "./export";

/** An entry of the menu. */
interface Item {
  name: string;
  note?: string;
  act: () => void;
}

const copied: Record<CopyWhat, string> = {
  picture: "The picture is on the clipboard.",
  table: "The table is on the clipboard.",
};

/** Saving and copying what is shown, and what came of it. */
export class Exporting {
  /** The form whose dialog is open. */
  form = $state<Form | null>(null);
  saved = $state.raw<Exported | null>(null);
  said = $state<string | null>(null);
  failed = $state.raw<Problem | null>(null);

  readonly menu: { title: string; items: Item[] }[];

  #backend: Backend;
  #shown: () => Shown;

  constructor(backend: Backend, shown: () => Shown) {
    this.#backend = backend;
    this.#shown = shown;
    const opens = (form: Form, name: string): Item => ({
      name,
      act: () => {
        this.#quiet();
        this.form = form;
      },
    });
    this.menu = [
      {
        title: "Chart",
        items: chartForms.map(({ form, name }) => ({
          ...opens(form, name),
          ...(form === "png" ? { note: usualSize.name.slice(0, 2) } : {}),
        })),
      },
      { title: "Numbers", items: numberForms.map(({ form, name }) => opens(form, name)) },
      {
        title: "Clipboard",
        items: [
          { name: "Copy picture", act: () => void this.#copy("picture") },
          { name: "Copy table", act: () => void this.#copy("table") },
        ],
      },
    ];
  }

  #quiet(): void {
    this.saved = null;
    this.said = null;
    this.failed = null;
  }

  async #copy(what: CopyWhat): Promise<void> {
    this.#quiet();
    const form: Form = what === "picture" ? "png" : "markdown";
    const chosen = { form, dark: false, size: usualSize, path: "", replace: false };
    try {
      await this.#backend.call("copy", { request: requestFor(this.#shown(), chosen), what });
      this.said = copied[what];
    } catch (thrown) {
      this.failed = toProblem(thrown);
    }
  }

  /** Shows what was saved in its folder. */
  async reveal(path: string): Promise<void> {
    try {
      await this.#backend.call("reveal", { path });
    } catch (thrown) {
      this.failed = toProblem(thrown);
    }
  }
}
