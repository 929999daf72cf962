/** What tests of Measure share. */
import { render, screen, waitFor } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { tick } from "svelte";
import { expect } from "vitest";
import type { Fake } from "$lib/backend/fake";
import { plannable, type RunScript } from "$lib/backend/fake-runs";
import type { PlanRequest, RunEvent } from "$lib/backend/bindings";
import { createStates } from "$lib/state/context";
import Provide from "$lib/testing/Provide.svelte";
import { fakeOf, type Shown } from "$lib/testing/render";
import Measure from "./Measure.svelte";

export const Q4 = "SmolLM2 135M Instruct Q4_1";
export const Q8 = "SmolLM2 135M Instruct Q8_0";

/** Measure with models chosen, in a world whose runs go as the script says. */
export async function chosen(
  script: RunScript = "usual",
  ids = [Q4, Q8],
  world?: Fake,
): Promise<Shown> {
  const fake = world ?? fakeOf("usual");
  fake.world.script = script;
  const states = createStates(fake);
  await Promise.all([states.app.start(), states.models.refresh()]);
  states.models.choose(ids);
  const { container } = render(Provide, { states, view: Measure });
  await screen.findByRole("table");
  return { fake, states, container };
}

/** An answer that does not come. */
export const never = (): Promise<never> => new Promise(() => undefined);

export async function press(name: string | RegExp): Promise<void> {
  await userEvent.click(await screen.findByRole("button", { name }));
}

export async function untilEnd(): Promise<void> {
  // Not by its role: that looks at the whole table at every change of it.
  await waitFor(
    () => {
      const headline = document.querySelector('[data-testid="headline"]')?.textContent;
      expect(headline).toMatch(/^(Done|Stopped|The run)/);
    },
    { timeout: 10_000 },
  );
}

export function row(position: number): HTMLElement {
  const found = document.querySelector<HTMLElement>(`tr[data-position="${String(position)}"]`);
  if (!found) throw new Error(`there is no row ${String(position)}`);
  return found;
}

export function text(element: Element): string {
  return element.textContent.replace(/\s+/g, " ").trim();
}

/** A run whose events the test tells one by one. */
export function told(fake: Fake): (event: RunEvent) => Promise<void> {
  let say: (event: RunEvent) => void = () => undefined;
  fake.answer("start_run", () => null);
  fake.answer("follow_run", (_, __, tell) => {
    say = tell;
    return never();
  });
  return async (event) => {
    say(event);
    await tick();
  };
}

export const MODELS = [plannable(Q4, "SmolLM2 135M Instruct", "Q4_1")];
export const QUICK: PlanRequest = { models: [Q4], tests: { preset: "quick" }, threads: null };
