// axe-core looks at every view in every state that can be reached, light and dark, large and small.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Key } from "selenium-webdriver";
import { surroundings } from "./screen.mjs";
import { open } from "./window.mjs";
import * as person from "./steps.mjs";
import { patience, smollm } from "./steps.mjs";

const given = `${smollm} Q4_1`;
const sizes = [[1280, 800], [1000, 700]];
const themes = ["light", "dark"];

describe("nobody is kept out", () => {
  let around;
  let window;

  before(async () => {
    around = surroundings();
    window = await open({ around });
  });
  after(async () => {
    await window?.close();
    around.remove();
  });

  /** What is wrong with the page as it is, in every theme and size; `again` opens what changing them closes. */
  async function judge(again = async () => undefined) {
    const found = [];
    for (const [width, height] of sizes) {
      await person.resize(window, width, height);
      for (const theme of themes) {
        await person.wear(window, theme);
        await again();
        const wrong = [...(await window.violations()), ...(await window.run(scrolls))];
        found.push(...wrong.map((each) => `${theme}, ${width}x${height}: ${each}`));
        await keys(Key.ESCAPE);
      }
    }
    assert.deepEqual(found, []);
  }

  /** The window has its size, and what is in it keeps to it. */
  function scrolls() {
    return [document.documentElement, document.body, document.querySelector("main")]
      .filter((each) => each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight)
      .map((each) => `${each.tagName} is ${each.scrollWidth}x${each.scrollHeight} in ${each.clientWidth}x${each.clientHeight}`);
  }

  const keys = (...sent) => person.keys(window, ...sent);

  test("in Models before anything was added", () => judge());

  test("in Models with rows, details, a broken file, folders and a selection", async () => {
    const folder = await person.folderOf(around, "smollm2");
    writeFileSync(join(folder, "broken.gguf"), "no model");
    await person.add(window, folder);
    await person.press(window, "button", `Details of ${given}`);
    await person.press(window, "button", /^1\sfolder$/);
    await person.press(window, "checkbox", given);
    await window.until(() => window.run(() => document.querySelector(".details .types") !== null), "there are no details", patience);
    await judge();
  });

  test("in Models where a path is refused", async () => {
    await person.write(window, "Folder or file path", "/nowhere/at/all", Key.ENTER);
    await window.byRole("alert", undefined, { wait: patience });
    await judge();
  });

  test("in Compare where nothing was measured", async () => {
    await person.go(window, "Compare");
    await judge();
  });

  test("in Settings", async () => {
    await person.go(window, "Settings");
    await judge();
  });

  test("in Measure before a run, with values of one's own", async () => {
    await person.select(window, given);
    await judge();
    await person.tests(window, { prompt: "one, two", answer: 8, repetitions: 0 });
    await window.byRole("alert", undefined, { wait: patience });
    await judge();
  });

  test("in Measure while a run goes on, and stopped", async () => {
    await person.tests(window, { prompt: 32, answer: 16, repetitions: 1000 });
    await person.start(window);
    await person.sampled(window, 0, 1);
    await judge();
    await person.press(window, "button", "Cancel");
    await person.ended(window);
    await judge();
  });

  test("in Measure after a run", async () => {
    await person.measure(window, [given], { prompt: 32, answer: 8, repetitions: 2 });
    await judge();
  });

  test("in Compare with the figure, read by keyboard", async () => {
    await person.press(window, "button", "Compare these results");
    await person.figure(window);
    await judge(async () => {
      await person.figure(window);
      await window.run(() => document.querySelector("[role=application]").focus());
      await keys(Key.HOME);
      await window.until(() => window.run(() => document.querySelector("[data-testid=readout]").textContent !== ""), "nothing is read out", patience);
    });
  });

  test("in Compare with its menu open", () => judge(() => person.press(window, "button", "Export")));

  test("in Compare with a dialog open, and with what it refuses", async () => {
    const dialog = async (form) => {
      await person.press(window, "button", "Export");
      await person.press(window, "menuitem", form);
      await window.byRole("dialog", undefined, { wait: patience });
    };
    await judge(() => dialog(/^PNG/));
    const taken = join(around.inside("figures"), "taken.svg");
    writeFileSync(taken, "");
    await judge(async () => {
      await dialog("SVG");
      await person.write(window, "Save to", taken, Key.ENTER);
      await window.byRole("button", "Replace", { wait: patience });
    });
  });

  test("on the page of a run, and where it is deleted", async () => {
    await person.press(window, "link", "Open its run");
    await window.byRole("heading", "Tests", { wait: patience });
    await window.run(() => {
      for (const more of document.querySelectorAll("section.test details")) more.open = true;
    });
    await judge();
    await person.press(window, "button", "Delete this run");
    await window.byRole("button", "Undo", { wait: patience });
    await judge();
  });

  test("where text is as large as it gets", async () => {
    await person.press(window, "button", "Undo");
    await person.go(window, "Settings");
    await person.press(window, "radio", /^160\s%$/);
    for (const view of ["Models", "Measure", "Compare", "Settings"]) {
      await person.go(window, view);
      await judge();
    }
  });
});
