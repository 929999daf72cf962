// What is shown, in the forms it can be saved in.

import type { ExportRequest, FigureName, Form } from "$lib/backend/bindings";

/** A form as the menu and the dialog name it. */
export interface FormWords {
  form: Form;
  name: string;
  ending: string;
  /** What is in it, one sentence. */
  about: string;
}

/** Forms of the figure. */
export const chartForms: readonly FormWords[] = [
  {
    form: "svg",
    name: "SVG",
    ending: "svg",
    about: "The figure as vector graphics, text as text.",
  },
  { form: "png", name: "PNG", ending: "png", about: "The figure as a picture." },
  { form: "pdf", name: "PDF", ending: "pdf", about: "The figure as a page with its fonts." },
];

/** Forms of the numbers. */
export const numberForms: readonly FormWords[] = [
  { form: "csv", name: "CSV", ending: "csv", about: "The numbers in llama-bench’s columns." },
  { form: "markdown", name: "Markdown", ending: "md", about: "The numbers as a Markdown table." },
  {
    form: "json",
    name: "JSON",
    ending: "json",
    about: "The numbers with every sample and the environment.",
  },
];

/** The words of a form. */
export function wordsOf(form: Form): FormWords {
  const found = [...chartForms, ...numberForms].find((each) => each.form === form);
  if (!found) throw new Error(`BUG: no words for the form ${form}`);
  return found;
}

/** What is in a form of a figure, one sentence. */
export function aboutOf(form: Form, figure: FigureName): string {
  const others = figure === "users" || figure === "first_token" || figure === "quantization";
  if (form === "csv" && others) return "The numbers as a table, a line for each sample.";
  return wordsOf(form).about;
}

/** Whether it is a form of the figure, which has colours. */
export function isChart(form: Form): boolean {
  return chartForms.some((each) => each.form === form);
}

/** How large a picture is made. */
export interface PictureSize {
  id: "1" | "2" | "3" | "projector";
  name: string;
  /** Width of the figure, px; `null` = as it is shown. */
  width: number | null;
  scale: number;
  pixels: number;
}

/** Margin around an exported figure, px before scaling. */
const MARGIN = 24;

/** The sizes of a picture. */
export const pictureSizes: readonly PictureSize[] = [
  { id: "1", name: "1×", width: null, scale: 1, pixels: 1 },
  { id: "2", name: "2×, for a page", width: null, scale: 1, pixels: 2 },
  { id: "3", name: "3×, for print", width: null, scale: 1, pixels: 3 },
  // 1280 px with its margins, at 1.5 pixels each: as wide as a projector's 1920.
  {
    id: "projector",
    name: "Projector, text 1.5×",
    width: 1280 - 2 * MARGIN * 1.5,
    scale: 1.5,
    pixels: 1.5,
  },
];

/** The size that the dialog opens with. */
export const usualSize: PictureSize = pictureSizes[1] as PictureSize;

/** Pixels of a picture of a figure that is drawn `width` by `height` px, scale included. */
export function pixelsOf(
  size: PictureSize,
  drawn: { width: number; height: number },
): { width: number; height: number } {
  const side = (px: number) => Math.round((px + 2 * MARGIN * size.scale) * size.pixels);
  return { width: side(drawn.width), height: side(drawn.height) };
}

/** What is shown now. */
export interface Shown {
  figure: FigureName;
  results: string[];
  ceiling: boolean;
  expected: boolean;
  breakdown: boolean;
  /** Width of the figure without the text size, px. */
  width: number;
}

/** The request for an export or a copy. */
export function requestFor(
  shown: Shown,
  chosen: { form: Form; dark: boolean; size: PictureSize; path: string; replace: boolean },
): ExportRequest {
  return {
    figure: shown.figure,
    results: shown.results,
    ceiling: shown.ceiling,
    expected: shown.expected,
    breakdown: shown.breakdown,
    form: chosen.form,
    dark: chosen.dark && isChart(chosen.form),
    width: chosen.size.width ?? shown.width,
    scale: chosen.size.scale,
    pixels: chosen.size.pixels,
    path: chosen.path,
    replace: chosen.replace,
  };
}
