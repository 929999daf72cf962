// How near are expected speeds to measured ones on models that the calibration never saw? The machine is
// calibrated once, every speed is predicted, and only then is anything measured. A fifth of the tests is
// measured again at the end: what a machine cannot repeat, nobody can predict.

import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "../build.mjs";
import { model } from "../models.mjs";
import { cache, releaseFolder, run, setUp, twospeed } from "../setup.mjs";
import { json } from "./peer.mjs";
import { median } from "./pairs.mjs";

const types = ["Q4_0", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "F16"];

/** Largest mean errors, and the largest error of one test. */
const bounds = {
  prefill: 0.12,
  decode: 0.1,
  worst: 0.25,
  inside: 0.9,
  twin: 0.08,
};

/** Seconds that a twin's prediction may take. */
const twinSeconds = 30;

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const mean = (values) =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** The models of the set: each name with its file, made where it is not there yet. */
async function set(folder, wanted) {
  const files = [];
  const source = {
    smollm2: await model("smollm2"),
    gemma3: await model("gemma3"),
  };
  for (const base of Object.keys(source)) {
    for (const type of types) {
      const name = `${base}-${type}`;
      const file = join(folder, `${name}.gguf`);
      if (!wanted(name)) continue;
      if (!existsSync(file))
        run(twospeed(), ["quantize", source[base], file, type]);
      files.push({ name, file });
    }
  }
  for (const name of ["dense-1gb", "moe-2gb"]) {
    const file = join(folder, `${name}.gguf`);
    if (!wanted(name)) continue;
    if (!existsSync(file)) {
      run("cargo", [
        "build",
        "--release",
        "--locked",
        "-p",
        "twospeed-tests",
        "--bin",
        "synthetic-model",
      ]);
      run(join(releaseFolder(), "synthetic-model"), [name, file]);
    }
    files.push({ name, file });
  }
  return files;
}

/** Runs the benchmark; writes a Markdown table to standard output. */
export default async function estimator(args) {
  const { values: options } = parseArgs({
    args,
    options: {
      // Only models whose names contain this.
      only: { type: "string", default: "" },
      kv: { type: "string", default: "f16,q8_0" },
      depths: { type: "string", default: "0,1024,4096" },
      repetitions: { type: "string", default: "3" },
      retest: { type: "string", default: "0.2" },
      // Part of the tests for which twins are built.
      twins: { type: "string", default: "1" },
      threads: { type: "string", default: String(Math.min(cpus().length, 2)) },
      // Also keep every number here, as JSON.
      out: { type: "string" },
      // Take the measurements from such a file instead: what another model of the same machine would say.
      measured: { type: "string" },
    },
  });
  setUp();
  build({ window: false });
  if (loadavg()[0] > 0.5)
    console.error(
      `Load average is ${loadavg()[0].toFixed(2)}: other work disturbs the measurements.`,
    );
  const folder = join(cache, "estimator");
  mkdirSync(folder, { recursive: true });
  const models = await set(folder, (name) =>
    options.only.split(",").some((part) => name.includes(part)),
  );
  const data = join(folder, "data");
  rmSync(data, { recursive: true, force: true });
  run(twospeed(), ["--data-dir", data, "calibrate"]);

  const kept = options.measured
    ? JSON.parse(readFileSync(options.measured, "utf8"))
    : undefined;
  const tests = [];
  for (const { name, file } of models) {
    for (const kv of options.kv.split(",")) {
      for (const depth of options.depths.split(",").map(Number)) {
        const asked = [
          "estimate",
          file,
          "-p",
          "512",
          "-n",
          "128",
          "-d",
          String(depth),
          "-c",
          String(depth + 640),
          "-ctk",
          kv,
          "-ctv",
          kv,
          "--json",
        ];
        const said = json(twospeed(), ["--data-dir", data, ...asked]);
        for (const [phase, test] of [
          ["prefill", "pp512"],
          ["decode", "tg128"],
        ]) {
          const {
            expected_tok_s: expected,
            expected_low: low,
            expected_high: high,
            breakdown,
            ceiling_tok_s: ceiling,
          } = said[phase];
          tests.push({
            name,
            file,
            kv,
            depth,
            phase,
            test,
            expected,
            low,
            high,
            ceiling,
            breakdown,
          });
        }
      }
    }
  }

  const measure = (which, repetitions) => {
    const together = ({ file, kv }) => JSON.stringify([file, kv]);
    for (const key of new Set(which.map(together))) {
      const [file, kv] = JSON.parse(key);
      const group = which.filter((test) => together(test) === key);
      const depths = [...new Set(group.map(({ depth }) => depth))];
      const lengths = (phase) =>
        group.some((test) => test.phase === phase)
          ? phase === "prefill"
            ? "512"
            : "128"
          : "0";
      const rows = json(twospeed(), [
        "bench",
        "--no-save",
        "-m",
        file,
        "-t",
        options.threads,
        "-ctk",
        kv,
        "-ctv",
        kv,
        "-d",
        depths.join(","),
        "-p",
        lengths("prefill"),
        "-n",
        lengths("decode"),
        "-r",
        repetitions,
        "-o",
        "json",
      ]);
      for (const row of rows) {
        const test = group.find(
          ({ phase, depth }) =>
            depth === row.n_depth &&
            phase === (row.n_prompt ? "prefill" : "decode"),
        );
        if (test) (test.measured ??= []).push(median(row.samples_ts));
      }
      console.error(
        `${group[0].name} ${kv}: ${group.map(({ test, depth, measured, expected }) => `${test}@${depth} ${measured?.at(-1)?.toFixed(1)} (${expected?.toFixed(1)})`).join(", ")}`,
      );
    }
  };
  const save = () =>
    options.out && writeFileSync(options.out, JSON.stringify(tests, null, 1));
  if (kept) {
    for (const test of tests) {
      const same = kept.find((other) =>
        ["name", "kv", "depth", "phase"].every(
          (key) => other[key] === test[key],
        ),
      );
      test.measured = same?.measured;
    }
  } else {
    measure(tests, options.repetitions);
    save();
    // Spread over models, depths and phases alike.
    const every = Math.max(1, Math.round(1 / Number(options.retest)));
    measure(
      tests.filter((_, index) => index % every === 0),
      options.repetitions,
    );
  }
  save();
  if (Number(options.twins) > 0) {
    askTwins(data, tests, Math.max(1, Math.round(1 / Number(options.twins))));
    save();
  }
  report(tests.filter(({ measured }) => measured));
}

