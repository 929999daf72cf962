// `npm run test:window [-- FILE..]`: drives the real window. Builds what is missing or out of date.

import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { build } from "./build.mjs";
import { buildEnvironment, main, root, run, setUp } from "./setup.mjs";

await main(() => {
  if (process.platform !== "linux") {
    console.error("The window is driven on Linux only: the tests of the page and of the crates cover the rest.");
    return;
  }
  const named = process.argv.slice(2).map((file) => resolve(file));
  const folder = join(root, "tests", "webdriver");
  const all = readdirSync(folder).filter((name) => name.endsWith(".test.mjs")).sort();
  // Whoever has just built (npm test, npm run package) says so.
  if (!process.env.TWOSPEED_WINDOW_BUILT) {
    setUp({ tests: true });
    build();
  }
  const files = named.length > 0 ? named : all.map((name) => join(folder, name));
  // One after the other: two windows beside each other disturb each other's times.
  run("node", ["--test", "--test-concurrency=1", "--test-reporter=spec", ...files], { env: buildEnvironment() });
});
