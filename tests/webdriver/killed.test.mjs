// The engine dies, or the window closes, in the middle of a run.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { after, before, describe, test } from "node:test";
import { By } from "selenium-webdriver";
import { descendants, family } from "./processes.mjs";
import { surroundings } from "./screen.mjs";
import { open } from "./window.mjs";
import * as person from "./steps.mjs";
import { patience, smollm } from "./steps.mjs";

const given = `${smollm} Q4_1`;

/** Longest time for which the page may not answer, in milliseconds. */
const LONGEST_GAP = 200;

/** The process of the engine that measures: the last one. One that was asked for memory before may still wait for more. */
function worker(window) {
  return descendants(window.pid).findLast(({ pid, command }) => basename(command) === "twospeed" && arguments_(pid).includes("worker"))?.pid;
}

function arguments_(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    return [];
  }
}

describe("an engine that is killed in the middle of a run", () => {
  let around;
  let window;
  let stalls;

  before(async () => {
    around = surroundings();
    window = await open({ around });
    await person.add(window, await person.folderOf(around, "smollm2"));
  });
  after(async () => {
    await window?.close();
    around.remove();
  });

  test("leaves a row that says so, and the rest goes on", async () => {
    const builtin = await window.run(() => [...document.querySelectorAll("main input[type=checkbox][aria-label]")].map((box) => box.getAttribute("aria-label")).find((name) => /built-in/i.test(name)));
    await person.select(window, given, builtin);
    await person.tests(window, { prompt: 512, answer: 32, repetitions: 3 });
    stalls = watchStalls(window);
    await stalls.begin();
    await person.start(window);
    await person.sampled(window, 0, 1);
    const killed = worker(window);
    assert.ok(killed, "the engine is no child of the window");
    process.kill(killed, "SIGKILL");
    await person.ended(window);
    const rows = await person.table(window);
    assert.match(rows[0].state, /^failed/);
    assert.match(rows[0].says, /Failed\..*(killed|ended)/i);
    // One sentence: who, what, and what to do.
    assert.doesNotMatch(rows[0].says, /undefined|null|\[object/);
    assert.deepEqual(rows.slice(2).map(({ state }) => state.split(" ")[0]), ["done", "done"], JSON.stringify(rows));
    for (const { measured } of rows.slice(2)) assert.match(measured, /^\d/);
    assert.equal(worker(window) === killed, false);
  });

  test("never keeps the page from answering", async (context) => {
    const { gaps, told } = await stalls.end();
    context.diagnostic(told);
    assert.deepEqual(gaps.filter(({ own }) => own > LONGEST_GAP), []);
  });

  test("keeps the samples that were made before", async () => {
    const [first, ...rest] = person.measuredTests(window.data);
    assert.equal(first.status, "failed");
    assert.ok(first.samples.length >= 1 && first.samples.length < 3, `${first.samples.length} samples`);
    assert.equal(rest.filter(({ status }) => status === "done").length >= 2, true);
  });

  test("is told on the run's page too", async () => {
    await person.press(window, "button", "Compare these results");
    await person.figure(window);
    await person.press(window, "link", "Open its run");
    await window.waitForText(/Failed\./, patience);
  });
});

describe("a window that is closed in the middle of a run", () => {
  test("leaves no process, and the history keeps what was measured", async () => {
    const around = surroundings();
    let window = await open({ around });
    try {
      await person.add(window, await person.folderOf(around, "smollm2"));
      await person.select(window, given);
      await person.tests(window, { prompt: 64, answer: 256, repetitions: 50 });
      await person.start(window);
      await person.sampled(window, 0, 2);
      const members = family(window.pid);
      assert.ok(members.some(({ command }) => basename(command) === "twospeed"), "no engine runs");
      close(window);
      const left = () => members.filter(({ pid, command }) => descriptor(pid) === command);
      await window.until(() => left().length === 0, () => `these are left: ${JSON.stringify(left())}`, patience);
      await window.close();

      const [first] = person.measuredTests(around.data);
      assert.ok(first.samples.length >= 2, `${first.samples.length} samples`);

      window = await open({ around });
      await person.go(window, "Compare");
      await window.waitForText(/Q4_1/, patience);
      const link = await window.driver.findElement(By.css("a[data-run]"));
      await link.click();
      await window.waitForText(/Cut off: Twospeed ended while it ran|Stopped by you/, patience);
      const rows = await window.run(() => document.querySelectorAll("section.test tbody tr").length);
      assert.ok(rows >= 2, `${rows} samples on the page of the run`);
    } finally {
      await window.close();
      around.remove();
    }
  });
});

function descriptor(pid) {
  return family(pid)[0].command;
}

/** Asks the window to close, as a window manager does when its cross is pressed. */
function close(window) {
  const script = `
import ctypes, ctypes.util, sys
x = ctypes.CDLL(ctypes.util.find_library("X11") or "libX11.so.6")
for name in "XOpenDisplay", "XDefaultRootWindow", "XInternAtom": getattr(x, name).restype = ctypes.c_void_p
class Message(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("sent", ctypes.c_int), ("display", ctypes.c_void_p),
                ("window", ctypes.c_ulong), ("kind", ctypes.c_ulong), ("format", ctypes.c_int), ("data", ctypes.c_long * 5), ("rest", ctypes.c_long * 12)]
display = ctypes.c_void_p(x.XOpenDisplay(None))
atom = lambda name: ctypes.c_ulong(x.XInternAtom(display, name, 0))
def children(window):
    root, parent, count, found = ctypes.c_ulong(), ctypes.c_ulong(), ctypes.c_uint(), ctypes.POINTER(ctypes.c_ulong)()
    x.XQueryTree(display, ctypes.c_ulong(window), ctypes.byref(root), ctypes.byref(parent), ctypes.byref(found), ctypes.byref(count))
    return [found[at] for at in range(count.value)]
def asks(window):
    protocols, count = ctypes.POINTER(ctypes.c_ulong)(), ctypes.c_int()
    known = x.XGetWMProtocols(display, ctypes.c_ulong(window), ctypes.byref(protocols), ctypes.byref(count))
    return known and atom(b"WM_DELETE_WINDOW").value in [protocols[at] for at in range(count.value)]
def shown(window):
    name = ctypes.c_char_p()
    return x.XFetchName(display, ctypes.c_ulong(window), ctypes.byref(name)) and name.value
asked = [window for window in children(x.XDefaultRootWindow(display)) if asks(window) and shown(window) == b"Twospeed"]
for window in asked:
    message = Message(33, 0, 1, display, window, atom(b"WM_PROTOCOLS").value, 32, (ctypes.c_long * 5)(atom(b"WM_DELETE_WINDOW").value, 0, 0, 0, 0))
    x.XSendEvent(display, ctypes.c_ulong(window), 0, 0, ctypes.byref(message))
x.XSync(display, 0)
sys.exit(0 if asked else "no window called Twospeed can be closed")`;
  const python = spawnSync("python3", ["-c", script], { env: window.env, encoding: "utf8" });
  assert.equal(python.status, 0, python.stderr);
}

/**
 * Watches how long the page does not come to answer: the gaps of a timer of 20 ms. What the machine
 * did not give to the page is no fault of the page: the time for which its thread was ready to run
 * and others ran (the kernel counts it), and the gaps that an idle process has too.
 */
function watchStalls(window) {
  const EVERY = 20;
  const page = descendants(window.pid).filter(({ command }) => basename(command) === "WebKitWebProcess").map(({ pid }) => pid);
  const waits = [];
  const idle = [];
  const waited = () => page.reduce((sum, pid) => sum + Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6, 0);
  let last = Date.now();
  const timer = setInterval(() => {
    const now = Date.now();
    if (now - last > 2 * EVERY) idle.push({ from: last, to: now });
    last = now;
    waits.push({ at: now, ms: waited() });
  }, EVERY);
  timer.unref();

  const within = (from, to) => {
    const before = waits.findLast(({ at }) => at <= from) ?? waits[0];
    const after = waits.find(({ at }) => at >= to) ?? waits.at(-1);
    const others = idle.reduce((sum, gap) => sum + Math.max(0, Math.min(gap.to, to) - Math.max(gap.from, from)), 0);
    return Math.max(after.ms - before.ms, others);
  };

  return {
    begin: () =>
      window.run((every) => {
        const gaps = [];
        let last = Date.now();
        const timer = setInterval(() => {
          const now = Date.now();
          if (now - last > 2 * every) gaps.push({ from: last, to: now });
          last = now;
        }, every);
        globalThis.stalls = { gaps, timer };
      }, EVERY),
    end: async () => {
      const gaps = await window.run(() => {
        clearInterval(globalThis.stalls.timer);
        return globalThis.stalls.gaps;
      });
      clearInterval(timer);
      const judged = gaps.map(({ from, to }) => ({ from, gap: to - from, own: to - from - within(from, to) }));
      const most = (values) => Math.round(Math.max(0, ...values));
      const told = `longest gap of the page ${most(judged.map(({ gap }) => gap))} ms, of which its own ${most(judged.map(({ own }) => own))} ms; of an idle process ${most(idle.map(({ from, to }) => to - from))} ms`;
      return { gaps: judged, told };
    },
  };
}

