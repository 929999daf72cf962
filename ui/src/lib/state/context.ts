import { createContext } from "svelte";
import type { Backend } from "$lib/backend/backend";
import { AppState } from "./app.svelte";
import { ModelsState } from "./models.svelte";
import { ResultsState } from "./results.svelte";
import { RunState } from "./run.svelte";

/** What outlives a change of the view. */
export interface States {
  backend: Backend;
  app: AppState;
  models: ModelsState;
  run: RunState;
  results: ResultsState;
}

const [get, set] = createContext<States>();

/** The states, in a component below the one that provided them. */
export const states = get;

/** Gives the states to all components below. */
export const provideStates = set;

/** Makes the states, which listen to each other through the app's events. */
export function createStates(backend: Backend): States {
  const app = new AppState(backend);
  const models = new ModelsState(backend);
  const run = new RunState(backend);
  const results = new ResultsState(backend);
  app.onEvent((event) => {
    if (event.event === "models_changed") void models.refresh();
    if (event.event === "results_changed") {
      void results.refresh();
      // The speeds in the list of models are results too.
      void models.refresh();
    }
    if (event.event === "opened") {
      models.choose(event.rows);
      app.go("models");
    }
  });
  app.onStart((start) => {
    if (start.running) void run.follow();
    models.choose(start.opened);
  });
  return { backend, app, models, run, results };
}
