import { expect, it } from "vitest";
import { cautionWords } from "./cautions";

it("drift names both results and the change", () => {
  const said = cautionWords({ caution: "drift", one: "Q4_0", other: "Q8_0", relative: 0.12 });
  expect(said.sentence).toBe(
    "Between Q4_0 and Q8_0 the machine itself changed by 12\u00a0%, more than they differ.",
  );
  expect(said.advice).toBe("Measure both again in one run.");
});

it("settings are listed", () => {
  const words = (names: string[]) => cautionWords({ caution: "settings", names }).sentence;
  expect(words(["threads"])).toBe("These results differ in threads too.");
  expect(words(["threads", "cache type", "batch"])).toBe(
    "These results differ in threads, cache type and batch too.",
  );
});

it("one warning is said in full, several are named", () => {
  const swap = { warning: "swap_in_use", bytes: 1_200_000_000 } as const;
  const one = cautionWords({ caution: "warned", result: "Q4_1", warnings: [swap, swap] });
  expect(one.title).toBe("Q4_1: swap in use");
  expect(one.advice).not.toBe("");
  const two = cautionWords({
    caution: "warned",
    result: "Q4_1",
    warnings: [swap, { warning: "on_battery" }],
  });
  expect(two.title).toBe("Q4_1: 2 warnings");
  expect(two.sentence).toBe("Swap in use and on battery.");
});

it("a result that was not measured to its end is told from one with warnings", () => {
  const said = cautionWords({ caution: "warned", result: "F16", warnings: [] });
  expect(said.title).toBe("F16: not complete");
});

it("different machines are named as such", () => {
  expect(cautionWords({ caution: "machines" }).title).toBe("Different machines");
});
