// The whole way of a person: a folder, a second quantization, both measured, compared, explained, exported.
// What the window shows is what the history holds, asked in SQL by another program.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { By, Key } from "selenium-webdriver";
import { twospeed } from "../../src-tauri/scripts/setup.mjs";
import { surroundings } from "./screen.mjs";
import { open } from "./window.mjs";
import * as person from "./steps.mjs";
import { patience, shows, smollm } from "./steps.mjs";

const given = `${smollm} Q4_1`;
const made = `${smollm} Q8_0`;

describe("a person with SmolLM2", () => {
  let around;
  let window;
  /** What the history holds after the run. */
  let history;

  before(async () => {
    around = surroundings();
    window = await open({ around });
  });
  after(async () => {
    await window?.close();
    around.remove();
  });

  const press = (role, name) => person.press(window, role, name);
  const exported = (name) => join(around.inside("figures"), name);
  const readout = () => window.run(() => document.querySelector("[data-testid=readout]").textContent);

  /** Chooses a form in the menu, and saves it to this path. */
  async function save(form, path) {
    await press("button", "Export");
    await press("menuitem", form);
    await person.write(window, "Save to", path);
    await press("button", "Save");
  }

  function saved(path) {
    return window.waitForText(`Saved ${path}`, patience);
  }

  test("adds the folder of it by its path", async () => {
    await person.add(window, await person.folderOf(around, "smollm2"));
    const box = await window.byRole("checkbox", given, { wait: patience });
    assert.equal(await box.isEnabled(), true);
  });

  test("makes a second quantization, and sees how far it is", async () => {
    const progress = await person.make(window, made);
    assert.ok(progress.length >= 2, `progress was seen ${progress.length} times: ${progress}`);
    assert.deepEqual(progress, [...progress].sort((a, b) => a - b), "progress goes back");
  });

  test("measures both, and sees every sample come", async () => {
    await person.select(window, given, made);
    await person.tests(window, "Quick");
    await person.watch(window, "samples", () =>
      [...document.querySelectorAll("tr[data-position] svg[role=img]")].map((strip) =>
        strip.getAttribute("aria-label").startsWith("Samples") ? strip.getAttribute("aria-label").split(";")[0].split(", ").length : 0,
      ),
    );
    await person.watch(window, "rail", () => document.querySelector('nav a[href="#measure"]').getAttribute("aria-label"));
    await person.start(window);
    await person.ended(window);
    const steps = (await person.watched(window, "samples")).filter((counts) => counts.length === 4);
    for (const row of [0, 1, 2, 3]) {
      const counts = steps.map((step) => step[row]).filter((count, at, all) => count !== all[at - 1]);
      assert.deepEqual(counts, [0, 1, 2, 3], `samples of row ${row}`);
    }
    const rail = await person.watched(window, "rail");
    assert.deepEqual(rail, ["Measure", ...[0, 1, 2, 3, 4].map((done) => `Measure, ${done} of 4`), "Measure"]);
  });

  test("reads in the table what the history holds", async () => {
    history = person.measuredTests(window.data);
    assert.deepEqual(history.map(({ status, quantization, n_prompt, n_gen, samples }) => [status, quantization, n_prompt, n_gen, samples.length]), [
      ["done", "Q4_1", 512, 0, 3],
      ["done", "Q4_1", 0, 128, 3],
      ["done", "Q8_0", 512, 0, 3],
      ["done", "Q8_0", 0, 128, 3],
    ]);
    const rows = await person.table(window);
    assert.equal(rows.length, 4);
    for (const [position, row] of rows.entries()) {
      const { mean, deviation, samples } = history[position];
      shows(row.measured, mean, `mean of test ${position}`);
      const spread = Number(row.deviation.match(/[\d.]+/)[0]);
      const decimals = row.measured.split(".")[1]?.length ?? 0;
      assert.ok(Math.abs(spread - deviation) <= 0.51 * 10 ** -decimals || spread < 1, `± ${spread} is not ${deviation}`);
      const shown = row.samples.replace(/^Samples: /, "").split(";")[0].split(", ");
      for (const [at, text] of shown.entries()) shows(text, samples[at], `sample ${at + 1} of test ${position}`);
    }
  });

  test("finds the same speeds in Models", async () => {
    await person.go(window, "Models");
    const cells = () =>
      window.run((names) => {
        const rows = names.map((name) => document.querySelector(`input[aria-label="${name}"]`).closest("[data-row]"));
        return rows.flatMap((row) => [...row.querySelectorAll(".value")].map((value) => value.textContent));
      }, [given, made]);
    await window.until(async () => (await cells()).length === 4, "the speeds are not in Models", patience);
    for (const [at, text] of (await cells()).entries()) shows(text, history[at].mean, `speed ${at} in Models`);
    await person.go(window, "Measure");
  });

  test("compares these results in the figure", async () => {
    await press("button", "Compare these results");
    await person.figure(window);
    const chosen = await window.run(() => document.querySelector("main .bar [role=status]").textContent);
    assert.equal(chosen.replace(/\s/g, " "), "2 of 2 results");
    assert.match(await window.text(), /What you are seeing/);
  });

  test("reads every speed by keyboard", async () => {
    const figure = await window.byRole("application", /^Figure: /, { wait: patience });
    await window.run(() => document.querySelector("[role=application]").focus());
    const read = [];
    for (const key of [Key.HOME, Key.ARROW_RIGHT, Key.ARROW_RIGHT, Key.ARROW_RIGHT]) {
      const before = await readout();
      await figure.sendKeys(key);
      await window.until(async () => (await readout()) !== before, `the read-out stays "${before}"`, patience);
      read.push(await readout());
    }
    for (const { quantization, n_gen, mean } of history) {
      const phase = n_gen > 0 ? /decode/i : /prefill/i;
      const line = read.find((text) => text.includes(quantization) && phase.test(text));
      assert.ok(line, `no read-out of ${quantization} ${phase}: ${read.join(" | ")}`);
      shows(line.split(/(?:prefill|decode): /)[1], mean, line);
    }
    // A sample of the first bar.
    await figure.sendKeys(Key.HOME);
    await figure.sendKeys(Key.ARROW_DOWN);
    // Its ceiling, where it has one, comes before.
    await window.until(async () => /sample 1 of 3$/.test(await readout()), "no sample is read out", patience);
    const quantization = (await readout()).split(",")[0];
    shows((await readout()).split("prefill: ")[1], history.find((each) => each.n_gen === 0 && each.quantization === quantization).samples[0]);
    await figure.sendKeys(Key.ESCAPE);
    await window.until(async () => (await readout()) === "", "Escape leaves the read-out", patience);
  });

  test("turns the ceiling off and on", async () => {
    const drawing = () => window.run(() => document.querySelector(".figure .drawing").innerHTML);
    const toggle = await window.byRole("button", "Ceiling", { wait: patience });
    assert.equal(await toggle.getAttribute("aria-pressed"), "true");
    const withIt = await drawing();
    await press("button", "Ceiling");
    await window.until(async () => (await drawing()) !== withIt, "the figure keeps its ceiling", patience);
    assert.equal(await toggle.getAttribute("aria-pressed"), "false");
    assert.ok((await drawing()).length < withIt.length, "without a ceiling there is less to draw");
    await press("button", "Ceiling");
    await window.until(async () => (await drawing()) === withIt, "the ceiling does not come back", patience);
  });

  test("saves the figure as SVG, with the numbers that are on screen", async () => {
    const path = exported("speeds.svg");
    await save("SVG", path);
    await saved(path);
    const texts = await window.run((text) => {
      const words = (root) => [...root.querySelectorAll("text")].map((each) => each.textContent);
      return { file: words(new DOMParser().parseFromString(text, "image/svg+xml")), screen: words(document.querySelector(".figure .drawing svg")) };
    }, readFileSync(path, "utf8"));
    const numbers = (words) => words.flatMap((text) => text.match(/\d[\d.,]*/g) ?? []).sort();
    assert.ok(texts.screen.length > 8, texts.screen.join(" | "));
    assert.deepEqual(texts.screen.filter((text) => !texts.file.includes(text)), [], "on screen, but not in the file");
    for (const { mean } of history) assert.ok(numbers(texts.file).some((written) => agrees(written, mean)), `${mean} is not in ${texts.file.join(" | ")}`);
  });

  test("is told that a file is there, and replaces it", async () => {
    const path = exported("taken.svg");
    writeFileSync(path, "something else");
    await save("SVG", path);
    await window.byRole("button", "Replace", { wait: patience });
    assert.match(await window.text(), /already|exists|is there/i);
    assert.equal(readFileSync(path, "utf8"), "something else");
    await press("button", "Replace");
    await saved(path);
    assert.match(readFileSync(path, "utf8"), /^<svg|^<\?xml/);
  });

  test("saves the picture with the pixels that were chosen", async () => {
    const path = exported("speeds.png");
    await press("button", "Export");
    await press("menuitem", /^PNG/);
    await person.write(window, "Save to", path);
    await press("radio", /^3×/);
    const pixels = () => window.run(() => document.querySelector("[data-testid=pixels]").textContent);
    await window.until(async () => /pixels$/.test((await pixels()).trim()) && /\d/.test(await pixels()), "the pixels are not known", patience);
    const [width, height] = (await pixels()).match(/\d[\d,]*/g).map((text) => Number(text.replaceAll(",", "")));
    await press("button", "Save");
    await saved(path);
    const png = readFileSync(path);
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [width, height]);
  });

  test("saves the figure as PDF", async () => {
    const path = exported("speeds.pdf");
    await save("PDF", path);
    await saved(path);
    assert.equal(readFileSync(path).subarray(0, 5).toString(), "%PDF-");
    assert.ok(statSync(path).size > 2000);
  });

  test("saves the numbers as CSV, and they are those of the history", async () => {
    const path = exported("speeds.csv");
    await save("CSV", path);
    await saved(path);
    const [names, ...rows] = readFileSync(path, "utf8").trim().split("\n").map(fields);
    const records = rows.map((row) => Object.fromEntries(names.map((name, at) => [name, row[at]])));
    same(records.map((record) => ({ ...record, samples: null })));
  });

  test("saves the numbers as Markdown, and they are those of the history", async () => {
    const path = exported("speeds.md");
    await save("Markdown", path);
    await saved(path);
    const rows = readFileSync(path, "utf8").split("\n").filter((line) => /\b(pp512|tg128)\b/.test(line));
    assert.equal(rows.length, 4);
    for (const { n_gen, quantization, mean } of history) {
      const row = rows.find((line) => line.includes(n_gen > 0 ? "tg128" : "pp512") && line.includes(quantization));
      assert.ok(row, `${quantization} is not in ${rows.join("\n")}`);
      shows(row.split("|").at(-2), mean, row);
    }
  });

  test("saves everything as JSON, and it is what the history holds", async () => {
    const path = exported("speeds.json");
    await save("JSON", path);
    await saved(path);
    const { runs } = JSON.parse(readFileSync(path, "utf8"));
    assert.equal(runs.length, 1);
    const written = runs[0].tests.flatMap((test) => test.samples.map(({ ns }) => ns));
    const held = person.database(window.data, "SELECT ns FROM sample JOIN test ON test.id = sample.test ORDER BY position, sample_index");
    assert.deepEqual(written, held.map(({ ns }) => ns));
  });

  test("gets the same from the command line", () => {
    const { status, stdout, stderr } = spawnSync(twospeed(), ["export", "-o", "json", "--data-dir", window.data], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
    same(JSON.parse(stdout));
  });

  test("copies the picture and the table", async () => {
    await press("button", "Export");
    await press("menuitem", "Copy picture");
    await window.waitForText("The picture is on the clipboard.", patience);
    const picture = clipboard("image/png", null);
    assert.equal(picture.subarray(1, 4).toString(), "PNG");
    await press("button", "Export");
    await press("menuitem", "Copy table");
    await window.waitForText("The table is on the clipboard.", patience);
    assert.equal(clipboard("UTF8_STRING", "utf8").trim(), readFileSync(exported("speeds.md"), "utf8").trim());
  });

  test("opens the page of the run, and finds every sample", async () => {
    await press("link", "Open its run");
    await window.waitForText("Sample", patience);
    const shown = await window.run(() =>
      [...document.querySelectorAll("section.test")].map((test) => ({
        mean: test.querySelector(".result b").textContent,
        samples: [...test.querySelectorAll("tbody tr")].map((row) => [row.cells[1].textContent, row.cells[2].textContent]),
      })),
    );
    assert.equal(shown.length, 4);
    for (const [at, { mean, samples }] of shown.entries()) {
      shows(mean, history[at].mean);
      assert.equal(samples.length, 3);
      for (const [number, [speed]] of samples.entries()) shows(speed, history[at].samples[number]);
    }
  });

  test("writes a note, which is kept", async () => {
    const note = "Loud fan; <b>door</b> open. ÄÖ ½";
    await person.write(window, "Note", note, Key.chord(Key.CONTROL, Key.ENTER));
    await window.until(async () => (await window.run(() => document.querySelector("[data-testid=note-state]").textContent.trim())) === "Saved", "the note is not saved", patience);
    assert.deepEqual(person.database(window.data, "SELECT note FROM run"), [{ note }]);
    await press("button", "Back to the figure");
    await person.figure(window);
    await press("link", "Open its run");
    const field = await window.byRole("textbox", "Note", { wait: patience });
    assert.equal(await field.getAttribute("value"), note);
  });

  test("deletes the run, and takes it back", async () => {
    const deleted = () => person.database(window.data, "SELECT deleted_at FROM run")[0].deleted_at;
    await press("button", "Delete this run");
    await window.byRole("button", /Undo|Restore/, { wait: patience });
    assert.notEqual(deleted(), null);
    await press("button", /Undo|Restore/);
    await window.byRole("button", "Delete this run", { wait: patience });
    assert.equal(deleted(), null);
    await press("button", "Back to the figure");
    await person.figure(window);
    assert.equal((await window.driver.findElements(By.css(".figure"))).length, 1);
  });

  /** What is on the clipboard, as another program gets it. */
  function clipboard(type, encoding) {
    const { status, stdout, stderr, error } = spawnSync("xclip", ["-selection", "clipboard", "-t", type, "-o"], { env: window.env, encoding, timeout: patience });
    assert.equal(status, 0, error?.message ?? String(stderr));
    return stdout;
  }

  /** llama-bench's records are those of the history. */
  function same(records) {
    assert.equal(records.length, history.length);
    for (const { n_prompt, n_gen, quantization, mean, deviation, samples } of history) {
      const record = records.find((each) => Number(each.n_prompt) === n_prompt && Number(each.n_gen) === n_gen && each.model_type.includes(quantization));
      assert.ok(record, `${quantization} is not in ${JSON.stringify(records.map((each) => each.model_type))}`);
      near(Number(record.avg_ts), mean);
      near(Number(record.stddev_ts), deviation);
      if (record.samples_ts) for (const [at, sample] of record.samples_ts.entries()) near(sample, samples[at]);
    }
  }
});

/** llama-bench writes six decimals. */
function near(written, value) {
  assert.ok(Math.abs(written - value) <= 1e-5 * Math.max(1, value), `${written} is not ${value}`);
}

/** A number as it is written is this value, rounded. */
function agrees(written, value) {
  try {
    shows(written, value);
    return true;
  } catch {
    return false;
  }
}

/** Fields of a line of CSV. */
function fields(line) {
  return [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].slice(0, -1).map(([, text]) => (text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text));
}
