import { expect, it } from "vitest";
import {
  aboutOf,
  chartForms,
  numberForms,
  pictureSizes,
  pixelsOf,
  requestFor,
  usualSize,
} from "./export";

const shown = {
  figure: "users" as const,
  results: ["a"],
  ceiling: true,
  expected: true,
  breakdown: false,
  width: 580,
};

it("every form of the program is offered once", () => {
  const forms = [...chartForms, ...numberForms].map((each) => each.form);
  expect(forms).toEqual(["svg", "png", "pdf", "csv", "markdown", "json"]);
});

it("a picture of two pixels a px is twice the figure with its margins", () => {
  // (580 + 2 * 24) * 2 by (638 + 2 * 24) * 2
  expect(pixelsOf(usualSize, { width: 580, height: 638 })).toEqual({ width: 1256, height: 1372 });
});

it("a picture for a projector is 1920 pixels wide, with text 1.5 times as large", () => {
  const size = pictureSizes.find((each) => each.id === "projector");
  if (!size) throw new Error("it is there");
  const request = requestFor(shown, { form: "png", dark: false, size, path: "x", replace: false });
  expect(request.scale).toBe(1.5);
  expect(pixelsOf(size, { width: request.width, height: 600 }).width).toBe(1920);
});

it("numbers have no colours", () => {
  const asked = { dark: true, size: usualSize, path: "x", replace: false };
  expect(requestFor(shown, { form: "csv", ...asked }).dark).toBe(false);
  expect(requestFor(shown, { form: "svg", ...asked }).dark).toBe(true);
});

it("a form is asked for of the figure that is shown, and says what is in it", () => {
  const asked = { dark: false, size: usualSize, path: "x", replace: false };
  expect(requestFor(shown, { form: "json", ...asked }).figure).toBe("users");
  expect(aboutOf("csv", "speeds")).toContain("llama-bench");
  expect(aboutOf("csv", "users")).not.toContain("llama-bench");
});
