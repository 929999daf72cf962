// The window of the package, from an empty prefix.

import assert from "node:assert/strict";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { unpack } from "./unpacked.mjs";

test("the window measures from wherever the package lies", async (context) => {
  process.env.TWOSPEED_WINDOW = join(realpathSync(unpack(context)), "usr/lib/twospeed/twospeed-window");
  // Only now: it asks once which program to open.
  const { open } = await import("../webdriver/window.mjs");
  const { measureBuiltIn } = await import("./built-in.mjs");
  const { measuredTests } = await import("../webdriver/steps.mjs");
  const window = await open();
  context.after(() => window.close());
  const rows = await measureBuiltIn(window);
  assert.equal(rows.length, 2);
  const kept = measuredTests(window.data);
  assert.deepEqual(kept.map(({ n_prompt, n_gen }) => [n_prompt, n_gen]), [[64, 0], [0, 16]]);
  assert.ok(kept.every(({ status, samples }) => status === "done" && samples.length === 1), JSON.stringify(kept));
});
