// `npm run check`: formatting and lints, as the tests demand them.

import { main, npm, run, setUp } from "./setup.mjs";

/** Everything that can be said of the code without running it. */
export function check() {
  run("cargo", ["fmt", "--all", "--check"]);
  npm(["run", "check:ui"]);
  run("cargo", ["clippy", "--release", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]);
}

if (process.argv[1] === import.meta.filename) {
  await main(() => {
    setUp();
    check();
  });
}
