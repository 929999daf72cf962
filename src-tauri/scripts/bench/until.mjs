// Does `--until` reach its target in less time than a fixed number of repetitions that does? In each trial
// the tests are repeated until each mean is known; then all of them are repeated as often as the worst
// one needed, since that is what one would have had to ask for with -r.

import { mkdtempSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "../build.mjs";
import { model } from "../models.mjs";
import { setUp, twospeed } from "../setup.mjs";
import { json } from "./peer.mjs";
import { median } from "./pairs.mjs";

/** Two-sided 95 % points of Student's t by degrees of freedom; beyond the table the last one serves. */
const t975 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093, 2.086];

/** Half of the 95 % confidence interval of the mean, relative to the mean. */
function halfWidth(values) {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const t = t975[Math.min(values.length - 1, t975.length) - 1];
  return (t * Math.sqrt(squares / (values.length - 1) / values.length)) / mean;
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;

/** Runs the benchmark; writes a Markdown table to standard output. */
export default async function until(args) {
  const { values: options } = parseArgs({
    args,
    options: {
      trials: { type: "string", default: "5" },
      target: { type: "string", default: "2%" },
      prompt: { type: "string", default: "128,512" },
      generate: { type: "string", default: "32,128" },
      model: { type: "string", default: "smollm2" },
    },
  });
  setUp();
  build({ window: false });
  const file = await model(options.model);
  if (loadavg()[0] > 0.5) console.error(`Load average is ${loadavg()[0].toFixed(2)}: other work disturbs the trials.`);
  const folder = mkdtempSync(join(tmpdir(), "twospeed-until-"));
  const bench = (...often) => {
    const start = performance.now();
    const { runs } = json(twospeed(), ["--data-dir", folder, "bench", "-m", file, "-p", options.prompt, "-n", options.generate, "-o", "results", ...often]);
    const tests = runs[0].tests.map(({ spec, samples }) => ({
      name: spec.n_prompt ? `pp${spec.n_prompt}` : `tg${spec.n_gen}`,
      count: samples.length,
      half: halfWidth(samples.map(({ ns }) => 1 / ns)),
    }));
    return { seconds: (performance.now() - start) / 1000, tests };
  };
  const target = Number.parseFloat(options.target) / 100;
  const trials = [];
  try {
    for (let trial = 1; trial <= Number(options.trials); trial += 1) {
      const adaptive = bench("--until", options.target);
      const most = Math.max(...adaptive.tests.map(({ count }) => count));
      const fixed = bench("-r", String(most));
      trials.push({ adaptive, fixed, most });
      console.error(`trial ${trial}: ${adaptive.seconds.toFixed(1)} s against ${fixed.seconds.toFixed(1)} s with -r ${most}`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`${options.model}, until ${options.target}, ${cpus()[0].model}\n`);
  console.log("| trial | repetitions and half-widths | seconds | fixed -r | seconds | time saved |");
  console.log("| ---: | --- | ---: | ---: | ---: | ---: |");
  for (const [index, { adaptive, fixed, most }] of trials.entries()) {
    const tests = adaptive.tests.map(({ name, count, half }) => `${name} ${count} (± ${percent(half)})`).join(", ");
    console.log(`| ${index + 1} | ${tests} | ${adaptive.seconds.toFixed(1)} | ${most} | ${fixed.seconds.toFixed(1)} | ${percent(1 - adaptive.seconds / fixed.seconds)} |`);
  }
  const saved = trials.map(({ adaptive, fixed }) => 1 - adaptive.seconds / fixed.seconds);
  const missed = (side) => trials.flatMap((trial) => trial[side].tests).filter(({ half }) => half > target).length;
  console.log(`\nTime saved: median ${percent(median(saved))}. Means not known within ${options.target}: ${missed("adaptive")} of ${trials.length * trials[0].adaptive.tests.length} with --until, ${missed("fixed")} with fixed repetitions.`);
  if (median(saved) <= 0) process.exitCode = 1;
}
