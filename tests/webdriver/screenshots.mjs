// `npm run screenshots [-- FOLDER]`: every view in both themes and two window sizes, with real runs of
// small models. Builds what is missing, measures, and leaves NAME-THEME-WIDTHxHEIGHT.png behind.

import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Key } from "selenium-webdriver";
import { build } from "../../src-tauri/scripts/build.mjs";
import { main, setUp } from "../../src-tauri/scripts/setup.mjs";
import { surroundings } from "./screen.mjs";
import { open } from "./window.mjs";
import * as person from "./steps.mjs";
import { patience, smollm } from "./steps.mjs";

const sizes = [[1280, 800], [1000, 700]];

await main(async () => {
  const folder = resolve(process.argv[2] ?? "/tmp/shots");
  mkdirSync(folder, { recursive: true });
  if (!process.env.TWOSPEED_WINDOW_BUILT) {
    setUp({ tests: true });
    build();
  }
  const around = surroundings();
  const window = await open({ around });
  const press = (role, name) => person.press(window, role, name);

  /** Takes the page as it is, in every theme and size; `again` opens what changing them closes. */
  async function take(name, again = async () => undefined) {
    for (const [width, height] of sizes) {
      await person.resize(window, width, height);
      for (const theme of ["light", "dark"]) {
        await person.wear(window, theme);
        await again();
        // The figure is laid out anew a moment after its place has changed.
        await still(window);
        const file = join(folder, `${name}-${theme}-${width}x${height}.png`);
        writeFileSync(file, await window.picture(), "base64");
        console.log(file);
        await person.keys(window, Key.ESCAPE);
      }
    }
    await person.resize(window, ...sizes[0]);
    await person.wear(window, "light");
  }

  try {
    await person.go(window, "Models");
    await take("models-first");
    await person.go(window, "Compare");
    await take("compare-first");

    await person.add(window, await person.folderOf(around, "smollm2", "gemma3"));
    const names = await window.run(() => [...document.querySelectorAll("[data-row] input:not(:disabled)")].map((box) => box.getAttribute("aria-label")));
    const gemma = names.find((name) => /gemma/i.test(name));
    for (const quantization of ["Q8_0", "Q4_K_M"]) await person.make(window, `${smollm} ${quantization}`);
    const all = [...["Q4_1", "Q4_K_M", "Q8_0"].map((quantization) => `${smollm} ${quantization}`), gemma];

    await person.select(window, ...all);
    await person.tests(window, "Quick");
    await take("measure-plan");

    await person.start(window);
    // Far enough to show rows that are done, one that runs and some that wait.
    await person.sampled(window, 3, 2);
    await take("measure-run");
    await person.ended(window);
    await take("measure-done");

    await press("button", "Compare these results");
    await person.figure(window);
    await take("compare");
    await take("compare-reading", async () => {
      await person.figure(window);
      await window.run(() => document.querySelector("[role=application]").focus());
      await person.keys(window, Key.HOME, Key.ARROW_RIGHT);
    });
    await take("compare-menu", () => press("button", "Export"));
    await take("compare-export", async () => {
      await press("button", "Export");
      await press("menuitem", /^PNG/);
      await window.until(() => window.run(() => /\d/.test(document.querySelector("[data-testid=pixels]").textContent)), "the pixels are not known", patience);
    });
    await press("link", "Open its run");
    await window.byRole("heading", "Tests", { wait: patience });
    await take("run");

    await person.go(window, "Models");
    await take("models");
    await press("button", `Details of ${smollm} Q4_1`);
    await press("checkbox", `${smollm} Q4_1`);
    await press("checkbox", gemma);
    await window.until(() => window.run(() => document.querySelector(".details .types") !== null), "there are no details", patience);
    await take("models-details");
    await person.go(window, "Settings");
    await take("settings");

    await press("button", /^Calibrate/);
    await window.byRole("button", /^Calibrate anew/, { wait: 2 * patience });
    await take("settings-calibrated");
    await person.go(window, "Models");
    await take("models-predicted");
    if (!(await window.run(() => document.querySelector(".whatif") !== null))) await press("button", `Details of ${smollm} Q4_1`);
    await window.until(() => window.run(() => document.querySelector(".whatif table") !== null), "nothing is predicted", patience);
    await window.run(() => document.querySelector(".whatif").scrollIntoView({ block: "center" }));
    await take("models-what-if", () => window.run(() => document.querySelector(".whatif").scrollIntoView({ block: "center" })));
    await take("models-predict", () => press("button", "Predict a model…"));

    await person.select(window, `${smollm} Q4_1`);
    await person.tests(window, "Roofline");
    await take("measure-roofline");
    await person.start(window);
    await person.ended(window);
    await person.go(window, "Compare");
    for (const figure of ["Speeds", "Roofline", "Breakdown", "Estimate"]) {
      await press("radio", figure);
      await person.figure(window);
      await take(`compare-${figure.toLowerCase()}`);
    }
  } finally {
    await window.close();
    around.remove();
  }
});

/** Waits until the page has kept its looks for a while. */
function still(window) {
  return window.run(
    (most) =>
      new Promise((done) => {
        let timer = setTimeout(done, 400);
        const observer = new MutationObserver(() => {
          clearTimeout(timer);
          timer = setTimeout(done, 400);
        });
        observer.observe(document.querySelector("main"), { subtree: true, childList: true, characterData: true, attributes: true });
        // A run goes on whatever one does.
        setTimeout(done, most);
      }),
    2000,
  );
}
