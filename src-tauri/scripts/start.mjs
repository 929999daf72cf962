// `npm start`: sets up what is missing, builds, and opens the window. Where no window can open, or with
// `npm start -- --terminal`, it does the main job in the terminal: measures the built-in model, prints
// the table, draws the figure.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { main, root, run, setUp, SetupError, twospeed, twospeedWindow } from "./setup.mjs";

function hasDisplay() {
  return process.platform !== "linux" || Boolean(process.env.WAYLAND_DISPLAY || process.env.DISPLAY);
}

function tour() {
  const out = join(root, "target", "first-run");
  mkdirSync(out, { recursive: true });
  console.error("\nMeasuring the built-in model (random weights: its speed is real, its text is noise)\n");
  run(twospeed(), ["bench", "-m", "builtin", "-r", "3"]);
  for (const format of ["svg", "png"]) {
    const figure = join(out, `speeds.${format}`);
    run(twospeed(), ["chart", "speeds", "--overlay", "ceiling", "--out", figure]);
  }
  console.error(`\nThe figure is in ${out}.\nMeasure a model of yours with\n  ${twospeed()} bench -m FILE.gguf`);
}

await main(() => {
  const options = process.argv.slice(2);
  const unknown = options.find((option) => option !== "--terminal");
  if (unknown) throw new SetupError(`${unknown} is not known here: npm start takes --terminal, which measures in the terminal instead of opening the window.`);
  const terminal = options.includes("--terminal");
  setUp();
  build({ window: !terminal });
  if (terminal) return tour();
  if (!hasDisplay()) {
    console.error("\nThere is no display here for the window, so this is the tour of the terminal instead.");
    return tour();
  }
  console.error(`\nOpening ${twospeedWindow()}\nThe same in the terminal: ${twospeed()} --help`);
  run(twospeedWindow(), []);
});
