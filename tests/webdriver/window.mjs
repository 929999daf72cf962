// The real window, driven by WebKit's own WebDriver.
//
// Tauri's driver for Linux renames one field of the capabilities and sets one variable; here both are
// written as WebKitWebDriver wants them, so that no other program stands between.

import AxeBuilder from "@axe-core/webdriverjs";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Builder, By, Capabilities, until } from "selenium-webdriver";
import { releaseFolder, root } from "../../src-tauri/scripts/setup.mjs";
import { descendants } from "./processes.mjs";
import { freePort, Program, screen, surroundings, variables } from "./screen.mjs";

/** The built program. */
export const program = process.env.TWOSPEED_WINDOW || join(releaseFolder(), "twospeed-window");

/** Where screenshots go. */
export const pictures = process.env.TWOSPEED_SCREENSHOTS || join(root, "target", "screenshots");

/** Elements that have a role without saying so. */
const natural = {
  alert: "[role=alert]",
  button: "button, [role=button], summary",
  checkbox: "input[type=checkbox], [role=checkbox]",
  dialog: "dialog, [role=dialog]",
  heading: "h1, h2, h3, h4, [role=heading]",
  img: "img, svg[role=img], [role=img]",
  link: "a[href], [role=link]",
  menuitem: "[role=menuitem]",
  menuitemcheckbox: "[role=menuitemcheckbox]",
  navigation: "nav, [role=navigation]",
  option: "option, [role=option]",
  radio: "input[type=radio], [role=radio]",
  row: "tr, [role=row]",
  slider: "input[type=range], [role=slider]",
  spinbutton: "input[type=number], [role=spinbutton]",
  status: "output, [role=status]",
  switch: "[role=switch]",
  tab: "[role=tab]",
  table: "table, [role=table], [role=grid]",
  textbox: "input:not([type]), input[type=text], input[type=search], textarea, [role=textbox]",
};

/**
 * Opens the window and a session with it.
 *
 * `data`: its data folder (a fresh one); `args`: what else it is started with; `env`: variables on top of
 * a bare person's (`undefined` takes one away); `size`: of the screen; `around`, `display`: those of
 * another test window, to open a second one beside it.
 */
export async function open({ data, args = [], env = {}, size = "1280x800", around, display } = {}) {
  const ending = [];
  try {
    if (!around) {
      around = surroundings();
      ending.push(around.remove);
    }
    if (!display) {
      const made = await screen(size);
      ending.push(made.stop);
      display = made.display;
    }
    const port = await freePort();
    const all = { ...variables({ display, around, env }), TAURI_WEBVIEW_AUTOMATION: "true" };
    const server = new Program("WebKitWebDriver", [`--port=${port}`, "--host=127.0.0.1"], { env: all });
    ending.push(() => server.stop());
    const folder = data ?? around.data;
    const capabilities = new Capabilities({
      // What the web view calls itself.
      browserName: "wry",
      "webkitgtk:browserOptions": { binary: program, args: ["--data-dir", folder, ...args] },
    });
    const driver = await session(`http://127.0.0.1:${port}`, capabilities, server);
    ending.push(() => driver.quit().catch(() => undefined));
    return new Window({ driver, server, around, display, data: folder, env: all, ending });
  } catch (error) {
    for (const end of ending.reverse()) await end();
    throw error;
  }
}

