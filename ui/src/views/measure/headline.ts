/** What the head of a run says, in words. */
import type { PlanView, StopHow } from "$lib/backend/bindings";
import { about, count, duration, whole } from "$lib/format";
import { spentS, type Run, type TestState } from "$lib/state/run-steps";
import { testInSentence } from "$lib/words/doing";
import { figureWithUnit, oftenWords } from "$lib/words/measuring";

/** The one big line. */
export function headline(run: Run, stopping: StopHow | null): string {
  const spent = spentS(run);
  if (run.ended) {
    const after = spent === null ? "" : duration(spent);
    if (run.ended.end.end === "complete") return `Done in ${after}`;
    if (run.ended.end.end === "failed") return "The run could not go on";
    return spent === null ? "Stopped before it began" : `Stopped after ${after}`;
  }
  if (stopping === "now") return "Stopping";
  if (run.phase === "waiting") return "Waiting for another measurement";
  if (run.phase === "asked") return "Starting";
  if (run.leftS === null) return "Time left is not known yet";
  return run.leftS < 0.5 ? "Almost done" : `${about(run.leftS)} left`;
}

/** The line below it. */
export function progressLine(run: Run): string {
  const all = run.tests.length;
  const failed = run.tests.filter(({ status }) => status === "failed").length;
  const done = run.tests.filter(({ status }) => status === "done").length + failed;
  const spent = spentS(run);
  const sentences = [
    `${whole(done)} of ${count(all, "test")} done` +
      (failed > 0 ? `, ${whole(failed)} of them failed` : "") +
      (spent !== null && !run.ended ? `, ${duration(spent)} spent` : ""),
  ];
  if (run.plan.seconds !== null) {
    sentences.push(`Expected before the start: ${duration(run.plan.seconds)}`);
  }
  return `${sentences.join(". ")}.`;
}

/** A plan beside the title: `3 models, 3 tests each, 5 samples a test`. */
export function planLine(plan: PlanView): string {
  const models = new Set(plan.rows.map((row) => row.model)).size;
  if (models === 0) return "";
  const each = plan.rows.length / models;
  const tests = Number.isInteger(each)
    ? `${count(each, "test")}${models === 1 ? "" : " each"}`
    : `${count(plan.rows.length, "test")} in all`;
  if (plan.rows.every(({ what }) => what.kind === "tune"))
    return `${count(models, "model")}, raced`;
  return `${count(models, "model")}, ${tests}, ${oftenWords(plan)}`;
}

/** What is read out when a test has ended. */
export function announcement(run: Run): string {
  const over = run.tests.filter(({ status }) => ["done", "failed", "cancelled"].includes(status));
  const last = over.at(-1);
  if (!last) return "";
  const { name, quantization } = last.planned;
  const test = `${name} ${quantization}, ${testInSentence(last.planned)}`;
  return `${test}: ${result(last)}. ${progressLine(run)}`;
}

function result(test: TestState): string {
  if (test.status === "failed") return "failed";
  if (test.status === "cancelled") return "cancelled";
  return figureWithUnit(test.mean, test.planned.unit);
}
