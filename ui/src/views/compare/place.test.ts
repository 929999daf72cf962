import { expect, it } from "vitest";
import { drawingFor } from "./place";

it("a figure is as large as the text", () => {
  expect(drawingFor({ width: 900, height: 700 }, 1.6)).toEqual({
    width: 900,
    height: 700,
    scale: 1.6,
  });
  expect(drawingFor({ width: 900, height: null }, 0.8).scale).toBe(0.8);
});

it("it is less large where it would not fit, but never smaller than it was drawn for", () => {
  // 420 px is the narrowest figure there is: 588 / 420 = 1.4
  expect(drawingFor({ width: 588, height: null }, 1.6).scale).toBe(1.4);
  expect(drawingFor({ width: 300, height: null }, 1.6).scale).toBe(1);
});

it("sizes are whole px, so that a hair of difference asks no new figure", () => {
  expect(drawingFor({ width: 580.4, height: 638.9 }, 1)).toEqual({
    width: 580,
    height: 638,
    scale: 1,
  });
});
