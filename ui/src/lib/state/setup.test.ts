import { describe, expect, test } from "vitest";
import { parseCount, parseList, SetupState } from "./setup.svelte";

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
