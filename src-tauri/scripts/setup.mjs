// Everything `npm start` and `npm test` need before they can build: system packages, npm packages,
// the environment of the build. Each function says in one sentence what it does, and does nothing
// where nothing is missing.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, dirname } from "node:path";
import { fileURLToPath } from "node:url";

/** The project's root folder. */
export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");

/** What is kept between builds, outside the checkout: may be deleted at any time. */
export const cache = join(
  process.env.XDG_CACHE_HOME || join(homedir(), ".cache"),
  "twospeed",
);

/** A failure that is explained by its sentence alone. */
export class SetupError extends Error {}

/** Debian's names of what the build needs, and the file that shows that each is there. */
const debianPackages = [
  "cmake",
  "ninja-build",
  "g++",
  "clang",
  "libclang-dev",
  "pkg-config",
  "ccache",
];

/** The same for systems whose packages are not installed from here. */
const elsewhere = {
  fedora:
    "sudo dnf install cmake ninja-build gcc-c++ clang clang-devel pkgconf ccache",
  arch: "sudo pacman -S --needed cmake ninja gcc clang pkgconf ccache",
  suse: "sudo zypper install cmake ninja gcc-c++ clang clang-devel pkg-config ccache",
  darwin: "xcode-select --install; brew install cmake ninja llvm ccache",
  win32:
    "winget install Kitware.CMake Ninja-build.Ninja LLVM.LLVM Microsoft.VisualStudio.2022.BuildTools",
};

/** Runs a command in the open; throws a SetupError when it fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    env: buildEnvironment(),
    ...options,
  });
  if (result.error) {
    throw new SetupError(`${command} could not be started: ${result.error.message}`);
  }
  if (result.status !== 0) {
    throw new SetupError(`${[command, ...args].join(" ")} failed (exit ${result.status ?? result.signal}).`);
  }
}

function works(command, args = ["--version"]) {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** Environment of every build: a kept target folder, ccache where it is, one generator. */
export function buildEnvironment() {
  const env = { ...process.env };
  env.CARGO_TARGET_DIR ||= join(cache, "target");
  if (works("ninja")) env.CMAKE_GENERATOR ||= "Ninja";
  if (works("ccache")) {
    env.CMAKE_C_COMPILER_LAUNCHER ||= "ccache";
    env.CMAKE_CXX_COMPILER_LAUNCHER ||= "ccache";
    // Registry sources live at other paths on other machines; the result does not depend on them.
    env.CCACHE_DIR ||= join(cache, "ccache");
  }
  return env;
}

/** Where cargo puts the release binaries. */
export function releaseFolder() {
  return join(buildEnvironment().CARGO_TARGET_DIR, "release");
}

/** The built command line. */
export function twospeed() {
  return join(releaseFolder(), process.platform === "win32" ? "twospeed.exe" : "twospeed");
}

function osRelease() {
  if (!existsSync("/etc/os-release")) return { id: process.platform, like: "" };
  const text = readFileSync("/etc/os-release", "utf8");
  const field = (name) => (text.match(new RegExp(`^${name}=(.*)$`, "m"))?.[1] ?? "").replaceAll('"', "");
  return { id: field("ID"), like: field("ID_LIKE") };
}

/** Installs Debian packages that are missing; asks for sudo where this is not root. */
export function installDebian(packages) {
  const missing = packages.filter((name) => {
    const query = spawnSync("dpkg-query", ["-W", "-f=${Status}", name], { encoding: "utf8" });
    return !query.stdout?.includes("install ok installed");
  });
  if (missing.length === 0) return;
  const apt = (args) => {
    const isRoot = process.getuid?.() === 0;
    const [command, ...rest] = isRoot ? ["apt-get", ...args] : ["sudo", "apt-get", ...args];
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
    return spawnSync(command, rest, { stdio: "inherit", env }).status === 0;
  };
  console.error(`Installing ${missing.join(" ")}`);
  // The lists of a new machine are empty or old; a failing mirror is only fatal if the install fails.
  apt(["update", "-qq"]);
  if (!apt(["install", "-y", "-qq", "--no-install-recommends", ...missing])) {
    throw new SetupError(
      `These system packages are missing: install them with\n  sudo apt-get install ${missing.join(" ")}\nand run this again.`,
    );
  }
}

/** System packages: installed on Debian and Ubuntu, named exactly on other systems. */
export function systemPackages(extra = []) {
  const { id, like } = osRelease();
  if (/debian|ubuntu/.test(`${id} ${like}`)) {
    installDebian([...debianPackages, ...extra]);
    return;
  }
  const missing = [["cmake"], ["ninja"], ["clang"]].filter(([tool]) => !works(tool)).flat();
  if (missing.length === 0) return;
  const family = Object.keys(elsewhere).find((name) => `${id} ${like}`.includes(name));
  throw new SetupError(
    `${missing.join(", ")} not found. Install with\n  ${
      elsewhere[family] ?? "your system's packages of CMake, Ninja, a C++ compiler, Clang with libclang, ccache"
    }\nand run this again.`,
  );
}

/** Rust and Node are the two things a person brings. */
export function toolchains() {
  if (Number(process.versions.node.split(".")[0]) < 20) {
    throw new SetupError(`Node ${process.versions.node} is too old: install Node 20 or newer from https://nodejs.org.`);
  }
  if (!works("cargo")) {
    throw new SetupError("Rust is missing: install it from https://rustup.rs, open a new terminal and run this again.");
  }
}

/** npm packages, exactly as locked. */
export function npmPackages() {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const wanted = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });
  if (wanted.length === 0) return;
  const lock = readFileSync(join(root, "package-lock.json"), "utf8");
  const stamp = join(root, "node_modules", ".package-lock.json");
  if (existsSync(stamp) && sameVersions(JSON.parse(lock), JSON.parse(readFileSync(stamp, "utf8")))) return;
  run("npm", ["ci", "--no-audit", "--no-fund"]);
}

function sameVersions(lock, installed) {
  return Object.entries(lock.packages).every(
    ([path, entry]) => path === "" || entry.optional || installed.packages[path]?.version === entry.version,
  );
}

/** All of the set-up. */
export function setUp() {
  toolchains();
  systemPackages();
  npmPackages();
}

/** Runs a script's main function and turns a SetupError into its sentence. */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}
