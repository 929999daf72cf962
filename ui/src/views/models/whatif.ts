import type { EstimateAt } from "$lib/backend/bindings";

/** The settings that one begins with: those of the list of models. */
export const usual: EstimateAt = {
  context: 4096,
  users: 1,
  cache: "f16",
  flash_attention: "auto",
};

/** Shortest and, where a model does not say, longest context of the slider. */
const SHORTEST = 512;
const LONGEST = 131_072;

/** The steps of the context: doubling, and what the model was trained for as the last. */
export function contextSteps(trained: number | null): number[] {
  const last = Math.max(trained ?? LONGEST, usual.context);
  const steps: number[] = [];
  for (let tokens = SHORTEST; tokens < last; tokens *= 2) steps.push(tokens);
  return [...steps, last];
}
