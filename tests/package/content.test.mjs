// What lies in the package, and where.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { clearedEnvironment, deb, entries, output, temporary, unpack } from "./unpacked.mjs";

const programs = ["twospeed", "twospeed-window"];
const iconSizes = [16, 24, 32, 48, 64, 128, 256, 512];

test("every file has its place, and there is no other", () => {
  const engine = readdirSync(join(process.env.TWOSPEED_RELEASE, "engine"));
  const expected = [
    ...programs.flatMap((name) => [`usr/bin/${name}`, `usr/lib/twospeed/${name}`]),
    ...engine.map((name) => `usr/lib/twospeed/engine/${name}`),
    ...iconSizes.map((size) => `usr/share/icons/hicolor/${size}x${size}/apps/twospeed.png`),
    "usr/share/icons/hicolor/scalable/apps/twospeed.svg",
    "usr/share/applications/twospeed-window.desktop",
    "usr/share/mime/packages/twospeed.xml",
    "usr/share/metainfo/app.twospeed.Twospeed.metainfo.xml",
    ...["copyright", "LICENSE", "OFL.txt", "third-party.txt.gz", "changelog.gz"].map((name) => `usr/share/doc/twospeed/${name}`),
  ];
  const found = entries().filter(({ kind }) => kind !== "d").map(({ path }) => path);
  const pages = found.filter((path) => path.startsWith("usr/share/man/"));
  assert.deepEqual(found.filter((path) => !pages.includes(path)).sort(), expected.sort());
  for (const name of programs) assert.ok(pages.includes(`usr/share/man/man1/${name}.1.gz`), name);
  assert.ok(pages.every((path) => /^usr\/share\/man\/man1\/twospeed(-[a-z]+)?\.1\.gz$/.test(path)), pages.join(" "));
});

test("the CPU code of every generation is there", { skip: process.arch !== "x64" && "the list is that of x86-64" }, () => {
  // llama.cpp's own list: ggml/src/CMakeLists.txt, GGML_CPU_ALL_VARIANTS.
  const variants = [
    "x64", "sse42", "sandybridge", "ivybridge", "piledriver", "haswell", "skylakex", "cannonlake", "cascadelake",
    "cooperlake", "icelake", "alderlake", "sapphirerapids", "zen4",
  ];
  const found = entries().map(({ path }) => path.match(/engine\/libggml-cpu-(.+)\.so$/)?.[1]).filter(Boolean);
  assert.deepEqual(found.sort(), variants.sort());
});

test("files belong to root, only programs can be run, only root can change them", () => {
  for (const { kind, mode, owner, path } of entries()) {
    assert.equal(owner, "root/root", path);
    if (kind === "l") continue;
    const executable = kind === "d" || programs.some((name) => path === `usr/lib/twospeed/${name}`);
    assert.equal(mode, executable ? "rwxr-xr-x" : "rw-r--r--", path);
  }
});

test("links are relative and lead to files of the package", () => {
  const all = entries();
  const links = all.filter(({ kind }) => kind === "l");
  assert.deepEqual(links.map(({ path }) => path).sort(), programs.map((name) => `usr/bin/${name}`).sort());
  for (const { path, target } of links) {
    assert.ok(!target.startsWith("/"), `${path} -> ${target}`);
    const end = posix.join(posix.dirname(path), target);
    assert.equal(all.find((entry) => entry.path === end)?.kind, "-", `${path} -> ${target}`);
  }
});

test("no script of ours runs as root when the package comes and goes", (context) => {
  const folder = temporary(context);
  output("dpkg-deb", ["-e", deb, folder]);
  assert.deepEqual(readdirSync(folder).sort(), ["control", "md5sums"]);
});

test("the checksums are those of the files", (context) => {
  const folder = temporary(context);
  output("dpkg-deb", ["-R", deb, folder]);
  const sums = readFileSync(join(folder, "DEBIAN", "md5sums"), "utf8").trimEnd().split("\n").map((line) => line.split("  "));
  const files = entries().filter(({ kind }) => kind === "-").map(({ path }) => path);
  assert.deepEqual(sums.map(([, path]) => path).sort(), files.sort());
  for (const [sum, path] of sums) {
    assert.equal(createHash("md5").update(readFileSync(join(folder, path))).digest("hex"), sum, path);
  }
});

