// A folder that means harm: broken files, and names that try to break the page or to run in it.

import assert from "node:assert/strict";
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../../src-tauri/scripts/setup.mjs";
import { surroundings } from "./screen.mjs";
import { open } from "./window.mjs";
import * as person from "./steps.mjs";
import { patience } from "./steps.mjs";

const broken = join(root, "tests", "data", "gguf", "hostile");

/** Names of files; each would do or break something where it were more than a name. */
const names = [
  "<img src=x onerror=\"globalThis.harmed='file'\">.gguf",
  "<script>globalThis.harmed='script'<&script>.gguf",
  "'\"><svg onload=globalThis.harmed=1>.gguf",
  "${globalThis.harmed='template'}{{harmed}}{@html harmed}.gguf",
  "first line\nsecond line\r\nthird\tline.gguf",
  "\u202egnp.exe\u202c right to left \u0645\u0648\u062f\u064a\u0644 \u05d3\u05d2\u05dd.gguf",
  "\u0007\u001b[31mred\u001b[0m\u0000".replace("\u0000", "") + ".gguf",
  "\u200b\u200d\ufeff.gguf",
  "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324".repeat(4) + "algo.gguf",
  "🦙👩‍👩‍👧‍👦漢字かな한글.gguf",
  "a".repeat(250) + ".gguf",
  "   .gguf",
];

/** The same for what a header says its name is. */
const titles = [
  "<img src=x onerror=\"globalThis.harmed='title'\">",
  "</h2></div><script>globalThis.harmed='script'</script>",
  "javascript:globalThis.harmed=1",
  "line one\nline two\u2028line three",
  "\u202e\u2066right to left\u0645\u0648\u062f\u064a\u0644",
  "n".repeat(300),
  "words ".repeat(50),
  "__proto__",
];

/** A small whole model: a header with this name, one tensor, its data. */
function gguf(title) {
  const u32 = (value) => Buffer.from(Uint32Array.of(value).buffer);
  const u64 = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
  const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
  const string = (key, value) => Buffer.concat([text(key), u32(8), text(value)]);
  const number = (key, value) => Buffer.concat([text(key), u32(4), u32(value)]);
  const pairs = [
    string("general.architecture", "llama"),
    string("general.name", title),
    string("general.size_label", title),
    number("general.file_type", 0),
    number("llama.block_count", 1),
    number("llama.context_length", 64),
    number("llama.embedding_length", 32),
    number("llama.feed_forward_length", 32),
    number("llama.attention.head_count", 1),
    string("tokenizer.ggml.model", title),
  ];
  const tensor = Buffer.concat([text("token_embd.weight"), u32(2), u64(32), u64(32), u32(0), u64(0)]);
  const header = Buffer.concat([Buffer.from("GGUF"), u32(3), u64(1), u64(pairs.length), ...pairs, tensor]);
  const padding = Buffer.alloc((32 - (header.length % 32)) % 32);
  return Buffer.concat([header, padding, Buffer.alloc(4 * 32 * 32)]);
}

/** The folder; answers with how many files are in it. */
function fill(folder) {
  cpSync(broken, folder, { recursive: true, filter: (path) => !/\.(csv|md)$/.test(path) });
  for (const [at, name] of names.entries()) writeFileSync(join(folder, name), gguf(`Named ${at}`));
  // The same names on files that cannot be read.
  const nonsense = join(folder, "nonsense");
  mkdirSync(nonsense);
  for (const name of names) writeFileSync(join(nonsense, name), "GGUF and nothing that could follow");
  for (const [at, title] of titles.entries()) writeFileSync(join(folder, `title ${at}.gguf`), gguf(title));
  // No Unicode: such a name is bytes.
  const plain = join(folder, "plain.gguf");
  writeFileSync(plain, gguf("No Unicode"));
  renameSync(plain, Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe, 0x80, 0x3c, 0x62, 0x3e]), Buffer.from(".gguf")]));
  // A path longer than 300 characters.
  const deep = join(folder, "d".repeat(120), "e".repeat(120), "f".repeat(120));
  mkdirSync(deep, { recursive: true });
  writeFileSync(join(deep, "deep.gguf"), gguf("Deep"));
}

/** What sticks out of its place in the page. */
function broke() {
  const main = document.querySelector("main");
  const found = [];
  const wide = (element, name) => {
    if (element.scrollWidth > element.clientWidth) found.push(`${name} scrolls sideways: ${element.scrollWidth} > ${element.clientWidth}`);
  };
  for (const element of [document.documentElement, document.body]) {
    if (element.scrollHeight > element.clientHeight || element.scrollTop > 0) found.push(`the ${element.tagName} scrolls: ${element.scrollHeight} > ${element.clientHeight}`);
  }
  wide(document.documentElement, "the page");
  wide(document.body, "the body");
  wide(main, "the view");
  for (const list of document.querySelectorAll(".scrolls")) wide(list, "the list");
  const place = document.querySelector(".scrolls").getBoundingClientRect();
  const rows = document.querySelectorAll("[data-row], .details, details.odd li, details.odd li > *, .folders li, .notes p, h2");
  for (const row of rows) {
    if (row.closest("nav")) continue;
    const box = row.getBoundingClientRect();
    if (box.left < place.left - 1 || box.right > place.right + 1) found.push(`${row.className || row.tagName} sticks out: ${row.textContent.trim().slice(0, 60)}`);
  }
  for (const row of document.querySelectorAll("[data-row]")) {
    if (row.getBoundingClientRect().height > 120) found.push(`a row is ${row.getBoundingClientRect().height} px high: ${row.textContent.trim().slice(0, 60)}`);
  }
  return found;
}

