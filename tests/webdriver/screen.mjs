// A screen that nobody sees, surroundings that are nobody's, and programs that end with the test.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Groups that are not ended yet. They would outlive a test that is ended itself. */
const groups = new Set();
process.on("exit", () => groups.forEach((pid) => signalGroup(pid, "SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // Nobody is left in it.
  }
}

/** A program in a process group of its own: `stop` ends it with everything it started. */
export class Program {
  #ended;

  constructor(command, args, options = {}) {
    this.output = "";
    this.child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], detached: true, ...options });
    if (this.pid) groups.add(this.pid);
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (data) => (this.output += data));
    }
    this.#ended = new Promise((resolve) => {
      this.child.on("error", (error) => resolve({ error }));
      this.child.on("exit", (code, signal) => resolve({ code, signal }));
    });
  }

  get pid() {
    return this.child.pid;
  }

  /** How it ended: `{ code, signal }`, or `{ error }` where it never began. */
  ended() {
    return this.#ended;
  }

  /** Asks the whole group to end; after `patience` milliseconds it is ended. */
  async stop(patience = 2000) {
    if (this.pid === undefined) return;
    signalGroup(this.pid, "SIGTERM");
    const late = setTimeout(() => signalGroup(this.pid, "SIGKILL"), patience);
    await this.#ended;
    clearTimeout(late);
    signalGroup(this.pid, "SIGKILL");
    groups.delete(this.pid);
  }
}

/** An X server without a screen; `size` is WIDTHxHEIGHT. */
export async function screen(size = "1280x800") {
  const server = new Program("Xvfb", ["-displayfd", "3", "-screen", "0", `${size}x24`, "-nolisten", "tcp", "-noreset"], {
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const number = new Promise((resolve) => server.child.stdio[3]?.once("data", (data) => resolve(String(data).trim())));
  const display = await Promise.race([
    number,
    server.ended().then((end) => {
      throw new Error(`Xvfb did not start (${end.error?.message ?? `exit ${end.code}`}): ${server.output}`);
    }),
  ]);
  return { display: `:${display}`, stop: () => server.stop() };
}

/** Folders for one test, removed at its end. */
export function surroundings() {
  const folder = mkdtempSync(join(tmpdir(), "twospeed-window-"));
  const inside = (name) => {
    const path = join(folder, name);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    return path;
  };
  return {
    home: inside("home"),
    runtime: inside("runtime"),
    data: join(folder, "data"),
    inside,
    remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }),
  };
}

/** Variables of a person who has set nothing, on a desktop without a session bus. */
export function variables({ display, around, env = {} }) {
  const kept = ["PATH", "TWOSPEED_MODELS", "LIBGL_ALWAYS_SOFTWARE"].flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  );
  const all = {
    ...Object.fromEntries(kept),
    LANG: "C.UTF-8",
    HOME: around.home,
    XDG_RUNTIME_DIR: around.runtime,
    DISPLAY: display,
    // Otherwise GTK starts a bus that outlives the test.
    DBUS_SESSION_BUS_ADDRESS: "disabled:",
    NO_AT_BRIDGE: "1",
    ...env,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** A port that is free now. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
