// Do users side by side decode as fast here as in llama-batched-bench of the same engine build?
// Alternating pairs, same file, same CPU variant, same threads, a part of the cache for each user.

import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "../build.mjs";
import { model } from "../models.mjs";
import { cache, setUp, SetupError, twospeed } from "../setup.mjs";
import { json, peer } from "./peer.mjs";
import { judge, median } from "./pairs.mjs";

const wanted = 0.95;

/** Runs the benchmark; writes a Markdown table to standard output. */
export default async function users(args) {
  const { values: options } = parseArgs({
    args,
    options: {
      pairs: { type: "string", default: "30" },
      threads: { type: "string", default: String(Math.min(cpus().length, 2)) },
      users: { type: "string", default: "1,2,4" },
      prompt: { type: "string", default: "128" },
      generate: { type: "string", default: "32" },
      // Folder of the peer's tools of the same build, where they are; their CPU library is replaced.
      peer: { type: "string" },
    },
  });
  setUp();
  build({ window: false });
  const file = await model("smollm2");
  const counts = options.users.split(",").map(Number);
  const tokens = Number(options.prompt) + Number(options.generate);
  const work = join(cache, "peer", "users");
  mkdirSync(work, { recursive: true });
  const rows = new Map();
  let variant;
  try {
    const bench = (...rest) => json(twospeed(), ["bench", "--data-dir", work, "-m", file, "-t", options.threads, "-r", "1", "-o", "results", ...rest]).runs[0].tests;
    variant = bench("-p", "16", "-n", "0").at(-1).end.worker.variant.name;
    const bin = peer(variant, options.peer, ["llama-batched-bench"]);
    if (loadavg()[0] > 0.5) console.error(`Load average is ${loadavg()[0].toFixed(2)}: other work disturbs the pairs.`);
    const sides = {
      ours: () =>
        bench("--users", options.users, "--split-kv", "-p", options.prompt, "-n", options.generate).map(({ kind, spec, samples }) => ({
          users: kind.users,
          decode: (1e9 * kind.users * spec.n_gen) / samples[0].reading.decode_ns,
          prefill: (1e9 * kind.users * spec.n_prompt) / samples[0].reading.prefill_ns,
        })),
      theirs: () => {
        const asked = ["-m", file, "-c", String(tokens * Math.max(...counts)), "-b", "2048", "-ub", "512", "-npp", options.prompt, "-ntg", options.generate, "-npl", options.users, "-t", options.threads, "--output-format", "jsonl"];
        const { status, stdout, stderr } = spawnSync(join(bin, "llama-batched-bench"), asked, { encoding: "utf8", maxBuffer: 1 << 26 });
        if (status !== 0) throw new SetupError(`llama-batched-bench ${asked.join(" ")} failed:\n${stderr.slice(-2000)}`);
        const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
        return lines.map((line) => JSON.parse(line)).map(({ pl, speed_tg, speed_pp }) => ({ users: pl, decode: speed_tg, prefill: speed_pp }));
      },
    };
    for (let pair = 0; pair < Number(options.pairs); pair += 1) {
      // The order within a pair alternates too, so that a steady drift favours neither.
      const order = pair % 2 ? ["theirs", "ours"] : ["ours", "theirs"];
      const result = Object.fromEntries(order.map((side) => [side, sides[side]()]));
      for (const ours of result.ours) {
        const theirs = result.theirs.find((row) => row.users === ours.users);
        if (!theirs) throw new SetupError(`llama-batched-bench says nothing of ${ours.users} users.`);
        for (const what of ["decode", "prefill"]) {
          const key = `${ours.users} ${what}`;
          if (!rows.has(key)) rows.set(key, { users: ours.users, what, ours: [], theirs: [], ratios: [] });
          const row = rows.get(key);
          row.ours.push(ours[what]);
          row.theirs.push(theirs[what]);
          row.ratios.push(ours[what] / theirs[what]);
        }
      }
      console.error(`pair ${pair + 1}: ${[...rows].map(([key, { ratios }]) => `${key} ${ratios.at(-1).toFixed(3)}`).join(", ")}`);
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  console.log(`SmolLM2 135M Q4_1, llama.cpp 11434, CPU variant ${variant}, ${options.threads} threads, ${options.pairs} alternating pairs, ${cpus()[0].model}\n`);
  console.log("| users | all together | twospeed tok/s | llama-batched-bench tok/s | median ratio | lower 95 % bound | |");
  console.log("| ---: | --- | ---: | ---: | ---: | ---: | --- |");
  let holds = true;
  for (const { users, what, ours, theirs, ratios } of rows.values()) {
    const verdict = judge(ratios);
    // The claim is decode's: a prompt of 128 tokens is over before its speed says much.
    if (what === "decode") holds &&= verdict.lower === null || verdict.lower >= wanted;
    const word = what === "prefill" ? "" : verdict.lower === null ? "too few pairs" : verdict.lower >= wanted ? "holds" : "fails";
    console.log(`| ${users} | ${what} | ${median(ours).toFixed(1)} | ${median(theirs).toFixed(1)} | ${verdict.median.toFixed(3)} | ${verdict.lower?.toFixed(3) ?? "unknown"} | ${word} |`);
  }
  if (!holds) process.exitCode = 1;
}