describe("a hostile folder in Models", () => {
  let around;
  let window;
  let folder;

  before(async () => {
    around = surroundings();
    folder = around.inside("<b>hostile<&b> folder");
    fill(folder);
    window = await open({ around });
    await person.add(window, folder);
    await seeAll();
  });
  after(async () => {
    await window?.close();
    around.remove();
  });

  /** Of a long list, what is near is drawn: goes on to its end, until there is no more. */
  async function seeAll() {
    const ask = () =>
      window.run(() => {
        const list = document.querySelector(".scrolls");
        list.scrollTop = list.scrollHeight; list.querySelector(".end")?.scrollIntoView();
        return list.querySelector(".end") === null && list.querySelectorAll("details.odd").length > 0;
      });
    await window.until(ask, "the list does not come to its end", patience);
  }

  const text = (selector) => window.run((css) => [...document.querySelectorAll(css)].map((each) => each.textContent.trim()), selector);

  test("lists every file that is whole under its own name, as text", async () => {
    const groups = await text(".group h2");
    for (const name of [...titles, "No Unicode", "Deep", ...names.map((_, at) => `Named ${at}`)]) {
      // How spaces and control characters are shown is the program's; letters and signs are what they are.
      const bare = (words) => words.replace(/<U\+[0-9A-F]+>/g, "").replace(/[^\p{L}\p{N}<>="'/]/gu, "");
      const found = groups.some((shown) => bare(shown).includes(bare(name.replace(/\p{C}/gu, "")).slice(0, 40)));
      assert.ok(found, `${JSON.stringify(name)} is not among ${JSON.stringify(groups)}`);
    }
  });

  test("has a sentence for every broken file", async () => {
    const odd = await window.run(() => [...document.querySelectorAll("details.odd li")].map((line) => ({ name: line.querySelector("bdi").textContent, sentence: line.querySelector("span").textContent.trim() })));
    // What llama.cpp's reader says to each.
    const [, ...lines] = readFileSync(join(broken, "expectations.csv"), "utf8").trim().split("\n");
    const unreadable = lines.map((line) => line.split(",")).filter(([, loads]) => loads === "no").map(([file]) => file);
    assert.ok(unreadable.length > 10);
    for (const file of unreadable) assert.ok(odd.some(({ name }) => name === file), `${file} has no sentence`);
    for (const { name, sentence } of odd) assert.match(sentence, /^\S.{7,}\.$/s, `${name}: ${sentence}`);
    const nonsense = odd.filter(({ name }) => !readdirSync(broken).includes(name)).length;
    assert.ok(nonsense >= names.length, `${nonsense} of ${names.length} files of nonsense have a sentence`);
    for (const { sentence } of odd) assert.doesNotMatch(sentence, /undefined|null|\[object|panick/);
  });

  for (const [width, height] of [[1280, 800], [1000, 700]]) {
    test(`keeps the layout at ${width}x${height}, with details open`, async () => {
      await person.resize(window, width, height);
      await seeAll();
      await window.run(() => {
        for (const button of document.querySelectorAll('.caret button[aria-expanded="false"]')) button.click();
        for (const odd of document.querySelectorAll("details.odd")) odd.open = true;
      });
      await window.until(() => window.run(() => !document.querySelector("main").innerText.includes("Reading the header.")), "details are still read", patience);
      await window.screenshot(`hostile-${width}x${height}`);
      assert.deepEqual(await window.run(broke), []);
    });
  }

  test("keeps it where all of them are selected", async () => {
    const boxes = await window.run(() => {
      const all = [...document.querySelectorAll("[data-row] input:not(:disabled):not(:checked)")];
      for (const box of all) box.click();
      return all.length;
    });
    assert.ok(boxes > 0, "nothing can be selected");
    await window.until(() => window.run(() => document.querySelector('section[aria-label="Selected models"]') !== null), "nothing is selected", patience);
    assert.deepEqual(await window.run(broke), []);
    await person.press(window, "button", /^Measure \d+ selected$/);
    await window.byRole("heading", "Measure", { wait: patience });
    await window.until(() => window.run(() => !/Making the plan/.test(document.querySelector("main").innerText)), "there is no plan", patience);
    const wide = await window.run(() => [document.documentElement, document.querySelector("main"), ...document.querySelectorAll(".scrolls")].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.className || each.tagName));
    assert.deepEqual(wide, []);
    await window.screenshot("hostile-measure");
  });

  test("has no accessible name that is empty", async () => {
    await person.go(window, "Models");
    await seeAll();
    const unnamed = await window.run(() => [...document.querySelectorAll("main input, main button")].filter((each) => !(each.getAttribute("aria-label") ?? each.labels?.[0]?.textContent ?? each.textContent).trim()).map((each) => each.outerHTML));
    assert.deepEqual(unnamed, []);
  });

  test("executes nothing", async () => {
    assert.equal(await window.run(() => globalThis.harmed ?? null), null);
    const foreign = await window.run(() => document.querySelectorAll("main img, main script, main iframe, main [onerror], main [onload]").length);
    assert.equal(foreign, 0);
  });
});
