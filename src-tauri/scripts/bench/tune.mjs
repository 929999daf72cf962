// What does `twospeed tune` save against measuring every combination, and what does it gain? Trials of
// tuning, each from nothing, and the full grid of the same space: every combination, llama-bench's
// repetitions, combinations that share a load together, decode once for all micro-batches.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "../build.mjs";
import { model } from "../models.mjs";
import { setUp, SetupError, twospeed } from "../setup.mjs";
import { json } from "./peer.mjs";
import { median } from "./pairs.mjs";

const mostShare = 0.25;

/** What comes of `work` and the seconds it takes. */
function timed(work) {
  const start = performance.now();
  const result = work();
  return { result, seconds: (performance.now() - start) / 1000 };
}

/** Runs `twospeed tune` with a history of its own, so that nothing is known from before. */
function tune(file, target) {
  const folder = mkdtempSync(join(tmpdir(), "twospeed-tune-"));
  try {
    return timed(() => json(twospeed(), ["--data-dir", folder, "tune", "-m", file, "--for", target, "--json"]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Rows of one `bench`; a test that cannot be measured leaves its row out, the time it took counts. */
function rows(args) {
  const { status, stdout, stderr } = spawnSync(twospeed(), ["bench", ...args, "-o", "json", "--no-save"], { encoding: "utf8", maxBuffer: 1 << 28 });
  if (status !== 0 && status !== 1) throw new SetupError(`twospeed bench ${args.join(" ")} failed:\n${stderr}`);
  if (status === 1) console.error(stderr.trim());
  try {
    return JSON.parse(stdout);
  } catch {
    return [];
  }
}

const settings = (row) => [row.n_threads, row.flash_attn, row.repack].join(" ");

/** Measures every combination; the fastest of them against the defaults comes back with the seconds. */
function grid(file, found) {
  const { space, tests } = found.grid;
  const seconds = ({ prompt, generate }, prefill, decode) => (prompt ? prompt / prefill : 0) + (generate ? generate / decode : 0);
  const measured = timed(() => {
    const all = [];
    for (const variant of space.variants) {
      const common = ["-m", file, ...(variant ? ["--variant", variant] : []), "--repack", space.repack.map(Number).join(), "-fa", space.flash.join(), "-t", space.threads.join()];
      const prefill = tests.prefill ? rows([...common, "-ub", space.micro_batches.join(), "-p", String(tests.prefill), "-n", "0"]) : [];
      const decode = tests.decode ? rows([...common, "-p", "0", "-n", String(tests.decode)]) : [];
      for (const row of prefill.length ? prefill : decode) {
        const other = decode.find((its) => settings(its) === settings(row));
        if (prefill.length && decode.length && !other) continue;
        const time = seconds(found.work, row.avg_ts, (other ?? row).avg_ts);
        all.push({ time, name: `${variant ?? "default"} -t ${row.n_threads} -fa ${row.flash_attn} --repack ${Number(row.repack)} -ub ${row.n_ubatch}` });
      }
      console.error(`Grid: ${variant ?? "the default variant"} is done, ${all.length} combinations so far`);
    }
    return all;
  });
  const all = measured.result;
  const best = all.reduce((a, b) => (b.time < a.time ? b : a));
  const at = (list) => String(list[0]);
  const isDefault = ({ name }) => name.startsWith(`default -t ${at(space.threads)} -fa -1 --repack 1 -ub ${at(space.micro_batches)}`);
  const default_ = all.find(isDefault);
  return { seconds: measured.seconds, combinations: all.length, best: best.name, gain: default_ ? default_.time / best.time : null };
}

/** Runs the benchmark; writes Markdown tables to standard output. */
export default async function tuning(args) {
  const { values: options } = parseArgs({
    args,
    options: {
      trials: { type: "string", default: "5" },
      // The grid takes long and its time hardly varies: once is enough to compare with; 0 leaves it
      // out and compares with the time that tune itself foresees, which is below the real one.
      grids: { type: "string", default: "1" },
      model: { type: "string", default: "smollm2" },
      for: { type: "string", default: "512,128" },
    },
  });
  setUp();
  build({ window: false });
  const file = options.model === "builtin" ? json(twospeed(), ["inspect", "builtin", "--json"]).path : await model(options.model);
  if (loadavg()[0] > 0.5) console.error(`Load average is ${loadavg()[0].toFixed(2)}: other work disturbs what is measured.`);

  const trials = [];
  for (let trial = 1; trial <= Number(options.trials); trial += 1) {
    const { result, seconds } = tune(file, options.for);
    trials.push({ ...result, seconds });
    console.error(`Trial ${trial}: ${seconds.toFixed(0)} s, ${result.decision}${result.gain === null ? "" : ` ${result.gain.toFixed(3)}`}`);
  }
  const grids = [];
  for (let number = 0; number < Number(options.grids); number += 1) grids.push(grid(file, trials[0]));
  const whole = grids.length ? median(grids.map((its) => its.seconds)) : median(trials.map((its) => its.grid.seconds_at_least));

  const first = trials[0];
  console.log(`llama.cpp 11434, ${options.model}, for ${options.for}, ${first.grid.combinations} combinations, ${cpus()[0].model}, ${cpus().length} logical CPUs\n`);
  console.log("| trial | tune s | of the full grid | found | gain | lower 95 % bound | pairs |");
  console.log("| ---: | ---: | ---: | --- | ---: | ---: | ---: |");
  for (const [index, its] of trials.entries()) {
    const kept = its.decision === "tuned";
    const gain = kept ? its.gain.toFixed(3) : "1 (defaults)";
    console.log(`| ${index + 1} | ${its.seconds.toFixed(0)} | ${(100 * its.seconds / whole).toFixed(1)} % | ${kept ? its.best.flags : "the defaults"} | ${gain} | ${kept ? its.gain_low.toFixed(3) : ""} | ${its.pairs ?? ""} |`);
  }
  const shares = trials.map((its) => its.seconds / whole);
  console.log(`\nFull grid: ${whole.toFixed(0)} s ${grids.length ? `(measured, ${grids.length} time${grids.length > 1 ? "s" : ""})` : "at least (foreseen)"}. Tune took ${(100 * median(shares)).toFixed(1)} % of it in the median: ${(100 * (1 - median(shares))).toFixed(0)} % of the time is saved.`);
  for (const its of grids) console.log(`The grid's fastest by its means: ${its.best}, ${its.gain === null ? "gain unknown" : `${its.gain.toFixed(3)} times the defaults`}.`);
  const below = trials.some((its) => its.decision === "tuned" && its.gain_low < 1);
  if (Math.max(...shares) > mostShare || below) process.exitCode = 1;
}
