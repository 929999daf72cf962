// The release build.

import { run } from "./setup.mjs";

/** Builds the command line with its worker and engine folder. */
export function build() {
  console.error("Building (the first time compiles llama.cpp for every kind of CPU: about 15 minutes on two cores)");
  run("cargo", ["build", "--release", "--locked", "-p", "twospeed-cli"]);
}
