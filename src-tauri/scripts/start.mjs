// `npm start`: sets up what is missing, builds, and does the main job: measures the built-in model,
// prints the table, draws the figure.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { main, root, run, setUp, twospeed } from "./setup.mjs";

await main(() => {
  setUp();
  build();
  const out = join(root, "target", "first-run");
  mkdirSync(out, { recursive: true });
  console.error("\nMeasuring the built-in model (random weights: its speed is real, its text is noise)\n");
  run(twospeed(), ["bench", "-m", "builtin", "-r", "3"]);
  for (const format of ["svg", "png"]) {
    const figure = join(out, `speeds.${format}`);
    run(twospeed(), ["chart", "speeds", "--overlay", "ceiling", "--out", figure]);
  }
  console.error(`\nThe figure is in ${out}.\nMeasure a model of yours with\n  ${twospeed()} bench -m FILE.gguf`);
});
