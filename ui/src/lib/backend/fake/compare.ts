import type { FigureRequest, FigureView } from "../bindings";
import type { Fake, Handlers } from "../fake";

/** A picture that stands for the figure. */
function figure(fake: Fake, request: FigureRequest): FigureView {
  const width = request.width;
  const height = request.height ?? 400;
  return {
    svg: `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><rect x="120" y="60" width="300" height="30" fill="var(--prefill)"/></svg>`,
    width,
    height,
    data: {
      kind: "speeds",
      width,
      height,
      title: "Prefill and decode",
      subtitle: "",
      footer: [],
      panels: [],
      rows: [],
      marks: [],
    },
    row_results: request.results,
    statements: [],
    cautions: [],
    has_ceiling: fake.world.start.machine.read_bytes_s !== null,
    save_as: "/home/ada/Pictures/speeds",
  };
}

export const compare: Handlers<
  | "results"
  | "figure"
  | "run_page"
  | "delete_runs"
  | "restore_runs"
  | "set_note"
  | "export"
  | "copy"
  | "pick_save"
  | "reveal"
> = {
  results: (_, fake) => fake.world.results,
  figure: ({ request }, fake) => fake.world.figure ?? figure(fake, request),
  run_page: ({ run }, fake) => {
    const page = fake.world.pages[run];
    if (!page) throw { code: "unknown_run", message: "This run is not in the history." };
    return page;
  },
  delete_runs: () => null,
  restore_runs: () => null,
  set_note: ({ run, note }, fake) => {
    const page = fake.world.pages[run];
    if (page) page.note = note;
    return null;
  },
  export: ({ request }) => ({ path: `${request.path}.${request.form}`, bytes: 48_211 }),
  copy: () => null,
  pick_save: ({ suggested }, fake) => fake.world.picked ?? suggested,
  reveal: () => null,
};
