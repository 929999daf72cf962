import { toProblem, type Backend } from "$lib/backend/backend";
import type {
  PlanRequest,
  PlanView,
  Problem,
  ResumableRun,
  RunEvent,
  StopHow,
} from "$lib/backend/bindings";
import { painted } from "./painted";
import { over, reduce, type Run } from "./run-steps";
import { SetupState } from "./setup.svelte";

/**
 * The run that goes on, or went on last, and what is chosen for the next.
 *
 * It changes on events alone: no clock ticks here. While a sample is timed it keeps still, and says
 * before that the page is painted.
 */
export class RunState {
  /** What its events told; `null` = there was none. */
  now = $state.raw<Run | null>(null);
  /** A run goes on or is being asked for. */
  running = $state(false);
  /** How the person asked it to stop. */
  stopping = $state<StopHow | null>(null);
  problem = $state.raw<Problem | null>(null);
  /** A run that was stopped or cut off; `null` = there is none. */
  resumable = $state.raw<ResumableRun | null>(null);
  readonly setup = new SetupState();

  #backend: Backend;
  /** The ticket that is to be painted now. */
  #ticket: number | null = null;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Its plan. */
  get plan(): PlanView | null {
    return this.now?.plan ?? null;
  }

  /** Tests that ended. */
  get ended(): number {
    return this.now ? over(this.now) : 0;
  }

  /** How far it is; `null` = none goes on. */
  get progress(): { done: number; of: number } | null {
    if (!this.running || !this.now) return null;
    return { done: over(this.now), of: this.now.tests.length };
  }

  /** Starts a run and follows it. */
  async start(request: PlanRequest): Promise<void> {
    await this.#begin(() => this.#backend.call("start_run", { request }));
  }

  async #begin(ask: () => Promise<null>): Promise<void> {
    if (this.running) return;
    this.running = true;
    this.now = null;
    this.problem = null;
    this.stopping = null;
    this.resumable = null;
    try {
      await ask();
    } catch (thrown) {
      this.problem = toProblem(thrown);
      this.running = false;
      return;
    }
    await this.follow();
  }

  /** Asks for a run with missing tests; where that fails there is none to go on with. */
  async lookForResumable(): Promise<void> {
    if (this.running) return;
    this.resumable = await this.#backend.call("resumable", {}).catch(() => null);
  }

  /** Goes on with it. */
  async resume(): Promise<void> {
    const { resumable } = this;
    if (resumable === null || this.running) return;
    await this.#begin(() => this.#backend.call("resume_run", { run: resumable.run }));
  }

  /** What was asked for; `null` where that is not known, as of a run that went on. */
  get request(): PlanRequest | null {
    return this.plan?.asked ?? null;
  }

  /** Measures the same again. */
  async again(): Promise<void> {
    if (this.request) await this.start(this.request);
  }

  /** Follows the run from its start to its end. */
  async follow(): Promise<void> {
    this.running = true;
    this.problem = null;
    try {
      await this.#backend.call("follow_run", {}, (event) => {
        this.#take(event);
      });
    } catch (thrown) {
      this.problem = toProblem(thrown);
    } finally {
      this.running = false;
      this.stopping = null;
      this.#ticket = null;
    }
  }

  #take(event: RunEvent): void {
    this.now = reduce(this.now, event);
    const { step } = event;
    const timing = step.step === "doing" && step.what.doing === "timing" ? step.what : null;
    this.#ticket = timing?.ticket ?? null;
    if (timing) void this.#paint(timing.ticket);
  }

  async #paint(ticket: number): Promise<void> {
    await painted();
    // Told from its start, a run names many tickets at once: only the newest is waited for.
    if (this.#ticket !== ticket) return;
    // The run may have ended meanwhile, and then nobody waits.
    await this.#backend.call("painted", { ticket }).catch(() => undefined);
  }

  /** Stops it; a failure to do so is thrown. */
  async stop(how: StopHow): Promise<void> {
    const before = this.stopping;
    this.stopping = how;
    try {
      await this.#backend.call("stop_run", { how });
    } catch (thrown) {
      this.stopping = before;
      throw thrown;
    }
  }

  /** Takes a run that is over out of sight, for the next. */
  dismiss(): void {
    if (this.running) return;
    this.now = null;
    this.problem = null;
  }
}
