// What a person does first in the installed window.

import * as person from "../webdriver/steps.mjs";

/** Measures the built-in model briefly; answers with the rows of the run's table. */
export async function measureBuiltIn(window) {
  await person.press(window, "button", "Measure the built-in model");
  await window.byRole("heading", "Measure", { wait: person.patience });
  await person.tests(window, { prompt: 64, answer: 16, repetitions: 1 });
  await person.start(window);
  await person.ended(window);
  return person.table(window);
}
