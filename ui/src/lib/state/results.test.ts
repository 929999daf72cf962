import { expect, it } from "vitest";
import { fakeOf } from "$lib/testing/render";
import { ResultsState } from "./results.svelte";

async function state() {
  const fake = fakeOf("usual");
  const results = new ResultsState(fake);
  await results.refresh();
  return { fake, results };
}

it("without a choice the newest results of the last model are compared", async () => {
  const { results } = await state();
  const names = [...results.chosen].map((id) => id.split(" ").at(-1));
  expect(names.sort()).toEqual(["F16", "Q4_0", "Q4_1", "Q8_0"]);
});

it("newer results take the place of what was not chosen by hand", async () => {
  const { fake, results } = await state();
  const [first] = fake.world.results.groups;
  const newest = first?.rows[0];
  if (!newest) throw new Error("the world has results");
  first.rows.unshift({ ...newest, id: "newer" });
  await results.refresh();
  expect(results.chosen.has("newer")).toBe(true);
  expect(results.chosen.has(newest.id)).toBe(false);
});

it("what the person chose stays when the list is another one", async () => {
  const { results } = await state();
  const [one = ""] = results.chosen;
  results.choose([one]);
  await results.refresh();
  expect([...results.chosen]).toEqual([one]);
});

it("leaving out the explained result leaves the explanation to the first", async () => {
  const { results } = await state();
  const [one = ""] = results.chosen;
  results.explain(one);
  results.toggle(one, false);
  expect(results.focus).toBeNull();
});

it("a failure is kept, and the list that is there stays", async () => {
  const { fake, results } = await state();
  fake.refuse("results");
  await results.refresh();
  expect(results.problem?.code).toBe("refused");
  expect(results.view).not.toBeNull();
});

it("each figure keeps what was chosen for it", async () => {
  const { results } = await state();
  const speeds = [...results.chosen];
  results.show("context");
  const [one = ""] = results.chosen;
  expect(one).not.toBe("");
  expect(speeds).not.toContain(one);
  results.toggle(one, false);
  const left = [...results.chosen];
  results.show("speeds");
  expect([...results.chosen].sort()).toEqual([...speeds].sort());
  results.show("context");
  expect([...results.chosen]).toEqual(left.length > 0 ? left : [one]);
  results.choose(speeds.slice(0, 1));
  expect(results.figure).toBe("speeds");
});
