// `npm run build`: the release build: the page, then everything of Rust in one go.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { main, npm, root, run, scripts, setUp } from "./setup.mjs";

/** Builds the command line with its worker and engine folder and, unless `window` says no, the app. */
export function build({ window = true } = {}) {
  const packages = ["twospeed-cli"];
  if (window && existsSync(join(root, "src-tauri", "Cargo.toml"))) {
    // The page is built into the app.
    if (scripts()["build:ui"]) npm(["run", "--silent", "build:ui"]);
    packages.push("twospeed-app");
  }
  console.error("Building (the first time compiles llama.cpp for every kind of CPU: about 20 minutes on two cores)");
  run("cargo", ["build", "--release", "--locked", ...packages.flatMap((name) => ["-p", name])]);
}

if (process.argv[1] === import.meta.filename) {
  await main(() => {
    setUp();
    build();
  });
}
