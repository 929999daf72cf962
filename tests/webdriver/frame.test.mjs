// The window itself: what it shows first, what its page may not do, how it is opened twice.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { open, program } from "./window.mjs";
import { Program, screen, surroundings, variables } from "./screen.mjs";

describe("a window that is open", () => {
  let window;
  before(async () => {
    window = await open();
  });
  after(() => window?.close());

  test("shows the rail with the views that there are", async () => {
    await window.byRole("navigation");
    for (const view of ["Models", "Measure", "Compare", "Settings"]) await window.byRole(["button", "link"], new RegExp(`^${view}`));
    await window.screenshot("frame");
  });

  test("has no error of its page policy", async () => {
    // Blocked styles, scripts and fonts would be told to whoever listens from the start; a page that is
    // loaded anew under the listener's eyes shows them.
    const blocked = await window.run(async () => {
      const found = [];
      document.addEventListener("securitypolicyviolation", (event) => found.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
      for (const name of ["Measure", "Compare", "Settings", "Models"]) {
        [...document.querySelectorAll("nav a, nav button")].find((entry) => entry.textContent.trim().startsWith(name))?.click();
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      return found;
    });
    assert.deepEqual(blocked, []);
  });

  test("executes no inline script and no script of a string", async () => {
    const ran = await window.run(async () => {
      globalThis.ran = [];
      const script = document.createElement("script");
      script.textContent = "globalThis.ran.push('script')";
      document.body.append(script);
      const holder = document.createElement("div");
      holder.innerHTML = `<img src="x" onerror="globalThis.ran.push('handler')"><a href="javascript:globalThis.ran.push('address')">x</a><svg onload="globalThis.ran.push('svg')"></svg>`;
      document.body.append(holder);
      holder.querySelector("a").click();
      try {
        eval("globalThis.ran.push('eval')");
      } catch {
        // As it should be.
      }
      try {
        setTimeout("globalThis.ran.push('timeout')", 0);
      } catch {
        // As it should be.
      }
      await new Promise((resolve) => setTimeout(resolve, 500));
      script.remove();
      holder.remove();
      return globalThis.ran;
    });
    assert.deepEqual(ran, []);
  });

  test("speaks to nobody but the program", async () => {
    const failures = await window.run(async () => {
      const tries = {
        fetch: () => fetch("https://example.org/"),
        local: () => fetch("http://127.0.0.1:9/"),
        socket: () => new Promise((yes, no) => Object.assign(new WebSocket("wss://example.org/"), { onopen: yes, onerror: no })),
        picture: () => new Promise((yes, no) => Object.assign(new Image(), { onload: yes, onerror: no, src: "https://example.org/a.png" })),
        file: () => fetch("file:///etc/passwd"),
      };
      const failed = [];
      for (const [name, attempt] of Object.entries(tries)) await attempt().catch(() => failed.push(name));
      return failed;
    });
    assert.deepEqual(failures, ["fetch", "local", "socket", "picture", "file"]);
  });

  test("goes nowhere else and opens no other window", async () => {
    const at = await window.driver.getCurrentUrl();
    for (const address of ["https://example.org/", "data:text/html,hello", "file:///etc/passwd", "tauri://elsewhere/"]) {
      await window.run((to) => void (location.href = to), address);
      await new Promise((resolve) => setTimeout(resolve, 200));
      assert.equal(await window.driver.getCurrentUrl(), at, address);
    }
    assert.equal(await window.run(() => globalThis.open("https://example.org/") === null), true);
    await window.run(() => {
      const link = Object.assign(document.createElement("a"), { href: "https://example.org/", target: "_blank", textContent: "x" });
      document.body.append(link);
      link.click();
      link.remove();
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal((await window.driver.getAllWindowHandles()).length, 1);
    assert.equal(await window.driver.getCurrentUrl(), at);
  });

  test("lets the page ask for the app's commands alone", async () => {
    const answers = await window.run(async () => {
      const ask = (command, values) => globalThis.__TAURI_INTERNALS__.invoke(command, values).then(() => "answered", (error) => String(error.message ?? error));
      return {
        ours: await ask("start"),
        store: await ask("plugin:store|load", { path: "/tmp/x" }),
        dialog: await ask("plugin:dialog|open", { options: {} }),
        opener: await ask("plugin:opener|open_url", { url: "https://example.org/" }),
        clipboard: await ask("plugin:clipboard-manager|read_text"),
        window: await ask("plugin:window|close", { label: "main" }),
        webview: await ask("plugin:webview|create_webview_window", { options: { label: "x" } }),
      };
    });
    assert.equal(answers.ours, "answered");
    delete answers.ours;
    for (const [name, answer] of Object.entries(answers)) assert.match(answer, /not allowed|not found|denied/i, name);
  });

  test("shows itself instead of starting twice", async () => {
    const second = window.again(["model.gguf"]);
    assert.deepEqual(await second.ended(), { code: 0, signal: null }, second.output);
    assert.equal((await window.driver.getAllWindowHandles()).length, 1);
  });

  test("opens a second time for another data folder", async () => {
    const other = await open({ around: window.around, display: window.display, data: window.around.inside("other") });
    try {
      await other.byRole("navigation");
      assert.notEqual(other.pid, window.pid);
    } finally {
      await other.close();
    }
  });
});

describe("a start", () => {
  for (const [theme, background] of [["dark", "#17181b"], ["light", "#ffffff"]]) {
    test(`has the colours that were chosen: ${theme}`, async () => {
      const around = surroundings();
      mkdirSync(around.data);
      writeFileSync(join(around.data, "window.json"), JSON.stringify({ theme, text_size: 1.2 }));
      const window = await open({ around });
      try {
        const address = new URL(await window.driver.getCurrentUrl());
        assert.equal(address.searchParams.get("theme"), theme);
        assert.equal(address.searchParams.get("text"), "1.2");
        const channel = (at) => parseInt(background.slice(at, at + 2), 16);
        const shown = await window.run(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(shown, `rgb(${channel(1)}, ${channel(3)}, ${channel(5)})`);
        await window.screenshot(`frame-${theme}`);
      } finally {
        await window.close();
        around.remove();
      }
    });
  }

  test("with a broken file of choices has the defaults", async () => {
    const around = surroundings();
    mkdirSync(around.data);
    writeFileSync(join(around.data, "window.json"), '{"theme":"da');
    writeFileSync(join(around.data, "window-place.json"), "\u0000");
    const window = await open({ around });
    try {
      await window.byRole("navigation");
      assert.equal(new URL(await window.driver.getCurrentUrl()).searchParams.get("theme"), "light");
    } finally {
      await window.close();
      around.remove();
    }
  });

  test("on a small screen fits the screen", async () => {
    const window = await open({ size: "1000x700" });
    try {
      await window.byRole("navigation");
      const { width, height } = await window.run(() => ({ width: innerWidth, height: innerHeight }));
      assert.ok(width <= 1000 && height <= 700, `${width} x ${height}`);
      await window.screenshot("frame-1000x700");
    } finally {
      await window.close();
    }
  });

  test("comes back from a place that no screen shows any more", async () => {
    const around = surroundings();
    mkdirSync(around.data);
    const place = { width: 1000, height: 700, x: 100, y: 790, prev_x: 0, prev_y: 0, maximized: false, visible: true, decorated: true, fullscreen: false };
    writeFileSync(join(around.data, "window-place.json"), JSON.stringify({ main: place }));
    const window = await open({ around });
    try {
      await window.byRole("navigation");
      const at = () => window.run(() => ({ x: screenX, y: screenY, width: innerWidth, height: innerHeight }));
      await window.until(async () => (await at()).y < 200, "the window is still out of reach");
      assert.deepEqual(await at(), { x: 140, y: 50, width: 1000, height: 700 });
    } finally {
      await window.close();
      around.remove();
    }
  });

  test("that is asked to end does so in order, and its place is remembered", async () => {
    const around = surroundings();
    mkdirSync(around.data);
    const file = join(around.data, "window-place.json");
    const place = { width: 950, height: 650, x: 120, y: 60, prev_x: 0, prev_y: 0, maximized: false, visible: true, decorated: true, fullscreen: false };
    writeFileSync(file, JSON.stringify({ main: place }));
    const { display, stop } = await screen();
    const window = new Program(program, ["--data-dir", around.data], { env: variables({ display, around }) });
    try {
      await listening(around, window, 1);
      writeFileSync(file, "");
      process.kill(window.pid, "SIGTERM");
      assert.deepEqual(await window.ended(), { code: 0, signal: null }, window.output);
      const { width, height, x, y, maximized } = JSON.parse(readFileSync(file, "utf8")).main;
      assert.deepEqual({ width, height, x, y, maximized }, { width: 950, height: 650, x: 120, y: 60, maximized: false });
    } finally {
      await window.stop();
      await stop();
      around.remove();
    }
  });

  for (const [name, address] of [
    ["without a session bus", undefined],
    ["with a session bus that is not there", "unix:path=/nowhere/bus"],
  ]) {
    test(`${name} opens once, and again after it was killed`, async () => {
      const around = surroundings();
      const { display, stop } = await screen();
      // Without any address GTK would start a bus of its own, by this program.
      const env = variables({ display, around, env: { DBUS_SESSION_BUS_ADDRESS: address, PATH: address ? process.env.PATH : "/nowhere" } });
      const start = (...files) => new Program(program, ["--data-dir", around.data, ...files], { env });
      const programs = [];
      try {
        for (const round of [1, 2]) {
          const first = start();
          programs.push(first);
          await listening(around, first, round);
          const second = start("a.gguf");
          programs.push(second);
          assert.deepEqual(await second.ended(), { code: 0, signal: null }, second.output);
          process.kill(-first.pid, "SIGKILL");
          assert.equal((await first.ended()).signal, "SIGKILL", first.output);
        }
      } finally {
        for (const program of programs) await program.stop();
        await stop();
        around.remove();
      }
    });
  }
});

/** Waits until the first program has written down where it listens. */
async function listening(around, first, round) {
  const file = join(around.data, "window.lock");
  const end = Date.now() + 10_000;
  while (!(existsSync(file) && readFileSync(file, "utf8").endsWith("\n") && first.pid)) {
    if (Date.now() > end) assert.fail(`round ${round}: the window does not listen: ${first.output}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // Long enough for a crash at the start to show.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.ok(existsSync(`/proc/${first.pid}`), first.output);
}
