// What a person does in the window, step by step. Each step waits for what it leads to.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync } from "node:fs";
import { basename, join } from "node:path";
import { By, Key } from "selenium-webdriver";
import { model } from "../../src-tauri/scripts/models.mjs";

/** Long enough for a machine that is busy with something else, in milliseconds. */
export const patience = Number(process.env.TWOSPEED_PATIENCE_MS || 60_000);

/** The same for work that takes its time even where nothing else runs: a model made, a run. */
const work = 4 * patience;

/** How the file of SmolLM2 calls itself. */
export const smollm = "Smollm2 135M 8k Lc100K Mix1 Ep2";

/** A folder with a copy of these test models. */
export async function folderOf(around, ...names) {
  const folder = around.inside("models");
  for (const name of names) {
    const path = await model(name);
    copyFileSync(path, join(folder, basename(path)));
  }
  return folder;
}

/** Does something with elements of the page, again where they changed meanwhile. */
export function steadily(window, act, complaint) {
  let last;
  const attempt = async () => {
    try {
      return { answer: await act() };
    } catch (error) {
      if (!/stale|intercept|not interactable|obscured/i.test(`${error.name} ${error.message}`)) throw error;
      last = error;
      return null;
    }
  };
  return window.until(attempt, () => `${complaint}: ${last?.message}`, patience).then(({ answer }) => answer);
}

/** Presses the button, link or menu item of this name. */
export function press(window, role, name) {
  const act = async () => {
    const element = await window.byRole(role, name, { wait: patience });
    await element.click();
    return element;
  };
  return steadily(window, act, `${name} cannot be pressed`);
}

/** Writes into a text field in place of what it holds. */
export function write(window, name, text, end = "") {
  const act = async () => {
    const field = await window.byRole("textbox", name, { wait: patience });
    await field.sendKeys(Key.chord(Key.CONTROL, "a"), Key.BACK_SPACE);
    if (text + end !== "") await field.sendKeys(text, end);
    return field;
  };
  return steadily(window, act, `${name} cannot be written into`);
}

/** Sends keys to whatever has the focus. */
export function keys(window, ...sent) {
  return window.driver.switchTo().activeElement().sendKeys(...sent);
}

/** Opens a view by the rail. */
export async function go(window, view) {
  const link = window.driver.findElement(By.css(`nav a[href="#${view.toLowerCase()}"]`));
  await link.click();
  await window.byRole("heading", view, { wait: patience });
}

/** Chooses light or dark colours by the rail. */
export async function wear(window, theme) {
  await press(window, "button", theme === "dark" ? "Dark" : "Light");
  await window.until(() => window.run((wanted) => document.documentElement.dataset.theme === wanted, theme), `the page is not ${theme}`, patience);
}

/** Makes the page so large. There is no window manager: the window does what it is told. */
export async function resize(window, width, height) {
  await window.driver.manage().window().setRect({ width, height, x: 0, y: 0 });
  const inner = () => window.run(() => `${innerWidth}x${innerHeight}`);
  await window.until(async () => (await inner()) === `${width}x${height}`, "the window keeps its size", patience);
}

/** Adds a folder or file to Models by its path, and waits until it was looked through. */
export async function add(window, path) {
  await go(window, "Models");
  await write(window, "Folder or file path", path, Key.ENTER);
  const shown = () => window.run(() => document.querySelector("form [role=status]").textContent);
  await window.until(async () => (await shown()).endsWith("was added."), "the path is not added", patience);
  await window.until(() => looked(window), "the folders are still looked through", patience);
}

function looked(window) {
  return window.run(() => !/look/.test(document.querySelector("main h1 + [role=status]").textContent));
}

/** Makes a quantization that is not there; answers with the progress that was seen, as percent. */
export async function make(window, name) {
  await go(window, "Models");
  await watch(window, "progress", (label) => {
    const bar = document.querySelector(`[role=progressbar][aria-label^="${label}"]`);
    return bar?.getAttribute("aria-valuenow") ?? null;
  }, name);
  await press(window, "button", `Make ${name}`);
  const enabled = () => window.run((label) => document.querySelector(`input[aria-label="${label}"]`)?.disabled === false, name);
  await window.until(enabled, `${name} is not made`, work);
  const seen = await watched(window, "progress");
  return seen.filter((value) => value !== null).map(Number);
}

/** Selects these rows of Models and no others, and goes to Measure with them. */
export async function select(window, ...names) {
  await go(window, "Models");
  const clear = await window.driver.findElements(By.xpath("//section[@aria-label='Selected models']//button[normalize-space()='Clear']"));
  for (const button of clear) await button.click();
  for (const name of names) await press(window, "checkbox", name);
  await press(window, "button", `Measure ${names.length} selected`);
  // Of the models that were measured last, the run is still there.
  const change = () => window.driver.findElements(By.xpath("//button[normalize-space()='Change the plan']"));
  const ready = async () => {
    for (const button of await change()) await button.click();
    return (await window.driver.findElements(By.xpath("//button[normalize-space()='Start']"))).length > 0;
  };
  await window.until(ready, "Measure does not open", patience);
}

/** Chooses the tests: `"Quick"`, or own values `{ prompt, answer, repetitions }`. */
export async function tests(window, chosen) {
  if (typeof chosen === "string") return press(window, "radio", chosen);
  await press(window, "radio", "Own values");
  await write(window, "Prompt, tokens", String(chosen.prompt));
  await write(window, "Answer, tokens", String(chosen.answer));
  await write(window, "Repetitions", String(chosen.repetitions));
}

