// Does `twospeed bench` stand in for llama-bench of the same engine build? The same command lines, together
// every flag of it, run by both in turn: the same rows in the same order with the same settings, the same
// form in every format, and speeds that agree.

import { spawnSync } from "node:child_process";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "../build.mjs";
import { model } from "../models.mjs";
import { setUp, SetupError, twospeed } from "../setup.mjs";
import { json, peer } from "./peer.mjs";
import { judge, median } from "./pairs.mjs";

const wanted = 0.96;
// A row whose speeds lie further apart than this needs a reason.
const apart = { from: 0.85, to: 1.15 };

// What two runs of one program differ in too, and commit and number, which the two builds were not told alike.
const measured = new Set(["test_time", "avg_ns", "stddev_ns", "avg_ts", "stddev_ts", "samples_ns", "samples_ts", "build_commit", "build_number"]);

/** Command lines; A and B stand for two models. Small tests: what is compared is most of all what is measured. */
const lines = [
  "-m A -p 32,64 -n 8",
  "-m A -m B -p 32 -n 8",
  "-m A,B -p 32 -n 0",
  "-m A -p 16-64*2 -n 0",
  "-m A -p 0 -n 4-12+4",
  "-m A -p 0 -n 0 -pg 32,8 -pg 16,4",
  "-m A --n_prompt 32 --n-gen 8 -d 0,64",
  "-m A -p 64 -n 0 -b 32,64 -ub 16,32",
  "-m A -p 32 -n 8 -t 1,2",
  "-m A -p 32 -n 0 -C 0x0,0x3 --cpu-strict 1 --poll 0,50",
  "-m A -p 32 -n 8 -fa 0,1,auto",
  "-m A -p 32 -n 8 -fa on -ctk f16,q8_0 -ctv q8_0,bf16",
  "-m A -p 32 -n 0 -ngl 0,99 -sm none,layer -mg 0",
  "-m A -p 32 -n 0 -ncmoe 0,1 -nkvo 1 -nopo 0,1",
  "-m A -p 32 -n 0 -lm none,mmap,dio -lzm on,off",
  "-m A -p 32 -n 0 -ts 1,3/1 -dev auto,none",
  "-m A -p 32 -n 0 -ot blk\\.0=CPU,token=CPU;output=CPU",
  "-m A -p 32 -n 0 -embd 0,1 --no-host 1 --repack 0,1",
  "-m A -p 32 -n 8 -fitt 512 -fitc 1024",
  "-m A -p 32 -n 8 --numa distribute --prio 0 --delay 1 --no-warmup --progress -v --offline",
];

/** Runs the benchmark; writes a Markdown table to standard output. */
export default async function dropin(args) {
  const { values: options } = parseArgs({
    args,
    options: {
      pairs: { type: "string", default: "2" },
      repetitions: { type: "string", default: "3" },
      // Folder of a llama-bench of the same build, where there is one; its CPU library is replaced.
      peer: { type: "string" },
      // Lines to run, counted from 1: all where none is named.
      lines: { type: "string" },
      // For a loaded machine: speeds are not judged.
      "fields-only": { type: "boolean", default: false },
    },
  });
  setUp();
  build({ window: false });
  const files = { A: await model("smollm2"), B: await model("gemma3") };
  const first = json(twospeed(), ["bench", "-m", files.A, "-p", "16", "-n", "0", "-r", "1", "-o", "results"]);
  const variant = first.runs[0].tests.at(-1).end.worker.variant.name;
  const theirs = join(peer(variant, options.peer), "llama-bench");
  if (loadavg()[0] > 0.5) console.error(`Load average is ${loadavg()[0].toFixed(2)}: other work disturbs the pairs.`);

  const sides = {
    ours: { command: twospeed(), before: ["bench", "--no-save"] },
    theirs: { command: theirs, before: [] },
  };
  const chosen = options.lines ? options.lines.split(",").map((number) => lines[Number(number) - 1]) : lines;
  const faults = [];
  const rows = new Map();
  const all = [];
  for (let pair = 0; pair < Number(options.pairs); pair += 1) {
    for (const [index, line] of chosen.entries()) {
      const words = wordsOf(line, files);
      // The order within a pair alternates, so that a steady drift favours neither.
      const order = (pair + index) % 2 ? ["theirs", "ours"] : ["ours", "theirs"];
      const got = Object.fromEntries(order.map((side) => [side, results(sides[side], [...words, "-r", options.repetitions, "-o", "json"])]));
      faults.push(...differences(line, got.ours, got.theirs));
      for (const [at, row] of got.ours.entries()) {
        const other = got.theirs[at];
        if (!other) break;
        const ratio = row.avg_ts / other.avg_ts;
        const key = `${line} | ${at + 1}: ${name(row)}`;
        rows.set(key, [...(rows.get(key) ?? []), ratio]);
        all.push(ratio);
      }
      console.error(`pair ${pair + 1}, ${index + 1} of ${chosen.length}: ${got.ours.length} rows  ${line}`);
    }
  }
  faults.push(...forms(sides, files));

  for (const fault of new Set(faults)) console.log(`DIFFERS: ${fault}`);
  const judged = judge(all);
  const far = [...rows].filter(([, ratios]) => median(ratios) < apart.from || median(ratios) > apart.to);
  console.log(`\nllama.cpp 11434, CPU variant ${variant}, ${cpus()[0].model}: ${chosen.length} command lines, ${rows.size} rows, ${options.pairs} alternating pairs each\n`);
  console.log("| rows | with the same settings | median ratio of tok/s | lower 95 % bound | rows outside 0.85 to 1.15 |");
  console.log("| ---: | ---: | ---: | ---: | ---: |");
  console.log(`| ${rows.size} | ${faults.length ? "no, see above" : "all"} | ${judged.median.toFixed(3)} | ${judged.lower?.toFixed(3) ?? "unknown"} | ${far.length} |`);
  if (far.length) console.log("");
  for (const [key, ratios] of far) console.log(`- ${median(ratios).toFixed(3)}  ${key}`);
  const slow = !options["fields-only"] && (far.length > 0 || judged.lower === null || judged.lower < wanted);
  if (faults.length || slow) process.exitCode = 1;
}

