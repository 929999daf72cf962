import { describe, expect, it } from "vitest";
import four from "$lib/backend/fixtures/four.json";
import hostile from "$lib/backend/fixtures/hostile.json";
import { DrawingRefused, importDrawing } from "./drawing";

const around = (inner: string, more = "") =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"${more}>${inner}</svg>`;

it("takes a figure of the app as it is", () => {
  const drawing = importDrawing(four.svg);
  expect(drawing.localName).toBe("svg");
  expect(drawing.querySelectorAll("rect").length).toBeGreaterThan(8);
  expect(drawing.querySelector('[fill="var(--prefill)"]')).not.toBeNull();
});

it("takes hostile names for what they are: names", () => {
  const drawing = importDrawing(hostile.svg);
  expect(drawing.querySelector("img, script")).toBeNull();
  expect(drawing.textContent).toContain("<img");
});

describe("refuses", () => {
  it.each([
    ["a script", around("<script>alert(1)</script>")],
    ["foreign content", around("<foreignObject><p/></foreignObject>")],
    ["a style sheet", around("<style>*{}</style>")],
    ["a link", around('<a href="https://example.com"><text>x</text></a>')],
    ["a picture", around('<image href="x"/>')],
    ["a use", around('<use href="#x"/>')],
    ["an animation", around('<rect><set attributeName="x" to="1"/></rect>')],
    ["a handler", around('<rect onclick="alert(1)"/>')],
    ["a handler on the whole", around("", ' onload="alert(1)"')],
    ["a style", around('<rect style="fill:red"/>')],
    ["a reference", around('<rect fill="url(https://example.com/x)"/>')],
    ["markup of another kind", around('<p xmlns="http://www.w3.org/1999/xhtml">x</p>')],
    ["a page", "<html><body/></html>"],
    ["what cannot be read", "<svg"],
    ["nothing", ""],
  ])("%s", (_, svg) => {
    expect(() => importDrawing(svg)).toThrow(DrawingRefused);
  });
});