test("each icon has the size of its folder", (context) => {
  const prefix = unpack(context);
  for (const size of iconSizes) {
    // Width and height are the two big-endian words at 16 of a PNG.
    const png = readFileSync(join(prefix, `usr/share/icons/hicolor/${size}x${size}/apps/twospeed.png`));
    assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [size, size]);
  }
});

test("programs and libraries are stripped and look for libraries beside themselves only", (context) => {
  const prefix = unpack(context);
  const home = join(prefix, "usr/lib/twospeed");
  const engine = readdirSync(join(home, "engine"));
  for (const name of [...programs, ...engine.map((library) => `engine/${library}`)]) {
    const sections = output("readelf", ["--wide", "--sections", join(home, name)]);
    assert.doesNotMatch(sections, /\.symtab|\.debug_/, name);
    const dynamic = output("readelf", ["--wide", "--dynamic", join(home, name)]);
    const search = [...dynamic.matchAll(/\((?:RPATH|RUNPATH)\).*\[(.*)\]/g)].flatMap(([, paths]) => paths.split(":"));
    assert.ok(search.every((path) => path.startsWith("$ORIGIN")), `${name} looks in ${search.join(" ")}`);
  }
  const rpath = output("readelf", ["--wide", "--dynamic", join(home, "twospeed")]);
  assert.match(rpath, /\(RPATH\).*\$ORIGIN\/engine/);
});

test("the window links nothing of the engine", (context) => {
  const dynamic = output("readelf", ["--wide", "--dynamic", join(unpack(context), "usr/lib/twospeed/twospeed-window")]);
  assert.doesNotMatch(dynamic, /NEEDED.*(llama|ggml)/);
});

test("what the programs need of the system is declared", () => {
  const depends = output("dpkg-deb", ["-f", deb, "Depends"]);
  for (const name of ["libc6", "libstdc++6", "libgomp1", "libwebkit2gtk-4.1-0", "libgtk-3-0"]) {
    assert.match(depends, new RegExp(`(^|, )${name.replaceAll("+", "\\+")}(t64)?( |,|$)`, "m"));
  }
});

test("the licences of what is built in are there", (context) => {
  const doc = join(unpack(context), "usr/share/doc/twospeed");
  assert.match(readFileSync(join(doc, "OFL.txt"), "utf8"), /SIL Open Font License/i);
  const notices = gunzipSync(readFileSync(join(doc, "third-party.txt.gz"))).toString();
  for (const part of ["llama.cpp", "tauri", "resvg", "sqlx"]) assert.match(notices, new RegExp(`^${part} `, "m"));
  assert.match(notices, /The ggml authors/);
});

test("the desktop's own tools find no fault", (context) => {
  const share = join(unpack(context), "usr/share");
  output("desktop-file-validate", [join(share, "applications/twospeed-window.desktop")]);
  output("appstreamcli", ["validate", "--no-net", "--explain", join(share, "metainfo/app.twospeed.Twospeed.metainfo.xml")]);
});

test("a GGUF file is known by its name and by its first bytes, and Twospeed opens it", (context) => {
  const share = join(unpack(context), "usr/share");
  const folder = temporary(context);
  output("update-mime-database", [join(share, "mime")], { env: { ...process.env, XDG_DATA_DIRS: share } });
  writeFileSync(join(folder, "model.gguf"), Buffer.from([0xff, 0xff, 0xff, 0xff]));
  writeFileSync(join(folder, "unnamed"), Buffer.from("GGUF\x03\0\0\0"));
  const env = { ...clearedEnvironment(folder), XDG_DATA_DIRS: share };
  for (const name of ["model.gguf", "unnamed"]) {
    assert.match(output("gio", ["info", "-a", "standard::content-type", join(folder, name)], { env }), /content-type: application\/x-gguf$/m, name);
  }
  assert.match(readFileSync(join(share, "applications/twospeed-window.desktop"), "utf8"), /^MimeType=application\/x-gguf;$/m);
});