function wordsOf(line, files) {
  const named = (word) => word.replace(/^A$|^A(?=,)|(?<=,)A$/, files.A).replace(/^B$|(?<=,)B$/, files.B);
  const words = line.split(" ");
  return words.map((word, at) => (words[at - 1] === "-m" ? named(word) : word));
}

function run(side, args) {
  return spawnSync(side.command, [...side.before, ...args], { encoding: "utf8", maxBuffer: 1 << 28 });
}

function results(side, args) {
  const result = run(side, args);
  if (result.status !== 0) throw new SetupError(`${side.command} ${args.join(" ")} failed:\n${result.stderr}`);
  return JSON.parse(result.stdout);
}

function name(row) {
  const parts = [row.n_prompt ? `pp${row.n_prompt}` : "", row.n_gen ? `tg${row.n_gen}` : ""].filter(Boolean);
  return parts.join("+") + (row.n_depth ? ` @ d${row.n_depth}` : "");
}

/** What is not the same in two lists of rows beside what was measured. */
function differences(line, ours, theirs) {
  if (ours.length !== theirs.length) return [`${line}: ${ours.length} rows, llama-bench has ${theirs.length}`];
  const found = [];
  for (const [at, row] of ours.entries()) {
    const names = (object) => Object.keys(object).join();
    if (names(row) !== names(theirs[at])) found.push(`${line}: row ${at + 1} has other fields`);
    for (const [field, value] of Object.entries(theirs[at])) {
      if (!measured.has(field) && row[field] !== value) found.push(`${line}: row ${at + 1}: ${field} is ${row[field]}, llama-bench says ${value}`);
    }
  }
  return found;
}

/** Every format, and standard error's: the same text but for what was measured. */
function forms(sides, files) {
  const words = wordsOf("-m A -p 16,32 -n 4 -t 1,2 -fa 0 -r 2", files);
  const found = [];
  const compare = (what, ours, theirs) => {
    if (ours !== theirs) found.push(`${what}: the form differs\n--- twospeed\n${ours}--- llama-bench\n${theirs}`);
  };
  for (const format of ["md", "csv", "json", "jsonl", "sql"]) {
    const output = (side) => run(side, [...words, "-o", format]).stdout;
    compare(`-o ${format}`, masked(format, output(sides.ours)), masked(format, output(sides.theirs)));
    const error = (side) => rowsAlone(run(side, [...words, "-o", "none", "-oe", format]).stderr);
    compare(`-oe ${format}`, masked(format, error(sides.ours)), masked(format, error(sides.theirs)));
  }
  const devices = (side) => run(side, ["--list-devices"]).stdout;
  compare("--list-devices", devices(sides.ours), devices(sides.theirs));
  for (const bad of [["-p", "x"], ["--frobnicate"], ["-o", "xml"], ["-ctk", "q9"], ["-fa", "2"], ["-sm", "half"]]) {
    for (const [side, { command, before }] of Object.entries(sides)) {
      const { status } = spawnSync(command, [...before, "-m", files.A, ...bad]);
      if (status === 0) found.push(`${bad.join(" ")} is taken by ${side}`);
    }
  }
  return found;
}

/** Standard error without what each program says beside its rows: our warnings, their backend. */
function rowsAlone(text) {
  return text.replace(/^(pp\d+|tg\d+) of .*\n|^load_backend: .*\n/gm, "");
}

/** The text with what was measured made the same: each format has its own way to write it. */
function masked(format, text) {
  if (format === "md") return text.replace(/ +\d+\.\d\d ± \d+\.\d\d \|/g, " SPEED |").replace(/^build: .*/m, "build: BUILD");
  if (format === "json" || format === "jsonl") {
    return text
      .replace(/"(avg|stddev)_(ns|ts)": [\d.]+/g, '"$1_$2": NUMBER')
      .replace(/"samples_(ns|ts)": \[ [^\]]+ \]/g, '"samples_$1": [ NUMBERS ]')
      .replace(/"test_time": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"/g, '"test_time": "TIME"')
      .replace(/"build_commit": "[^"]*"/g, '"build_commit": "COMMIT"')
      .replace(/"build_number": \d+/g, '"build_number": NUMBER');
  }
  const quote = format === "csv" ? '"' : "'";
  const value = `${quote}[^${quote}]*${quote}`;
  return text
    .replace(new RegExp(`${quote}\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ${quote}(, ?)${value}, ?${value}, ?${value}, ?${value}`, "g"), "TIME AND NUMBERS$1")
    .replace(new RegExp(`(^|\\()${value}(, ?)${quote}\\d+${quote}`, "gm"), "$1BUILD");
}
