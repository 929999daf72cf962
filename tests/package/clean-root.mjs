// `npm run test:package -- --clean-root`: apt installs the package into a fresh, minimal Debian of this
// machine's release. There a person without rights measures and opens the window; then it is removed.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { Capabilities } from "selenium-webdriver";
import { installDebian } from "../../src-tauri/scripts/setup.mjs";
import { freePort, Program } from "../webdriver/screen.mjs";
import { session, Window } from "../webdriver/window.mjs";
import { measureBuiltIn } from "./built-in.mjs";

/** Files of the sources that apt reads on this machine. */
function aptSources() {
  const more = "/etc/apt/sources.list.d";
  const named = existsSync(more) ? readdirSync(more).filter((name) => /\.(list|sources)$/.test(name)).map((name) => join(more, name)) : [];
  return ["/etc/apt/sources.list", ...named].filter((path) => existsSync(path) && statSync(path).size > 0);
}

function run(command, args, options = {}) {
  const done = spawnSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28, ...options });
  if (done.error) throw done.error;
  assert.equal(done.status, 0, `${[command, ...args].join(" ")}: exit ${done.status ?? done.signal}\n${done.stdout}${done.stderr}`);
  return done.stdout;
}

/**
 * Arguments of `unshare` that run a script inside the root. The mounts live in a namespace of their own:
 * they are gone when it ends, however it ends. apt's settings are this machine's, lent and never copied.
 */
function entering(root, script, user = "root") {
  const enter = `
    mount --rbind /dev "$1/dev"
    mount --bind -o ro /sys "$1/sys"
    mount -t proc proc "$1/proc"
    mount -t tmpfs tmpfs "$1/tmp"
    mount --bind -o ro /etc/apt "$1/etc/apt"
    mount --bind -o ro /etc/resolv.conf "$1/etc/resolv.conf"
    home=$([ "$2" = root ] && echo /root || echo "/home/$2")
    exec chroot --userspec="$2:$2" "$1" env -i HOME="$home" USER="$2" LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \\
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -ec "cd; $3"`;
  return ["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", enter, "sh", root, user, script];
}

function inside(root, script, user) {
  return run("unshare", entering(root, script, user));
}

/** Everything outside apt's and dpkg's own books and the person's home. */
function files(root) {
  const list = run("find", [root, "-xdev", "-not", "-type", "d", "-printf", "%P\n"]).trimEnd().split("\n");
  return new Set(list.filter((path) => !/^(var\/(lib\/(apt|dpkg)|cache|log)|home|tmp|proc|dev)\//.test(path)));
}

async function step(name, body) {
  const start = performance.now();
  const said = await body();
  console.log(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s${said ? ` (${said})` : ""}`);
}

/** Shows the window on a screen of its own, as the person; the picture lies in their home. */
const openWindow = `
  xvfb-run --auto-servernum --server-args="-screen 0 1280x800x24" sh -ec '
    twospeed-window >window.log 2>&1 & app=$!
    for i in $(seq 100); do
      kill -0 $app || { cat window.log; exit 1; }
      if xwininfo -name Twospeed >window.txt 2>/dev/null; then break; fi
      sleep 0.2
    done
    grep "Map State: IsViewable" window.txt || { cat window.log; exit 1; }
    sleep 5
    kill -0 $app || { cat window.log; exit 1; }
    import -window root window.png
    kill $app; wait $app || true'`;

/** Drives the window inside the root from out here: both see the same network. */
async function measureInWindow(root) {
  const port = await freePort();
  // Something is left to do after it, or the shell becomes it: Xvfb does not tell process 1 that it is ready.
  const driver = `xvfb-run --auto-servernum --server-args="-screen 0 1280x800x24" \\
    env TAURI_WEBVIEW_AUTOMATION=true WebKitWebDriver --port=${port} --host=127.0.0.1; true`;
  const server = new Program("unshare", entering(root, driver, "person"));
  try {
    const capabilities = new Capabilities({ browserName: "wry", "webkitgtk:browserOptions": { binary: "/usr/bin/twospeed-window", args: [] } });
    const window = new Window({ driver: await session(`http://127.0.0.1:${port}`, capabilities, server) });
    const rows = await measureBuiltIn(window);
    await window.driver.quit();
    assert.equal(rows.length, 2);
    return rows.map((row) => `${row.measured} tok/s`).join(", ");
  } finally {
    await server.stop();
  }
}

/** The whole story of one package. */
export async function cleanRoot(deb) {
  installDebian(["mmdebstrap"]);
  const release = readFileSync("/etc/os-release", "utf8").match(/^VERSION_CODENAME=(.*)$/m)[1];
  const root = mkdtempSync("/var/tmp/twospeed-root-");
  console.log(`${deb}: ${(statSync(deb).size / 1e6).toFixed(1)} MB`);
  try {
    await step(`a fresh ${release}`, () => {
      run("mmdebstrap", ["--quiet", "--variant=minbase", release, root, ...aptSources()]);
      inside(root, "apt-get update -qq; useradd --create-home person");
    });
    await step("the screen for the window", () => {
      inside(root, "apt-get install -y -qq --no-install-recommends xvfb xauth x11-utils imagemagick shared-mime-info desktop-file-utils man-db");
    });
    const before = files(root);
    copyFileSync(deb, join(root, "var/cache/twospeed.deb"));
    let packages;
    await step("apt-get install", () => {
      const said = inside(root, "apt-get install -y --no-install-recommends /var/cache/twospeed.deb");
      packages = said.match(/(\d+) newly installed/)[1];
      return `${packages} packages`;
    });
    inside(root, "dpkg --verify twospeed; man -w twospeed; grep -q 'application/x-gguf:\\*.gguf' /usr/share/mime/globs2; grep -q x-gguf=twospeed-window /usr/share/applications/mimeinfo.cache");
    await step("twospeed bench, as a person without rights", () => {
      const rows = JSON.parse(inside(root, "twospeed bench -m builtin -p 64 -n 16 -r 1 -o json", "person"));
      assert.equal(rows.length, 2);
      assert.ok(rows.every((row) => row.avg_ts > 0));
      return rows.map((row) => `${row.n_prompt ? "prefill" : "decode"} ${row.avg_ts.toFixed(0)} tok/s`).join(", ");
    });
    await step("the window opens and stays", () => {
      inside(root, openWindow, "person");
      copyFileSync(join(root, "home/person/window.png"), join(deb, "..", "window.png"));
      return join(deb, "..", "window.png");
    });
    inside(root, "apt-get install -y -qq --no-install-recommends webkit2gtk-driver");
    await step("the window measures", () => measureInWindow(root));
    await step("apt-get purge", () => {
      inside(root, "apt-get purge -y -qq twospeed webkit2gtk-driver; apt-get autoremove -y -qq --purge");
    });
    // What other packages' triggers keep (caches, the linker's list) is theirs.
    const left = [...files(root)].filter((path) => !before.has(path) && !/mimeinfo\.cache$|icon-theme\.cache$|\/mime\//.test(path));
    assert.deepEqual(left.filter((path) => /twospeed/i.test(path)), []);
    if (left.length > 0) console.log(`left by other packages: ${left.join(" ")}`);
    assert.ok(existsSync(join(root, "home/person/.local/share/twospeed/history.sqlite")), "the person's results stay");
    console.log("Removed without a trace; the person's results are still there.");
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
