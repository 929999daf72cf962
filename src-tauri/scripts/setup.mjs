// Everything `npm start` and `npm test` need before they can build: system packages, npm packages,
// the environment of the build. Each function says in one sentence what it does, and does nothing
// where nothing is missing.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
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

/** Debian's names of what `npm start` needs: the engine's tools, and the libraries of the window. */
const debianBuild = [
  "cmake",
  "ninja-build",
  "g++",
  "clang",
  "libclang-dev",
  "pkg-config",
  "ccache",
  "libwebkit2gtk-4.1-dev",
  "libgtk-3-dev",
  "librsvg2-dev",
  "libssl-dev",
];

/** What `npm test` needs beyond that: a driver and a screen for the window, judges of the package. */
const debianTest = [
  "webkit2gtk-driver",
  "xvfb",
  "xauth",
  "xclip",
  "dbus-x11",
  "desktop-file-utils",
  "appstream",
  "shared-mime-info",
  "fakeroot",
];

/** The same for systems whose packages are not installed from here, as commands to type. */
const elsewhere = {
  fedora: {
    build:
      "sudo dnf install cmake ninja-build gcc-c++ clang clang-devel pkgconf ccache webkit2gtk4.1-devel gtk3-devel librsvg2-devel openssl-devel",
    test: "sudo dnf install xorg-x11-server-Xvfb xorg-x11-xauth dbus-x11 python3-pip",
  },
  arch: {
    build: "sudo pacman -S --needed cmake ninja gcc clang pkgconf ccache webkit2gtk-4.1 gtk3 librsvg openssl",
    test: "sudo pacman -S --needed xorg-server-xvfb xorg-xauth xclip dbus python-pip",
  },
  suse: {
    build:
      "sudo zypper install cmake ninja gcc-c++ clang clang-devel pkg-config ccache webkit2gtk3-devel gtk3-devel librsvg-devel libopenssl-devel",
    test: "sudo zypper install xorg-x11-server-Xvfb xauth xclip dbus-1-x11 python3-pip",
  },
  darwin: { build: "xcode-select --install; brew install cmake ninja llvm ccache" },
  win32: {
    build: "winget install Kitware.CMake Ninja-build.Ninja LLVM.LLVM Microsoft.VisualStudio.2022.BuildTools",
  },
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

const suffix = process.platform === "win32" ? ".exe" : "";

/** The built command line. */
export function twospeed() {
  return join(releaseFolder(), `twospeed${suffix}`);
}

/** The built app. */
export function twospeedWindow() {
  return join(releaseFolder(), `twospeed-window${suffix}`);
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

/** Whether system packages can be installed from here. */
export function onDebian() {
  const { id, like } = osRelease();
  return /debian|ubuntu/.test(`${id} ${like}`);
}

/** System packages: installed on Debian and Ubuntu, named exactly on other systems. */
function systemPackages({ tests }) {
  if (onDebian()) {
    installDebian([...debianBuild, ...(tests ? debianTest : [])]);
    return;
  }
  const { id, like } = osRelease();
  const family = Object.keys(elsewhere).find((name) => `${id} ${like}`.includes(name));
  const need = (missing, kind, inWords) => {
    if (missing.length === 0) return;
    const how = elsewhere[family]?.[kind] ?? `your system's packages of ${inWords}`;
    // Some systems ship the driver with WebKitGTK itself, some under a name of its own.
    const driver = missing.includes("WebKitWebDriver") ? " (and the package of your system that holds WebKitWebDriver)" : "";
    throw new SetupError(`${missing.join(", ")} not found. Install with\n  ${how}${driver}\nand run this again.`);
  };
  const libraries = process.platform === "linux" ? ["webkit2gtk-4.1", "gtk+-3.0", "librsvg-2.0", "openssl"] : [];
  need(
    [
      ...["cmake", "ninja", "clang"].filter((tool) => !works(tool)),
      ...libraries.filter((name) => !works("pkg-config", ["--exists", name])),
    ],
    "build",
    "CMake, Ninja, a C++ compiler, Clang with libclang, ccache, and the development files of WebKitGTK 4.1, GTK 3, librsvg, OpenSSL",
  );
  if (tests && process.platform === "linux") {
    need(
      ["WebKitWebDriver", "xvfb-run", "xauth", "xclip"].filter((tool) => !onPath(tool)),
      "test",
      "Xvfb with xvfb-run, xauth, xclip, D-Bus, pip",
    );
  }
}

function onPath(tool) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => folder && existsSync(join(folder, tool)));
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

/** Runs npm: the one that runs this script, which on Windows is no program of its own. */
export function npm(args, options) {
  const cli = process.env.npm_execpath;
  if (cli?.endsWith(".js")) run(process.execPath, [cli, ...args], options);
  else run("npm", args, { shell: process.platform === "win32", ...options });
}

/** npm packages, exactly as locked. */
export function npmPackages() {
  const locked = join(root, "package-lock.json");
  const stamp = join(root, "node_modules", ".package-lock.json");
  const read = (path) => JSON.parse(readFileSync(path, "utf8"));
  if (existsSync(stamp) && sameVersions(read(locked), read(stamp))) return;
  npm(["ci", "--no-audit", "--no-fund"]);
}

function sameVersions(lock, installed) {
  return Object.entries(lock.packages).every(
    ([path, entry]) => path === "" || entry.optional || installed.packages[path]?.version === entry.version,
  );
}

/** All of the set-up: what a build needs and, where `tests` says so, what only the tests need. */
export function setUp({ tests = false } = {}) {
  toolchains();
  systemPackages({ tests });
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