/** What twins say of each model, cache and depth, or of every so many. */
function askTwins(data, tests, every) {
  const together = ({ file, kv, depth }) => JSON.stringify([file, kv, depth]);
  const groups = [...new Set(tests.map(together))];
  for (const key of groups.filter((_, index) => index % every === 0)) {
    const [file, kv, depth] = JSON.parse(key);
    const asked = ["twin", file, "-p", "512", "-n", "128", "-d", String(depth)];
    const caches = ["-ctk", kv, "-ctv", kv, "--json"];
    const said = json(twospeed(), ["--data-dir", data, ...asked, ...caches]);
    const group = tests.filter((test) => together(test) === key);
    for (const test of group)
      test.twin = { ...said[test.phase], seconds: said.took_s };
    console.error(
      `twin of ${group[0].name} ${kv} @ d${depth}: ${group.map(({ test, twin, measured }) => `${test} ${twin.tok_s.toFixed(1)} (${measured?.[0].toFixed(1)})`).join(", ")}, ${said.took_s.toFixed(0)} s`,
    );
  }
}

/** What came of it, against the bounds. */
function report(tests) {
  const off = (test) => test.expected / test.measured[0] - 1;
  console.log(
    `llama.cpp 11434, ${cpus()[0].model}, calibrated once, ${tests.length} tests\n`,
  );
  console.log(
    "| model | KV | test | expected | band | measured | error | ceiling | twin |",
  );
  console.log("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
  for (const test of tests) {
    const { name, kv, depth, expected, low, high, measured, ceiling } = test;
    const number = (value) => value?.toFixed(1) ?? "unknown";
    console.log(
      `| ${name} | ${kv} | ${test.test}${depth ? ` @ d${depth}` : ""} | ${number(expected)} | ${number(low)} to ${number(high)} | ${number(measured[0])} | ${expected ? percent(off(test)) : "unknown"} | ${ceiling ? number(ceiling) : ""} | ${test.twin ? number(test.twin.tok_s) : ""} |`,
    );
  }
  const again = tests.filter(({ measured }) => measured.length > 1);
  const retest = (phase) =>
    mean(
      again
        .filter((test) => test.phase === phase)
        .map(({ measured }) => Math.abs(measured[1] / measured[0] - 1)),
    );
  const bounded = (bound, phase) =>
    retest(phase) > (2 / 3) * bound ? 1.5 * retest(phase) : bound;
  let holds = true;
  const verdict = (what, value, bound, at) => {
    const good = at === "least" ? value >= bound : value <= bound;
    holds &&= good;
    console.log(
      `- ${what}: ${percent(value)} (at ${at} ${percent(bound)}): ${good ? "holds" : "MISSED"}`,
    );
  };
  console.log("");
  for (const phase of ["prefill", "decode"]) {
    const of = tests.filter((test) => test.phase === phase);
    if (of.some(({ expected }) => !expected))
      throw new Error(`Not every speed of ${phase} was expected.`);
    const errors = of.map((test) => Math.abs(off(test)));
    if (again.length)
      console.log(
        `- ${phase}, measured again: mean difference ${percent(retest(phase))}`,
      );
    verdict(
      `${phase}, mean absolute error`,
      mean(errors),
      bounded(bounds[phase], phase),
      "most",
    );
    verdict(
      `${phase}, worst`,
      Math.max(...errors),
      bounded(bounds.worst, phase),
      "most",
    );
    const twins = of.filter(({ twin }) => twin);
    if (twins.length)
      verdict(
        `${phase}, mean absolute error of ${twins.length} twins`,
        mean(
          twins.map(({ twin, measured }) =>
            Math.abs(twin.tok_s / measured[0] - 1),
          ),
        ),
        bounded(bounds.twin, phase),
        "most",
      );
  }
  const seconds = tests.flatMap(({ twin }) => twin?.seconds ?? []);
  if (seconds.length) {
    const slowest = Math.max(...seconds);
    holds &&= slowest < twinSeconds;
    console.log(
      `- slowest twin: ${slowest.toFixed(1)} s (under ${twinSeconds} s): ${slowest < twinSeconds ? "holds" : "MISSED"}`,
    );
  }
  const naive = tests
    .filter(({ ceiling }) => ceiling)
    .map(({ ceiling, measured }) => Math.abs(ceiling / measured[0] - 1));
  console.log(
    `- decode, mean absolute error of the ceiling alone: ${percent(mean(naive))}`,
  );
  verdict(
    "inside the band",
    mean(
      tests.map(({ low, high, measured }) =>
        Number(low <= measured[0] && measured[0] <= high),
      ),
    ),
    bounds.inside,
    "least",
  );
  if (!holds) process.exitCode = 1;
}