/** A session with a driver, which needs a moment until it listens. */
export async function session(url, capabilities, server) {
  const end = Date.now() + 10_000;
  for (;;) {
    const listening = await fetch(`${url}/status`).then(() => true, () => false);
    if (listening) break;
    if (Date.now() > end) throw new Error(`WebKitWebDriver does not answer: ${server.output}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  const driver = new Builder().usingServer(url).withCapabilities(capabilities).build();
  await driver.getSession();
  await driver.manage().setTimeouts({ script: 60_000, pageLoad: 30_000 });
  return driver;
}

/** An open window. */
export class Window {
  constructor(parts) {
    Object.assign(this, parts);
  }

  /** Its process. */
  get pid() {
    const found = descendants(this.server.pid).find(({ command }) => command === program);
    if (!found) throw new Error("The window's program is not running.");
    return found.pid;
  }

  /** What it and the driver wrote to the terminal. */
  get output() {
    return this.server.output;
  }

  /** Ends the session, the program, the screen, and removes the folders. */
  async close() {
    for (const end of this.ending.splice(0).reverse()) await end();
  }

  /** Starts the program a second time in the same surroundings, without a driver. */
  again(args = [], { data = this.data, env = {} } = {}) {
    const all = { ...this.env, ...env };
    delete all.TAURI_WEBVIEW_AUTOMATION;
    return new Program(program, ["--data-dir", data, ...args], { env: all });
  }

  /** Saves what the page looks like, as NAME.png. */
  async screenshot(name) {
    mkdirSync(pictures, { recursive: true });
    const file = join(pictures, `${name}.png`);
    // Without DMA-BUFs WebKit takes the picture with the next one it paints, and a page at rest paints none:
    // a dot that cannot be seen comes and goes.
    await this.run(() => {
      const dot = document.createElement("div");
      dot.style.cssText = "position:fixed;right:0;bottom:0;width:1px;height:1px;pointer-events:none";
      let count = 0;
      const timer = setInterval(() => {
        dot.style.background = count % 2 ? "transparent" : getComputedStyle(document.body).backgroundColor;
        if (count === 0) document.body.append(dot);
        if ((count += 1) < 100) return;
        clearInterval(timer);
        dot.remove();
      }, 20);
    });
    writeFileSync(file, await this.picture(), "base64");
    return file;
  }

  /** What the page looks like, as a PNG in base64. */
  async picture() {
    // The driver waits for the next frame, and a page where nothing happens has none: one pixel that
    // nobody sees makes frames meanwhile.
    await this.run(() => {
      const pixel = document.createElement("i");
      Object.assign(pixel.style, { position: "fixed", top: 0, left: 0, width: "1px", height: "1px", background: "gray", opacity: 0.01 });
      document.body.append(pixel);
      const timer = setInterval(() => (pixel.style.opacity = pixel.style.opacity === "0.01" ? 0.012 : 0.01), 30);
      globalThis.keptAwake = { pixel, timer };
    });
    const picture = await this.driver.takeScreenshot();
    await this.run(() => {
      clearInterval(globalThis.keptAwake.timer);
      globalThis.keptAwake.pixel.remove();
    });
    return picture;
  }

  /** What axe-core finds wrong with the page as it is now, one line each. */
  async violations() {
    // Its newer way needs a second window, which ours does not allow.
    const { violations } = await new AxeBuilder(this.driver).setLegacyMode(true).analyze();
    return violations.flatMap(({ id, help, nodes }) => nodes.map(({ target }) => `${id} (${help}): ${target.join(" ")}`));
  }

  /** Runs a function in the page and answers with what it returns; promises are awaited. */
  async run(body, ...values) {
    const script = `const done = arguments[arguments.length - 1];
      const values = [...arguments].slice(0, -1);
      Promise.resolve().then(() => (${body})(...values)).then((value) => done({ value }), (error) => done({ error: String(error) }));`;
    const { value, error } = await this.driver.executeAsyncScript(script, ...values);
    if (error !== undefined) throw new Error(error);
    return value;
  }

  /** The first visible element of this role (or one of these) with this accessible name (a string is the whole name). */
  async byRole(role, name, { within = this.driver, wait = 5000 } = {}) {
    const css = [role].flat().map((each) => natural[each] ?? `[role=${each}]`).join(", ");
    const fits = (found) => name === undefined || (name instanceof RegExp ? name.test(found) : found === name);
    const seen = [];
    const find = async () => {
      seen.length = 0;
      for (const element of await within.findElements(By.css(css))) {
        try {
          if (!(await element.isDisplayed())) continue;
          const found = await element.getAccessibleName();
          if (fits(found)) return element;
          seen.push(found);
        } catch (error) {
          // It left the page while it was looked at.
          if (error.name !== "StaleElementReferenceError") throw error;
        }
      }
      return null;
    };
    return this.until(find, () => `no ${[role].flat().join(" or ")} is called ${name}, only ${JSON.stringify(seen)}`, wait);
  }

  /** The element with this `data-testid`. */
  byTestId(id, { wait = 5000 } = {}) {
    return this.driver.wait(until.elementLocated(By.css(`[data-testid="${id}"]`)), wait, `no element has the test id ${id}`);
  }

  /** All text of the page that can be seen. */
  text() {
    return this.run(() => document.body.innerText);
  }

  /** Waits until the page shows this text (a string or a regular expression). */
  async waitForText(wanted, wait = 10_000) {
    let shown = "";
    const find = async () => {
      shown = await this.text();
      return wanted instanceof RegExp ? wanted.test(shown) : shown.includes(wanted);
    };
    await this.until(find, () => `the page does not show ${wanted}, but:\n${shown}`, wait);
    return shown;
  }

  /** Asks again until the answer is true, and gives it. */
  async until(ask, complaint, wait = 10_000) {
    const end = Date.now() + wait;
    for (;;) {
      const answer = await Promise.resolve(ask()).catch((error) => {
        // The page changed while it was asked.
        if (error.name !== "StaleElementReferenceError") throw error;
        return null;
      });
      if (answer) return answer;
      if (Date.now() > end) throw new Error(`After ${wait} ms ${typeof complaint === "function" ? complaint() : complaint}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
