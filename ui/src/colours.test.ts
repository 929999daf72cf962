import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const css = readFileSync(`${import.meta.dirname}/app.css`, "utf8");

/** The colours of a theme; what the dark one does not name is as in the light one. */
function tokens(theme: "light" | "dark"): Map<string, string> {
  const blocks = theme === "light" ? [":root {"] : [":root {", ':root[data-theme="dark"] {'];
  return new Map(
    blocks.flatMap((start) => {
      const from = css.indexOf(start);
      const block = css.slice(from, css.indexOf("}", from));
      return [...block.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map(
        (found) => [found[1] ?? "", found[2] ?? ""] as const,
      );
    }),
  );
}

/** Relative luminance, WCAG 2.2. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

describe.each(["light", "dark"] as const)("the colours of the %s theme", (theme) => {
  const all = tokens(theme);
  const of = (name: string): string => {
    const colour = all.get(name);
    if (colour === undefined) throw new Error(`no colour --${name}`);
    return colour;
  };

  // Every surface that text of this kind stands on.
  it.each([
    ["ink", ["bg", "rail", "panel", "sel", "hover", "fill"]],
    ["ink-2", ["bg", "rail", "panel", "sel", "hover"]],
    ["ink-3", ["bg", "rail", "panel", "sel", "hover"]],
    ["prefill-ink", ["bg", "panel", "hover"]],
    ["decode-ink", ["bg", "panel", "hover"]],
    ["alert", ["bg", "rail", "panel", "hover"]],
    ["bg", ["ink", "ink-2"]],
    ["on-mark", ["prefill"]],
  ])("can be read: %s", (text, surfaces) => {
    for (const surface of surfaces)
      expect(contrast(of(text), of(surface)), `${text} on ${surface}`).toBeGreaterThanOrEqual(4.5);
  });

  it.each(["ctl", "prefill", "decode", "band-edge", "ceiling"])("can be seen: %s", (mark) => {
    expect(contrast(of(mark), of("bg"))).toBeGreaterThanOrEqual(3);
  });
});
