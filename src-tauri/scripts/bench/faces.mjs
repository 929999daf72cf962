// Does the open window slow down what it measures? The same plan from the window (visible, on a screen
// that nobody sees) and from the command line, in alternating pairs that keep their results in one
// history; and by mechanism: what of the window wakes up while a sample is timed. Linux only.

import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "../build.mjs";
import { run, setUp, SetupError, twospeed } from "../setup.mjs";
import { family, processorMs, switches } from "../../../tests/webdriver/processes.mjs";
import { surroundings } from "../../../tests/webdriver/screen.mjs";
import { add, ended, folderOf, measuredTests, press, select, smollm, start, tests } from "../../../tests/webdriver/steps.mjs";
import { open } from "../../../tests/webdriver/window.mjs";
import { judge, median } from "./pairs.mjs";

const wanted = 0.95;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for the page to change until `fits` is true of it, without asking it meanwhile. */
function pageSays(window, fits) {
  return window.run(`() => new Promise((resolve) => {
    const fits = ${fits};
    const observer = new MutationObserver(look);
    function look() { if (fits()) { observer.disconnect(); resolve(); } }
    observer.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    look();
  })`);
}

const isOver = () => [...document.querySelectorAll("main button")].some((button) => button.textContent.trim() === "Measure again");

/** Speeds of the newest run, as the history has them: tokens per second by test. */
function newest(data) {
  const all = measuredTests(data);
  const run = all.at(-1).run;
  return Object.fromEntries(all.filter((test) => test.run === run).map((test) => [test.n_prompt ? `pp${test.n_prompt}` : `tg${test.n_gen}`, test.mean]));
}

/** Threads of the window's processes that woke up in some seconds inside one long timed section. */
async function wakeUps(window, seconds) {
  await press(window, "button", "Change the plan");
  await tests(window, { prompt: "", answer: "4096", repetitions: 1 });
  await start(window);
  await pageSays(window, () => document.querySelector("main .timing") !== null);
  // The worker is the engine's: what it does there is the work itself, and when it begins to compute,
  // the section has begun.
  const all = family(window.pid);
  const workers = all.filter(({ command }) => command === twospeed()).map(({ pid }) => pid);
  const processes = all.filter(({ pid }) => !workers.includes(pid));
  const idle = processorMs(workers);
  while (processorMs(workers) < idle + 50) await sleep(10);
  const count = () => processes.flatMap(({ pid, command }) => switches(pid).map((thread) => ({ ...thread, pid, command })));
  const before = count();
  await sleep(seconds * 1000);
  const woken = count()
    .map((now) => ({ ...now, count: now.switches - (before.find(({ pid, thread }) => pid === now.pid && thread === now.thread)?.switches ?? 0) }))
    .filter(({ count }) => count > 0);
  await press(window, "button", "Cancel");
  await ended(window);
  return woken;
}

/** Runs the benchmark; writes a Markdown table to standard output. */
export default async function faces(args) {
  if (process.platform !== "linux") throw new SetupError("The window is measured on Linux only: it asks the kernel's /proc.");
  const { values: options } = parseArgs({
    args,
    options: { pairs: { type: "string", default: "30" }, seconds: { type: "string", default: "5" } },
  });
  setUp({ tests: true });
  if (!process.env.TWOSPEED_WINDOW) build();
  if (loadavg()[0] > 0.5) console.error(`Load average is ${loadavg()[0].toFixed(2)}: other work disturbs the pairs.`);
  const around = surroundings();
  const folder = await folderOf(around, "smollm2");
  const window = await open({ around });
  const { data } = window;
  const ratios = new Map();
  const speeds = new Map();
  let woken;
  try {
    await add(window, folder);
    await select(window, `${smollm} Q4_1`);
    await tests(window, { prompt: "512", answer: "128", repetitions: 1 });
    // The first run also measures the read speed; it counts for nothing.
    await start(window);
    await ended(window);
    const sides = {
      window: async () => {
        await press(window, "button", "Measure again");
        await pageSays(window, `() => !(${isOver})()`);
        await pageSays(window, isOver);
        return newest(data);
      },
      terminal: () => {
        run(twospeed(), ["--data-dir", data, "bench", "-m", join(folder, "SmolLM2-135M-Instruct.Q4_1.gguf"), "-p", "512", "-n", "128", "-r", "1"], { stdio: "ignore" });
        return newest(data);
      },
    };
    for (let pair = 0; pair < Number(options.pairs); pair += 1) {
      // The order within a pair alternates too, so that a steady drift favours neither.
      const order = pair % 2 ? ["terminal", "window"] : ["window", "terminal"];
      const found = {};
      for (const side of order) found[side] = await sides[side]();
      for (const [test, speed] of Object.entries(found.window)) {
        if (!ratios.has(test)) ratios.set(test, []), speeds.set(test, { window: [], terminal: [] });
        ratios.get(test).push(speed / found.terminal[test]);
        for (const side of order) speeds.get(test)[side].push(found[side][test]);
      }
      console.error(`pair ${pair + 1}: ${[...ratios].map(([test, list]) => `${test} ${list.at(-1).toFixed(3)}`).join(", ")}`);
    }
    woken = await wakeUps(window, Number(options.seconds));
  } finally {
    await window.close();
    around.remove();
  }
  console.log(`SmolLM2 135M Q4_1, ${options.pairs} alternating pairs, ${cpus()[0].model}\n`);
  console.log("| test | window tok/s | command line tok/s | median ratio | lower 95 % bound | |");
  console.log("| --- | ---: | ---: | ---: | ---: | --- |");
  let holds = true;
  for (const [test, list] of ratios) {
    const verdict = judge(list);
    holds &&= verdict.lower !== null && verdict.lower >= wanted;
    const word = verdict.lower === null ? "too few pairs" : verdict.lower >= wanted ? "holds" : "fails";
    const { window: here, terminal } = speeds.get(test);
    console.log(`| ${test} | ${median(here).toFixed(1)} | ${median(terminal).toFixed(1)} | ${verdict.median.toFixed(3)} | ${verdict.lower?.toFixed(3) ?? "unknown"} | ${word} |`);
  }
  const names = woken.map(({ name, pid, count }) => `${name} (${pid}) ${count}`).join(", ");
  console.log(`\nThreads of the window's processes that woke up in ${options.seconds} s of a timed section: ${names || "none"}`);
  console.log(`None may wake up but the engine's: ${woken.length === 0 ? "holds" : "fails"}.`);
  if (!holds || woken.length > 0) process.exitCode = 1;
}
