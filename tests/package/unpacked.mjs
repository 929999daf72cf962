// What the tests of the package share: the .deb, its content, commands in a cleared environment.

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The .deb under test: `npm run test:package` builds it and says where it is. */
export const deb = process.env.TWOSPEED_DEB;
if (!deb) throw new Error("TWOSPEED_DEB names no package: run the tests by npm run test:package");

/** Runs a command and returns what it prints; fails with what it said. */
export function output(command, args, options = {}) {
  const done = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28, ...options });
  if (done.error) throw done.error;
  if (done.status !== 0) throw new Error(`${[command, ...args].join(" ")}: exit ${done.status ?? done.signal}\n${done.stdout}${done.stderr}`);
  return done.stdout;
}

/** A folder that is gone when the test has ended. */
export function temporary(test) {
  const folder = mkdtempSync(join(tmpdir(), "twospeed-package-"));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The package's files in an empty prefix. */
export function unpack(test) {
  const prefix = join(temporary(test), "prefix");
  execFileSync("dpkg-deb", ["-x", deb, prefix]);
  return prefix;
}

/** The package's entries: kind ("-", "d", "l"), mode, owner, path without "./", target of a link. */
export function entries() {
  const lines = output("dpkg-deb", ["-c", deb]).trimEnd().split("\n");
  return lines.map((line) => {
    const [, kind, mode, owner, rest] = line.match(/^(.)(\S{9}) (\S+) +\d+ \S+ \S+ \.\/(.*)$/);
    const [path, target] = rest.split(" -> ");
    return { kind, mode, owner, path: path.replace(/\/$/, ""), target };
  });
}

/** An environment that knows nothing of the build. */
export function clearedEnvironment(home) {
  return { HOME: home, PATH: "/usr/bin:/bin", LANG: "C.UTF-8" };
}
