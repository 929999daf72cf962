import { describe, expect, test } from "vitest";
import { parseCount, parseList, presetGroups, SetupState } from "./setup.svelte";

describe("a list of lengths", () => {
  test("is read with commas, semicolons and spaces between", () => {
    expect(parseList("512, 2048", 1).value).toEqual([512, 2048]);
    expect(parseList(" 512;2048  4096, ", 1).value).toEqual([512, 2048, 4096]);
  });

  test("keeps each length once", () => {
    expect(parseList("512, 512, 128", 1).value).toEqual([512, 128]);
  });

  test("is empty where nothing is typed", () => {
    expect(parseList(" ", 1).value).toEqual([]);
  });

  test.each(["4k", "-1", "1.5", "0", "1e3", "0x10", "99999999"])("does not take %s", (typed) => {
    expect(parseList(typed, 1).wrong).toContain(`"${typed}"`);
  });

  test("takes 0 as a depth", () => {
    expect(parseList("0, 4096", 0).value).toEqual([0, 4096]);
  });

  test("names what is wrong, shortened where it is long", () => {
    expect(parseList("x".repeat(300), 1).wrong?.length).toBeLessThan(160);
  });
});

describe("a count", () => {
  test("is read within its bounds", () => {
    expect(parseCount(" 5 ", 1, 1000).value).toBe(5);
    expect(parseCount("1000", 1, 1000).value).toBe(1000);
  });

  test.each(["", "0", "1001", "five", "5.5"])("does not take %j", (typed) => {
    expect(parseCount(typed, 1, 1000).wrong).toBe("Write a whole number from 1 to 1000.");
  });
});

test("threads that are not typed are those of the settings", () => {
  expect(new SetupState().threadsUpTo(4)).toEqual({ value: null, wrong: null });
});

test("an empty depth is an empty cache", () => {
  const setup = new SetupState();
  setup.preset = "own";
  setup.depth = "";
  expect(setup.tests.value).toMatchObject({ depth: [0] });
});

test("every preset can be started as it is filled in at first", () => {
  const setup = new SetupState();
  for (const preset of presetGroups.flatMap(({ presets }) => presets)) {
    expect(setup.testsOf(preset)).toMatchObject({ value: { preset }, wrong: null });
  }
});

test("a deepest depth that is not typed is as deep as may be", () => {
  const setup = new SetupState();
  expect(setup.testsOf("context_curve").value).toEqual({ preset: "context_curve", deepest: null });
  setup.deepest = "4096";
  expect(setup.testsOf("context_curve").value).toEqual({ preset: "context_curve", deepest: 4096 });
});

test("settings side by side are read, and one that cannot be stops the whole", () => {
  const setup = new SetupState();
  setup.sweep.threads = "1, 2";
  setup.sweep.repack = ["on", "off"];
  expect(setup.testsOf("own").value).toMatchObject({
    sweep: { threads: [1, 2], repack: [true, false], cache: [] },
  });
  expect(setup.sweep.count).toBe(2);
  setup.sweep.batch = "many";
  expect(setup.testsOf("own").wrong).toContain("cannot be read");
});

test.each(["0", "100", "two", "-1"])("a mean is not known to %s %%", (typed) => {
  const setup = new SetupState();
  setup.until = typed;
  expect(setup.fields.until.wrong).toContain("between 0 and 100");
  expect(setup.testsOf("own").value).toBeNull();
});

test("a target of half a percent is one", () => {
  const setup = new SetupState();
  setup.until = "0.5";
  expect(setup.testsOf("own").value).toMatchObject({ until: 0.5 });
});

test("a tail that changes leaves something of the prompt", () => {
  const setup = new SetupState();
  setup.cachePrompt = "128";
  expect(setup.fields.changed.wrong).toBe("Write a whole number from 1 to 127.");
});
