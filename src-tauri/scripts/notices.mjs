// The licences of everything that is built into the programs, each text once.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./setup.mjs";

/** Names of files that hold a licence. */
const licenceFile = /^(licen[cs]e|copying|notice|unlicense|ofl)/i;

/** Parts of other packages that have a licence of their own: a package and a file in it. */
const inside = [{ name: "llama.cpp", of: "llama-cpp-sys-2", folder: "llama.cpp", licence: "MIT" }];

function licenceTexts(folder) {
  const found = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile() && licenceFile.test(entry.name));
  return found.map((entry) => readFileSync(join(folder, entry.name), "utf8").replaceAll("\r\n", "\n").trim()).sort();
}

/** Everything of crates.io that is linked into our programs on this kind of machine. */
function crates() {
  const host = execFileSync("rustc", ["--print", "host-tuple"], { encoding: "utf8" }).trim();
  const metadata = JSON.parse(
    execFileSync("cargo", ["metadata", "--format-version", "1", "--locked", "--filter-platform", host], {
      cwd: root,
      encoding: "utf8",
      maxBuffer: 1 << 28,
    }),
  );
  const packages = new Map(metadata.packages.map((item) => [item.id, item]));
  const nodes = new Map(metadata.resolve.nodes.map((node) => [node.id, node]));
  const waiting = [...packages.values()].filter((item) => ["twospeed-cli", "twospeed-app"].includes(item.name)).map((item) => item.id);
  const seen = new Set(waiting);
  while (waiting.length > 0) {
    for (const { pkg, dep_kinds: kinds } of nodes.get(waiting.pop()).deps) {
      const macros = packages.get(pkg).targets.some((target) => target.kind.includes("proc-macro"));
      if (seen.has(pkg) || macros || !kinds.some(({ kind }) => kind === null)) continue;
      seen.add(pkg);
      waiting.push(pkg);
    }
  }
  return [...seen].map((id) => packages.get(id)).filter((item) => item.source !== null).map((item) => {
    const folder = dirname(item.manifest_path);
    const { name, version, repository: source } = item;
    return { name, version, licence: item.license ?? "see its text", source, folder, texts: licenceTexts(folder) };
  });
}

/** Everything of npm that goes into the page: what package.json calls dependencies. */
function npmPackages() {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return Object.keys(manifest.dependencies ?? {}).map((name) => {
    const folder = join(root, "node_modules", name);
    const { version, license, homepage } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return { name, version, licence: license, source: homepage, folder, texts: licenceTexts(folder) };
  });
}

/** The whole list as plain text. */
export function notices() {
  const parts = [...crates(), ...npmPackages()];
  for (const { name, of, folder, licence } of inside) {
    const outer = parts.find((part) => part.name === of);
    const place = outer && join(outer.folder, folder);
    if (place && existsSync(place)) parts.push({ name, version: `in ${of} ${outer.version}`, licence, texts: licenceTexts(place) });
  }
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  parts.sort((a, b) => order(a.name, b.name) || order(a.version, b.version));
  const owners = new Map();
  for (const part of parts) {
    for (const text of part.texts) {
      // Many copies of one text differ in their line breaks alone.
      const words = text.replace(/\s+/g, " ");
      const entry = owners.get(words) ?? { text, names: [] };
      entry.names.push(`${part.name} ${part.version}`);
      owners.set(words, entry);
    }
  }
  const bare = parts.filter((part) => part.texts.length === 0);
  const line = "-".repeat(80);
  return [
    "Twospeed contains the following works of others, under their licences.\n",
    ...parts.map((part) => `${part.name} ${part.version}: ${part.licence}${part.source ? ` (${part.source})` : ""}`),
    "",
    ...(bare.length > 0
      ? [
          "These come without a text of their own; the texts of MIT and Apache-2.0 are in LICENSE beside this file:",
          bare.map((part) => `${part.name} ${part.version}`).join(", "),
          "",
        ]
      : []),
    ...[...owners.values()].map(({ text, names }) => `${line}\n${names.join(", ")}\n${line}\n\n${text}\n`),
  ].join("\n");
}
