import { describe, expect, it } from "vitest";
import { toProblem } from "./backend";
import { commandNames } from "./bindings";
import { Fake, worlds } from "./fake";

describe("the scripted program", () => {
  it("answers every command that there is", () => {
    const fake = new Fake(worlds.usual());
    for (const name of commandNames) expect(fake.knows(name), name).toBe(true);
  });

  it("gives copies, as the window does: who changes an answer changes nothing", async () => {
    const fake = new Fake(worlds.usual());
    const models = await fake.call("models", {});
    models.groups.length = 0;
    expect((await fake.call("models", {})).groups).not.toHaveLength(0);
  });
});

describe("a problem", () => {
  it("is kept as it came", () => {
    const problem = { code: "busy", message: "Wait.", details: null };
    expect(toProblem(problem)).toEqual(problem);
  });

  it("is made of whatever else was thrown, with a sentence and what was said", () => {
    for (const thrown of [new Error("no"), "no"]) {
      const problem = toProblem(thrown);
      expect(problem.code).toBe("page");
      expect(problem.message).toMatch(/Try again/);
      expect(problem.details).toBe("no");
    }
  });
});
