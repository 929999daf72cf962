import type { PlanView, RunEvent, RunStep, StopHow } from "../bindings";
import { ended, resultsOf, sampled } from "../fake-runs";

/** How a scripted run is played. */
export interface Playing {
  /** Seconds of play for a second of the script; 0 = each event as soon as may be. */
  pace?: number;
  /** Events after which it holds for ever, to look at. */
  hold?: number;
  /** Called when it has ended. */
  ended?: (results: string[]) => void;
}

/** Longest wait for `painted`, as the app waits, milliseconds. */
const PAINT_MS = 500;

/** A run that is played: it waits for `painted` before a sample, and can be stopped. */
export class ScriptedRun {
  readonly #events: RunEvent[];
  readonly #plan: PlanView;
  readonly #playing: Playing;
  readonly #told: RunEvent[] = [];
  readonly #listeners = new Set<{ tell: (event: RunEvent) => void; done: () => void }>();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #awaited: number | null = null;
  #stop: StopHow | null = null;
  #over = false;

  constructor(plan: PlanView, events: RunEvent[], playing: Playing = {}) {
    this.#plan = plan;
    this.#events = events;
    this.#playing = playing;
    this.#next();
  }

  /** It goes on. */
  get going(): boolean {
    return !this.#over;
  }

  /** What was told so far. */
  get told(): readonly RunEvent[] {
    return this.#told;
  }

  /** Tells everything from the start, and ends with the run. */
  follow(tell: (event: RunEvent) => void): Promise<void> {
    for (const event of this.#told) {
      tell(event);
    }
    if (this.#over) {
      return Promise.resolve();
    }
    return new Promise((done) => {
      this.#listeners.add({ tell, done });
    });
  }

  stop(how: StopHow): void {
    if (this.#over) {
      return;
    }
    this.#stop = how;
    if (how === "now" || this.#running() === null) {
      this.#endNow();
    }
  }

  painted(ticket: number): void {
    if (this.#awaited === ticket) {
      this.#awaited = null;
      this.#next();
    }
  }

  /** Ends it without a word, for a test that is over. */
  drop(): void {
    clearTimeout(this.#timer);
    this.#over = true;
  }

  #next(): void {
    clearTimeout(this.#timer);
    const index = this.#told.length;
    const event = this.#events[index];
    if (event === undefined || this.#over || index === this.#playing.hold) {
      return;
    }
    const before = this.#told.at(-1)?.at_s ?? 0;
    const pace = this.#playing.pace ?? 1;
    this.#timer = setTimeout(
      () => {
        this.#tell(event);
      },
      Math.max(0, (event.at_s - before) * pace * 1000),
    );
  }

  #tell(event: RunEvent): void {
    const { step } = event;
    this.#told.push(event);
    for (const listener of this.#listeners) {
      listener.tell(event);
    }
    if (step.step === "ended") {
      this.#finish(step.results);
    } else if (step.step === "test_ended" && this.#stop === "after_test") {
      this.#endNow();
    } else if (step.step === "doing" && step.what.doing === "timing") {
      const { ticket } = step.what;
      this.#awaited = ticket;
      if (this.#told.length !== this.#playing.hold) {
        this.#timer = setTimeout(() => {
          this.painted(ticket);
        }, PAINT_MS);
      }
    } else {
      this.#next();
    }
  }

  #finish(results: string[]): void {
    this.#over = true;
    clearTimeout(this.#timer);
    for (const listener of this.#listeners) {
      listener.done();
    }
    this.#listeners.clear();
    this.#playing.ended?.(results);
  }

  /** The test that has begun and not ended. */
  #running(): number | null {
    let running: number | null = null;
    for (const { step } of this.#told) {
      if (step.step === "test_started") {
        running = step.position;
      } else if (step.step === "test_ended") {
        running = null;
      }
    }
    return running;
  }

  #endNow(): void {
    clearTimeout(this.#timer);
    this.#awaited = null;
    const at_s = this.#told.at(-1)?.at_s ?? 0;
    const say = (step: RunStep): void => {
      this.#tell({ at_s, left_s: 0, step });
    };
    const running = this.#running();
    const begun = this.#told.some(({ step }) => step.step === "started");
    this.#stop = null;
    if (running !== null) {
      const made = sampled();
      for (const { step } of this.#told) {
        if (step.step === "sample" && step.position === running) {
          made.values.push(step.value);
          made.found = step.found;
        }
      }
      say(ended(running, 1, { end: "cancelled" }, made));
    }
    const over = new Set(
      this.#told.flatMap(({ step }) => (step.step === "test_ended" ? [step.position] : [])),
    );
    for (const row of this.#plan.rows.filter(({ position }) => begun && !over.has(position))) {
      const reason = "Not tried, since the run was stopped before.";
      say({ step: "test_started", position: row.position, test: `test-${String(row.position)}` });
      say(ended(row.position, 0, { end: "skipped", reason }, sampled()));
    }
    say({
      step: "ended",
      end: { end: "stopped" },
      results: resultsOf(this.#told, this.#plan),
    });
  }
}
