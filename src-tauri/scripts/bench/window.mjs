// What the window itself costs: how soon its first view can be used, how much memory and processor time
// it takes while nobody does anything. Linux only.

import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { build } from "../build.mjs";
import { setUp, SetupError } from "../setup.mjs";
import { median } from "./pairs.mjs";
import { family, processorMs, proportionalBytes, startedAt, switches } from "../../../tests/webdriver/processes.mjs";
import { Program, screen, surroundings, variables } from "../../../tests/webdriver/screen.mjs";
import { open, program } from "../../../tests/webdriver/window.mjs";

/** What is wanted: milliseconds, share of one core, bytes. */
const limits = { firstView: 800, idle: 0.01, memory: 330e6 };

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Milliseconds from the start of the process until the first view has been painted with its content,
 * each of `times` starts after one that warms the caches.
 */
export async function firstView(times = 5) {
  const around = surroundings();
  const { display, stop } = await screen();
  const found = [];
  try {
    for (let start = 0; start <= times; start += 1) {
      const window = await open({ around, display });
      try {
        await window.byRole("navigation");
        const painted = await window.until(
          () => window.run(() => {
            const paint = performance.getEntriesByName("first-contentful-paint")[0];
            return paint ? performance.timeOrigin + paint.startTime : 0;
          }),
          "the page says nothing of its first paint",
        );
        if (start > 0) found.push(painted - startedAt(window.pid));
      } finally {
        await window.close();
      }
    }
  } finally {
    await stop();
    around.remove();
  }
  return found;
}

/** Memory, processor time and wake-ups of a window that nobody touches, all its processes together. */
export async function idle(seconds = 20) {
  const around = surroundings();
  const { display, stop } = await screen();
  const window = new Program(program, ["--data-dir", around.data], { env: variables({ display, around }) });
  try {
    await sleep(5000);
    const pids = family(window.pid).map(({ pid }) => pid);
    if (pids.length < 3) throw new SetupError(`The window did not open: ${window.output}`);
    const before = { at: performance.now(), ms: processorMs(pids), switches: switches(window.pid) };
    await sleep(seconds * 1000);
    const share = (processorMs(pids) - before.ms) / (performance.now() - before.at);
    const woken = switches(window.pid)
      .map(({ thread, name, switches }) => ({ name, count: switches - (before.switches.find((one) => one.thread === thread)?.switches ?? 0) }))
      .filter(({ count }) => count > 0);
    return { share, memory: proportionalBytes(pids), processes: pids.length, woken };
  } finally {
    await window.stop();
    await stop();
    around.remove();
  }
}

/** Runs the benchmark; writes a Markdown table to standard output. */
export default async function window(args) {
  if (process.platform !== "linux") throw new SetupError("The window is measured on Linux only: it asks the kernel's /proc.");
  const { values: options } = parseArgs({
    args,
    options: { starts: { type: "string", default: "5" }, seconds: { type: "string", default: "20" } },
  });
  setUp({ tests: true });
  if (!process.env.TWOSPEED_WINDOW) build();
  if (loadavg()[0] > 0.5) console.error(`Load average is ${loadavg()[0].toFixed(2)}: other work disturbs the times.`);
  const starts = await firstView(Number(options.starts));
  const rest = await idle(Number(options.seconds));
  const rows = [
    ["first view painted, after a warm start", `${median(starts).toFixed(0)} ms (${starts.map((ms) => ms.toFixed(0)).join(", ")})`, `${limits.firstView} ms`, median(starts) <= limits.firstView],
    [`processor while idle, ${options.seconds} s`, `${(100 * rest.share).toFixed(2)} %`, `${100 * limits.idle} %`, rest.share <= limits.idle],
    [`memory (PSS) of ${rest.processes} processes`, `${(rest.memory / 1e6).toFixed(0)} MB`, `${limits.memory / 1e6} MB`, rest.memory <= limits.memory],
  ];
  console.log("| of the window | found | limit | |");
  console.log("| --- | ---: | ---: | --- |");
  for (const [what, found, limit, holds] of rows) console.log(`| ${what} | ${found} | ${limit} | ${holds ? "holds" : "fails"} |`);
  console.log(`\nThreads of the app that woke up while idle: ${rest.woken.map(({ name, count }) => `${name} ${count}`).join(", ") || "none"}`);
  if (rows.some(([, , , holds]) => !holds)) process.exitCode = 1;
}