/** Starts the run, and waits until it goes on. */
export async function start(window) {
  const startable = async () => (await window.byRole("button", "Start", { wait: patience })).isEnabled();
  await window.until(startable, "the run cannot be started", patience);
  await press(window, "button", "Start");
  await window.byRole("button", "Cancel", { wait: patience });
  // One measurement at a time on a machine: another program's may go on.
  const waiting = () => window.run(() => document.querySelector("[data-testid=headline]")?.textContent.startsWith("Waiting") ?? true);
  await window.until(async () => !(await waiting()), "another measurement does not end", 10 * patience);
}

/** Waits until the run is over. */
export function ended(window) {
  return window.until(() => window.run(() => [...document.querySelectorAll("main button")].some((button) => button.textContent.trim() === "Measure again")), "the run does not end", work);
}

/** The table of the run: `{ position, measured, samples, state, says }` of each test. */
export function table(window) {
  return window.run(() =>
    [...document.querySelectorAll("tr[data-position]")].map((row) => {
      const below = row.nextElementSibling;
      return {
        position: Number(row.dataset.position),
        measured: row.querySelector("[data-testid=measured]").textContent.trim(),
        deviation: row.querySelector(".deviation")?.textContent.trim() ?? "",
        samples: row.querySelector("svg[role=img]").getAttribute("aria-label"),
        state: row.querySelector("td.state").textContent.trim(),
        says: below?.matches("tr.saying") ? below.textContent.trim().replace(/\s+/g, " ") : "",
      };
    }),
  );
}

/** Waits until a test of the run has so many samples. */
export function sampled(window, position, count) {
  let said = "";
  const made = async () => {
    said = await window.run(() => document.querySelector("[data-testid=headline]").parentElement.innerText);
    const row = (await table(window))[position];
    return row !== undefined && row.samples.startsWith("Samples") && row.samples.split(";")[0].split(", ").length >= count;
  };
  return window.until(made, () => `test ${position} has less than ${count} samples: ${said}`, work);
}

/** Measures these models from Models on, to the end of the run. */
export async function measure(window, names, chosen) {
  await select(window, ...names);
  await tests(window, chosen);
  await start(window);
  await ended(window);
}

/** Waits until the figure of Compare is there. */
export async function figure(window) {
  return window.until(async () => (await window.driver.findElements(By.css(".figure .drawing svg")))[0], "there is no figure", patience);
}

/** Notes in the page each different answer of a function from now on, at every change of the page. */
export function watch(window, key, ask, ...values) {
  // The page runs no script of a string: the function is written into the one that is executed.
  const body = `(key, ...values) => {
    const ask = ${ask};
    const seen = [];
    const look = () => {
      const answer = ask(...values);
      if (JSON.stringify(answer) !== JSON.stringify(seen.at(-1))) seen.push(answer);
    };
    const observer = new MutationObserver(look);
    observer.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
    look();
    (globalThis.watched ??= {})[key] = { seen, observer };
  }`;
  return window.run(body, key, ...values);
}

/** What was noted, in order; noting ends. */
export function watched(window, key) {
  return window.run((name) => {
    const { seen, observer } = globalThis.watched[name];
    observer.disconnect();
    return seen;
  }, key);
}

/** Rows of the history itself, asked by another program in SQL. */
export function database(data, query) {
  const script = `
import json, sqlite3, sys
history = sqlite3.connect("file:" + sys.argv[1] + "?mode=ro", uri=True, timeout=30)
history.row_factory = sqlite3.Row
print(json.dumps([dict(row) for row in history.execute(sys.argv[2])]))`;
  const python = spawnSync("python3", ["-c", script, join(data, "history.sqlite"), query], { encoding: "utf8" });
  assert.equal(python.status, 0, python.stderr);
  return JSON.parse(python.stdout);
}

/** Every test of the history with the speeds of its samples, computed here from tokens and nanoseconds. */
export function measuredTests(data) {
  const rows = database(
    data,
    `SELECT test.id, test.run, test.status, model.name, model.quantization, n_prompt, n_gen, ns
     FROM test JOIN model ON model.fingerprint = test.model JOIN run ON run.id = test.run
     LEFT JOIN sample ON sample.test = test.id
     WHERE run.deleted_at IS NULL
     ORDER BY run.started_at, test.position, sample_index`,
  );
  const all = new Map();
  for (const { ns, ...test } of rows) {
    if (!all.has(test.id)) all.set(test.id, { ...test, tokens: test.n_prompt + test.n_gen, samples: [] });
    const found = all.get(test.id);
    if (ns !== null) found.samples.push((1e9 * found.tokens) / ns);
  }
  return [...all.values()].map((test) => ({ ...test, mean: mean(test.samples), deviation: deviation(test.samples) }));
}

function mean(values) {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function deviation(values) {
  if (values.length < 2) return null;
  const middle = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1));
}

/** Fails unless a number as it is shown is this value, rounded to the digits that are shown, three at least. */
export function shows(text, value, about = text) {
  const written = text.match(/\d[\d,]*(?:\.\d+)?/)?.[0].replaceAll(",", "");
  assert.ok(written, `${about}: no number in "${text}"`);
  const decimals = written.split(".")[1]?.length ?? 0;
  assert.ok(Math.abs(Number(written) - value) <= 0.5000001 * 10 ** -decimals, `${about}: ${written} is not ${value}`);
  const digits = written.replace(".", "").replace(/^0+/, "").length;
  assert.ok(digits >= 3 || value < 1, `${about}: ${written} has fewer than three digits`);
}
