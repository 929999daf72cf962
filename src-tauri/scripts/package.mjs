// `npm run package`: the .deb, in target/package of the checkout.
//
// Everything of ours lies in /usr/lib/twospeed, the engine's libraries in its folder `engine`, where
// both programs look for them relative to themselves; /usr/bin holds links. Tauri's bundler puts the
// app itself into /usr/bin and its resources elsewhere, so dpkg-deb builds this layout directly. There
// are no maintainer scripts: the menus, the icons, the MIME types and the man pages are registered by
// the triggers of the packages that own those folders.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync, copyFileSync, existsSync, lstatSync, lutimesSync, mkdirSync, readFileSync, readdirSync, rmSync,
  symlinkSync, writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "./build.mjs";
import { notices } from "./notices.mjs";
import {
  buildEnvironment, installDebian, main, onDebian, releaseFolder, root, run, setUp, SetupError, twospeed, twospeedWindow,
} from "./setup.mjs";

const templates = join(import.meta.dirname, "package");
const home = "usr/lib/twospeed";

/** Files of icons/ by the folder of the icon theme that they go into. */
const icons = {
  "16x16": "16x16.png",
  "24x24": "24x24.png",
  "32x32": "32x32.png",
  "48x48": "48x48.png",
  "64x64": "64x64.png",
  "128x128": "128x128.png",
  "256x256": "128x128@2x.png",
  "512x512": "icon.png",
  scalable: "twospeed.svg",
};

function output(command, args, options = {}) {
  try {
    return execFileSync(command, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], ...options }).trim();
  } catch (error) {
    throw new SetupError(`${[command, ...args].join(" ")} failed: ${error.stderr?.trim() || error.message}`);
  }
}

/** Version of the workspace. */
export function version() {
  const manifest = readFileSync(join(root, "Cargo.toml"), "utf8");
  return manifest.match(/^\[workspace\.package\][^[]*?^version = "([^"]+)"/ms)[1];
}

/** Seconds since 1970 that stand for "now" everywhere in the package: those of the commit. */
export function epoch() {
  return Number(process.env.SOURCE_DATE_EPOCH || output("git", ["log", "-1", "--format=%ct"]));
}

/** All files and links below a folder, relative to it, in one order. */
function below(folder) {
  return readdirSync(folder, { recursive: true }).sort();
}

/** The files of one package, gathered under a folder as they will lie under `/`. */
class Stage {
  constructor(folder) {
    this.folder = folder;
    rmSync(folder, { recursive: true, force: true });
  }

  place(path) {
    const place = join(this.folder, path);
    mkdirSync(dirname(place), { recursive: true });
    return place;
  }

  copy(source, path, mode = 0o644) {
    copyFileSync(source, this.place(path));
    chmodSync(join(this.folder, path), mode);
  }

  write(path, content) {
    writeFileSync(this.place(path), content, { mode: 0o644 });
  }

  /** Level 9 without name and time, as Debian wants it. */
  writeZipped(path, content) {
    this.write(`${path}.gz`, gzipSync(content, { level: 9 }));
  }

  link(path, target) {
    symlinkSync(relative(dirname(join("/", path)), join("/", target)), this.place(path));
  }
}

function program(stage, source, path) {
  stage.copy(source, path, 0o755);
  run("strip", ["--remove-section=.comment", join(stage.folder, path)]);
}

function programs(stage) {
  for (const built of [twospeed(), twospeedWindow()].filter(existsSync)) {
    const name = basename(built);
    program(stage, built, `${home}/${name}`);
    stage.link(`usr/bin/${name}`, `${home}/${name}`);
  }
  const engine = join(releaseFolder(), "engine");
  for (const name of readdirSync(engine)) {
    stage.copy(join(engine, name), `${home}/engine/${name}`);
    run("strip", ["--strip-unneeded", "--remove-section=.comment", join(stage.folder, home, "engine", name)]);
  }
}

function desktop(stage, at) {
  for (const [size, file] of Object.entries(icons)) {
    const kind = file.split(".").at(-1);
    stage.copy(join(root, "icons", file), `usr/share/icons/hicolor/${size}/apps/twospeed.${kind}`);
  }
  const text = (name) =>
    readFileSync(join(templates, name), "utf8").replaceAll("@VERSION@", version()).replaceAll("@DATE@", at.toISOString().slice(0, 10));
  stage.write("usr/share/applications/twospeed-window.desktop", text("twospeed-window.desktop"));
  stage.write("usr/share/mime/packages/twospeed.xml", text("twospeed.xml"));
  const metainfo = "app.twospeed.Twospeed.metainfo.xml";
  stage.write(`usr/share/metainfo/${metainfo}`, text(metainfo));
}

