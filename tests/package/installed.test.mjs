// The package in an empty prefix: it runs there, and goes without a trace.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { clearedEnvironment, deb, entries, output, temporary, unpack } from "./unpacked.mjs";

test("the command measures from wherever the package lies", (context) => {
  const prefix = unpack(context);
  const env = clearedEnvironment(temporary(context));
  const command = join(prefix, "usr/bin/twospeed");
  assert.equal(output(command, ["--version"], { env }).trim(), `twospeed ${output("dpkg-deb", ["-f", deb, "Version"]).trim()}`);
  const rows = JSON.parse(output(command, ["bench", "-m", "builtin", "-p", "64", "-n", "16", "-r", "1", "-o", "json"], { env, cwd: "/" }));
  assert.deepEqual(rows.map((row) => [row.n_prompt, row.n_gen]), [[64, 0], [0, 16]]);
  assert.ok(rows.every((row) => row.avg_ts > 0));
});

test("the engine is the package's own, whatever the build left elsewhere", (context) => {
  const prefix = unpack(context);
  const env = clearedEnvironment(temporary(context));
  const engine = join(realpathSync(prefix), "usr/lib/twospeed/engine");
  const libraries = output("ldd", [join(prefix, "usr/lib/twospeed/twospeed")], { env });
  assert.doesNotMatch(libraries, /not found/);
  const ours = [...libraries.matchAll(/(lib(?:llama|ggml)\S*) => (\S+)/g)];
  assert.ok(ours.length >= 2, libraries);
  for (const [, name, path] of ours) assert.equal(dirname(realpathSync(path)), engine, name);
});

test("installed and removed, nothing of it is left", (context) => {
  const prefix = temporary(context);
  mkdirSync(join(prefix, "var/lib/dpkg/info"), { recursive: true });
  mkdirSync(join(prefix, "var/lib/dpkg/updates"));
  writeFileSync(join(prefix, "var/lib/dpkg/status"), "");
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
  // What the package needs is outside this prefix. Some systems leave documents out: not here.
  const dpkg = (...args) => output("dpkg", [`--root=${prefix}`, "--force-depends", "--path-include=*", ...args], { env });
  const outside = () => readdirSync(prefix, { recursive: true }).filter((path) => !/^var(\/|$)/.test(path)).sort();

  dpkg("--install", deb);
  assert.deepEqual(outside(), entries().map(({ path }) => path).filter(Boolean).sort());
  dpkg("--purge", "twospeed");
  assert.deepEqual(outside(), []);
});

test("the same build gives the same package, to the byte", async () => {
  const sum = () => createHash("sha256").update(readFileSync(deb)).digest("hex");
  const before = sum();
  const { debianPackage } = await import("../../src-tauri/scripts/package.mjs");
  assert.equal(debianPackage(), deb);
  assert.equal(sum(), before);
});
