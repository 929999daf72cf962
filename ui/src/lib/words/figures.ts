import type { FigureName } from "$lib/backend/bindings";

/** A figure in words. */
export interface FigureWords {
  /** As it is chosen. */
  name: string;
  /** What to measure for it, where nothing is. */
  missing: string;
}

const words: Record<FigureName, FigureWords> = {
  speeds: {
    name: "Speeds",
    missing: "Measure a model with the preset Quick.",
  },
  context: {
    name: "Context",
    missing: "Measure a model with the preset Context curve: both speeds at growing depth.",
  },
  users: {
    name: "Users",
    missing: "Measure a model with the preset Users: 1, 2, 4 and more of them at once.",
  },
  first_token: {
    name: "First token",
    missing:
      "Measure a model with the presets First token and Prefix cache: what a wait consists of, and what a cache saves.",
  },
  quantization: {
    name: "Quantization",
    missing: "Measure one model in two quantizations, with the preset Quantization face-off.",
  },
  sustained: {
    name: "Sustained",
    missing: "Measure a model with the preset Sustained: what the machine holds over time.",
  },
  roofline: {
    name: "Roofline",
    missing: "Calibrate this machine, and measure a model.",
  },
  breakdown: {
    name: "Breakdown",
    missing: "Calibrate this machine, and measure a model.",
  },
  estimate: {
    name: "Estimate",
    missing: "Calibrate this machine, and measure a model.",
  },
};

/** The words of a figure. */
export function figureWords(figure: FigureName): FigureWords {
  return words[figure];
}
