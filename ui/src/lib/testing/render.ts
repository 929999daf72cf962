import { render } from "@testing-library/svelte";
import type { Component } from "svelte";
import { Fake, worlds, type World } from "$lib/backend/fake";
import { createStates, type States } from "$lib/state/context";
import Provide from "./Provide.svelte";

/** What a test of a view has in its hands. */
export interface Shown {
  fake: Fake;
  states: States;
  container: HTMLElement;
}

/** A scripted program that answers at once. */
export function fakeOf(world: World | keyof typeof worlds = "usual"): Fake {
  const fake = new Fake(typeof world === "string" ? worlds[world]() : world);
  fake.world.delay = 0;
  fake.pace = 0;
  return fake;
}

/** Shows a view as it stands in the app, in a world. `start` and the list of models are asked for. */
export async function show(
  view: Component,
  world: World | keyof typeof worlds | Fake = "usual",
): Promise<Shown> {
  const fake = world instanceof Fake ? world : fakeOf(world);
  const states = createStates(fake);
  await Promise.all([states.app.start(), states.models.refresh()]);
  const { container } = render(Provide, { states, view });
  return { fake, states, container };
}
