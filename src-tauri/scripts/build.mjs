// `npm run build`: the release build: the page, then everything of Rust in one go.

import { cpSync, existsSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { main, npm, root, run, setUp } from "./setup.mjs";

/** Every file below a folder with its content, as one text to compare. */
function content(folder) {
  if (!existsSync(folder)) return "";
  const files = readdirSync(folder, { recursive: true }).sort().filter((name) => statSync(join(folder, name)).isFile());
  return files.map((name) => `${name}\n${readFileSync(join(folder, name), "latin1")}\n`).join("");
}

/** Builds the page into ui/dist. A page that stays the same is not touched, or the app would be built anew. */
function buildPage() {
  const fresh = join(root, "target", "page");
  const page = join(root, "ui", "dist");
  npm(["run", "--silent", "build:ui", "--", "--outDir", fresh, "--emptyOutDir", "--logLevel", "warn"]);
  if (content(fresh) === content(page)) return;
  rmSync(page, { recursive: true, force: true });
  cpSync(fresh, page, { recursive: true });
}

/**
 * Builds the command line with its worker and engine folder; unless `window` says no, the app; and for
 * a package what writes the manual pages. One call of cargo: what they share is compiled once.
 */
export function build({ window = true, manual = false } = {}) {
  if (window) buildPage();
  console.error("Building (the first time compiles llama.cpp for every kind of CPU: about 20 minutes on two cores)");
  const packages = ["twospeed-cli", ...(window ? ["twospeed-app"] : [])].flatMap((name) => ["-p", name]);
  run("cargo", ["build", "--release", "--locked", ...packages, ...(manual ? ["--bins", "--example", "man"] : [])]);
}

if (process.argv[1] === import.meta.filename) {
  await main(() => {
    setUp();
    build();
  });
}
