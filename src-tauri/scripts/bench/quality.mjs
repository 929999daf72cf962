// Are our figures of quality those of llama-perplexity of the same engine build? Same files, same text,
// same CPU variant. Perplexity may differ by 0.1 %, the mean divergence by 1 %.

import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "../build.mjs";
import { model } from "../models.mjs";
import { cache, root, setUp, SetupError, twospeed } from "../setup.mjs";
import { json, peer } from "./peer.mjs";

const text = join(root, "src-tauri", "crates", "worker", "texts", "moby-dick.txt");

/** What is compared: our field, the peer's line, and the share by which both may differ (none: shown alone). */
const figures = [
  { name: "perplexity", ours: (reading) => reading.perplexity, theirs: /Mean PPL\(Q\) +: +([\d.]+)/, within: 0.001 },
  { name: "perplexity of the base", ours: (reading) => reading.against_base.base_perplexity, theirs: /Mean PPL\(base\) +: +([\d.]+)/, within: 0.001 },
  { name: "mean divergence", ours: (reading) => reading.against_base.kl_mean, theirs: /Mean +KLD: +([\d.]+)/, within: 0.01 },
  { name: "its standard error", ours: (reading) => reading.against_base.kl_error, theirs: /Mean +KLD: +[\d.]+ ± +([\d.]+)/ },
  { name: "largest divergence", ours: (reading) => reading.against_base.kl_max, theirs: /Maximum KLD: +([\d.]+)/ },
  { name: "99th percentile", ours: (reading) => reading.against_base.kl_p99, theirs: /99\.0% +KLD: +([\d.]+)/ },
  { name: "median divergence", ours: (reading) => reading.against_base.kl_median, theirs: /Median +KLD: +([\d.]+)/ },
  { name: "same likeliest token, %", ours: (reading) => 100 * reading.against_base.same_top, theirs: /Same top p: +([\d.]+)/ },
];
const alone = [{ name: "perplexity", ours: (reading) => reading.perplexity, theirs: /Final estimate: PPL = ([\d.]+)/, within: 0.001 }];

/** Runs a tool of the peer; everything it says. */
function say(command, args) {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  if (status !== 0) throw new SetupError(`${command} ${args.join(" ")} failed:\n${stderr}`);
  return stdout + stderr;
}

/** Runs the comparison; writes a Markdown table to standard output. */
export default async function quality(args) {
  const { values: options } = parseArgs({
    args,
    options: {
      chunks: { type: "string", default: "16" },
      ctx: { type: "string", default: "512" },
      threads: { type: "string", default: String(Math.min(cpus().length, 2)) },
      types: { type: "string", default: "Q4_0,Q8_0" },
      // Folder of the peer's tools of the same build, where they are; their CPU library is replaced.
      peer: { type: "string" },
    },
  });
  setUp();
  build({ window: false });
  const source = await model("smollm2");
  const work = join(cache, "peer", "quality");
  mkdirSync(work, { recursive: true });
  try {
    // A history of its own, which goes with the rest.
    const common = ["bench", "--data-dir", join(work, "data"), "-t", options.threads, "-o", "results"];
    const bench = (...rest) => json(twospeed(), [...common, ...rest]).runs[0].tests.at(-1);
    const variant = bench("-m", source, "-p", "16", "-n", "0", "-r", "1").end.worker.variant.name;
    const bin = peer(variant, options.peer, ["llama-perplexity", "llama-quantize"]);
    const file = (type) => join(work, `SmolLM2-${type}.gguf`);
    const made = (type, from) => say(join(bin, "llama-quantize"), ["--allow-requantize", from, file(type), type, options.threads]);
    made("F16", source);
    const types = options.types.split(",");
    for (const type of types) made(type, file("F16"));

    const kept = join(work, "base.bin");
    const asked = ["-f", text, "-c", options.ctx, "--chunks", options.chunks, "-t", options.threads, "--kl-divergence-base", kept];
    const theirs = (type, ...rest) => say(join(bin, "llama-perplexity"), ["-m", file(type), ...asked, ...rest]);
    const ours = (type, ...rest) => bench("-m", file(type), "--quality", "--ctx", options.ctx, "--chunks", options.chunks, ...rest).samples[0].reading;

    console.log(`llama.cpp 11434, CPU variant ${variant}, SmolLM2 135M, ${options.chunks} chunks of ${options.ctx} tokens\n`);
    console.log("| model | figure | twospeed | llama-perplexity | difference | verdict |");
    console.log("| --- | --- | ---: | ---: | ---: | --- |");
    let equal = true;
    const compare = (type, rows, reading, said) => {
      for (const { name, ours: own, theirs: line, within } of rows) {
        const found = said.match(line);
        if (!found) throw new SetupError(`llama-perplexity says no ${name} of ${type}:\n${said.slice(-2000)}`);
        const [mine, its] = [own(reading), Number(found[1])];
        const difference = mine / its - 1;
        if (within && !(Math.abs(difference) <= within)) equal = false;
        const verdict = within ? (Math.abs(difference) <= within ? "equal" : "differs") : "";
        console.log(`| ${type} | ${name} | ${mine.toPrecision(7)} | ${found[1]} | ${(100 * difference).toFixed(4)} % | ${verdict} |`);
      }
    };
    // This writes the base's predictions into the file that the others are compared with.
    compare("F16", alone, ours("F16", "--no-base"), theirs("F16"));
    for (const type of types) compare(type, figures, ours(type, "--base", file("F16")), theirs(type, "--kl-divergence"));
    if (!equal) process.exitCode = 1;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