function documents(stage, at) {
  const doc = "usr/share/doc/twospeed";
  stage.copy(join(templates, "copyright"), `${doc}/copyright`);
  stage.copy(join(root, "LICENSE"), `${doc}/LICENSE`);
  stage.copy(join(root, "src-tauri/crates/chart/fonts/OFL.txt"), `${doc}/OFL.txt`);
  stage.writeZipped(`${doc}/third-party.txt`, notices());
  const day = new Intl.DateTimeFormat("en", { weekday: "short", timeZone: "UTC" }).format(at);
  const month = new Intl.DateTimeFormat("en", { month: "short", timeZone: "UTC" }).format(at);
  const stamp = `${day}, ${String(at.getUTCDate()).padStart(2, "0")} ${month} ${at.getUTCFullYear()} ${at.toISOString().slice(11, 19)} +0000`;
  stage.writeZipped(
    `${doc}/changelog`,
    `twospeed (${version()}) unstable; urgency=medium\n\n  * Version ${version()}.\n\n -- ${maintainer}  ${stamp}\n`,
  );
}

function manPages(stage, work) {
  const pages = join(work, "man");
  rmSync(pages, { recursive: true, force: true });
  mkdirSync(pages, { recursive: true });
  // The example is no installed program: it does not know where the engine lies.
  const env = { ...buildEnvironment(), LD_LIBRARY_PATH: join(releaseFolder(), "engine") };
  run(join(releaseFolder(), "examples", "man"), [pages], { env });
  copyFileSync(join(templates, "twospeed-window.1"), join(pages, "twospeed-window.1"));
  for (const page of below(pages)) stage.writeZipped(`usr/share/man/man1/${page}`, readFileSync(join(pages, page)));
}

/** What the programs and libraries need of the system, as Debian's own tool reads it off them. */
function dependencies(stage, work) {
  const folder = join(work, "shlibdeps");
  // By this folder the tool knows the root of the package, and what $ORIGIN means in it.
  mkdirSync(join(stage.folder, "DEBIAN"), { recursive: true });
  mkdirSync(join(folder, "debian"), { recursive: true });
  writeFileSync(join(folder, "debian", "control"), "Source: twospeed\n\nPackage: twospeed\nArchitecture: any\n");
  const inside = join(stage.folder, home);
  const binaries = below(inside).map((name) => join(inside, name)).filter((path) => lstatSync(path).isFile());
  const found = output(
    "dpkg-shlibdeps",
    // Our own libraries belong to no package.
    ["-O", "--ignore-missing-info", `-l${join(inside, "engine")}`, ...binaries.map((path) => `-e${path}`)],
    { cwd: folder },
  );
  return found.replace(/^shlibs:Depends=/, "");
}

const maintainer = "The Twospeed authors <authors@twospeed.invalid>";

function control(stage, architecture, depends) {
  const files = below(stage.folder).filter((path) => lstatSync(join(stage.folder, path)).isFile());
  const kibibytes = files.reduce((sum, path) => sum + Math.ceil(lstatSync(join(stage.folder, path)).size / 1024), 0);
  const sums = files.map((path) => `${createHash("md5").update(readFileSync(join(stage.folder, path))).digest("hex")}  ${path}\n`);
  const fields = {
    Package: "twospeed",
    Version: version(),
    Architecture: architecture,
    Maintainer: maintainer,
    "Installed-Size": kibibytes,
    Depends: depends,
    Recommends: "xdg-utils",
    Section: "science",
    Priority: "optional",
    Description: [
      "both speeds of a local language model: prefill and decode",
      " Twospeed runs real inference through llama.cpp on this machine, keeps every",
      " sample, and draws what happened next to what theory allows. It measures by",
      " the conventions of llama-bench, in a window and on the command line.",
      " .",
      " The CPU code for every generation of processor is in this package, and the",
      " best one for the machine runs.",
    ].join("\n"),
  };
  stage.write("DEBIAN/control", Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`).join(""));
  stage.write("DEBIAN/md5sums", sums.join(""));
}

/** Makes the .deb of what `build({ manual: true })` left in the release folder; returns its path. */
export function debianPackage() {
  if (!onDebian()) throw new SetupError("The .deb is built on Debian or Ubuntu: run this there.");
  installDebian(["dpkg-dev", "binutils", "xz-utils"]);
  const work = join(root, "target", "package");
  const seconds = epoch();
  const at = new Date(seconds * 1000);
  const stage = new Stage(join(work, "root"));
  programs(stage);
  desktop(stage, at);
  documents(stage, at);
  manPages(stage, work);
  const architecture = output("dpkg", ["--print-architecture"]);
  control(stage, architecture, dependencies(stage, work));
  for (const path of ["", ...below(stage.folder)]) {
    const place = join(stage.folder, path);
    if (lstatSync(place).isDirectory()) chmodSync(place, 0o755);
    lutimesSync(place, seconds, seconds);
  }
  const name = join(work, `twospeed_${version()}_${architecture}.deb`);
  const env = { ...process.env, SOURCE_DATE_EPOCH: String(seconds) };
  run("dpkg-deb", ["--root-owner-group", "-Zxz", "--build", stage.folder, name], { env });
  return name;
}

if (process.argv[1] === import.meta.filename) {
  await main(() => {
    setUp();
    build({ manual: true });
    const name = debianPackage();
    console.error(`\n${name} (${(lstatSync(name).size / 1e6).toFixed(1)} MB). Install it with\n  sudo apt install ${name}`);
  });
}
