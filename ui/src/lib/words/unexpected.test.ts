import { expect, it } from "vitest";
import type { Unexpected } from "$lib/backend/bindings";
import { unexpectedWords } from "./unexpected";

it("only where calibrating helps it is offered", () => {
  const all: Unexpected[] = [
    { unexpected: "not_calibrated" },
    { unexpected: "other_calibration", sentence: "Not calibrated for 4 threads." },
    { unexpected: "other_machine", name: null },
    { unexpected: "other_backend", ran: "CUDA" },
    { unexpected: "file_gone", path: "/models/a.gguf" },
    { unexpected: "file_unknown" },
    { unexpected: "not_estimated", why: ["It names no architecture."] },
  ];
  expect(all.map((why) => unexpectedWords(why).calibrate)).toEqual([
    true,
    false,
    false,
    false,
    false,
    false,
    false,
  ]);
  // Each is whole sentences.
  for (const why of all) expect(unexpectedWords(why).sentence).toMatch(/^[A-Z].*\.$/);
});

it("says what it knows of the reason", () => {
  const said = (why: Unexpected): string => unexpectedWords(why).sentence;
  expect(said({ unexpected: "other_machine", name: "Jetson Orin Nano" })).toContain(
    "comes from Jetson Orin Nano",
  );
  expect(said({ unexpected: "other_machine", name: null })).toContain("comes from another machine");
  expect(said({ unexpected: "file_gone", path: "/models/a.gguf" })).toContain("/models/a.gguf");
  expect(said({ unexpected: "other_backend", ran: "CUDA" })).toContain("CUDA");
  expect(said({ unexpected: "not_estimated", why: ["It names no architecture."] })).toContain(
    "It names no architecture.",
  );
});
