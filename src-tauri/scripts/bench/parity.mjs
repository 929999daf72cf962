// Is `twospeed bench` as fast as llama-bench of the same engine build? Alternating pairs, same file, same
// CPU variant, same threads. Parity holds where the lower bound of the median ratio is at least 0.96.

import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { join } from "node:path";
import { build } from "../build.mjs";
import { model } from "../models.mjs";
import { setUp, SetupError, twospeed } from "../setup.mjs";
import { json, peer } from "./peer.mjs";
import { judge, median } from "./pairs.mjs";

const wanted = 0.96;

/** Runs the benchmark; writes a Markdown table to standard output. */
export default async function parity(args) {
  const { values: options } = parseArgs({
    args,
    options: {
      pairs: { type: "string", default: "30" },
      threads: { type: "string", default: String(Math.min(cpus().length, 2)) },
      models: { type: "string", default: "smollm2,gemma3,builtin" },
      prompt: { type: "string", default: "512" },
      generate: { type: "string", default: "128" },
      // Folder of a llama-bench of the same build, where there is one; its CPU library is replaced.
      peer: { type: "string" },
    },
  });
  setUp();
  build({ window: false });
  const files = new Map();
  const builtin = json(twospeed(), ["inspect", "builtin", "--json"]);
  for (const name of options.models.split(",")) files.set(name, name === "builtin" ? builtin.path : await model(name));
  const first = json(twospeed(), ["bench", "-m", [...files.values()][0], "-p", "16", "-n", "0", "-r", "1", "-t", options.threads, "-o", "results"]);
  const variant = first.runs[0].tests.at(-1).end.worker.variant.name;
  const bin = peer(variant, options.peer);
  if (loadavg()[0] > 0.5) console.error(`Load average is ${loadavg()[0].toFixed(2)}: other work disturbs the pairs.`);

  const common = ["-p", options.prompt, "-n", options.generate, "-t", options.threads, "-r", "1", "-o", "json"];
  const sides = {
    ours: (file) => json(twospeed(), ["bench", "-m", file, ...common, "--no-save"]),
    theirs: (file) => json(join(bin, "llama-bench"), ["-m", file, ...common]),
  };
  const rows = [];
  for (const [name, file] of files) {
    const ratios = new Map();
    const speeds = new Map();
    for (let pair = 0; pair < Number(options.pairs); pair += 1) {
      // The order within a pair alternates too, so that a steady drift favours neither.
      const order = pair % 2 ? ["theirs", "ours"] : ["ours", "theirs"];
      const result = Object.fromEntries(order.map((side) => [side, sides[side](file)]));
      for (const [index, test] of result.ours.entries()) {
        const key = test.n_prompt ? `pp${test.n_prompt}` : `tg${test.n_gen}`;
        const other = result.theirs[index];
        if (other.n_prompt !== test.n_prompt || other.n_gen !== test.n_gen) throw new SetupError(`The two sides ran different tests at ${key}.`);
        if (!ratios.has(key)) ratios.set(key, []), speeds.set(key, { ours: [], theirs: [] });
        ratios.get(key).push(test.avg_ts / other.avg_ts);
        speeds.get(key).ours.push(test.avg_ts);
        speeds.get(key).theirs.push(other.avg_ts);
      }
      console.error(`${name} pair ${pair + 1}: ${[...ratios].map(([key, list]) => `${key} ${list.at(-1).toFixed(3)}`).join(", ")}`);
    }
    for (const [key, list] of ratios) rows.push({ name, test: key, ...judge(list), ours: median(speeds.get(key).ours), theirs: median(speeds.get(key).theirs) });
  }
  console.log(`llama.cpp 11434, CPU variant ${variant}, ${options.threads} threads, ${options.pairs} alternating pairs, ${cpus()[0].model}\n`);
  console.log("| model | test | twospeed tok/s | llama-bench tok/s | median ratio | lower 95 % bound | parity |");
  console.log("| --- | --- | ---: | ---: | ---: | ---: | --- |");
  for (const row of rows) {
    const verdict = row.lower === null ? "too few pairs" : row.lower >= wanted ? "holds" : "fails";
    console.log(`| ${row.name} | ${row.test} | ${row.ours.toFixed(1)} | ${row.theirs.toFixed(1)} | ${row.median.toFixed(3)} | ${row.lower?.toFixed(3) ?? "unknown"} | ${verdict} |`);
  }
  if (rows.some((row) => row.lower !== null && row.lower < wanted)) process.exitCode = 1;
}
