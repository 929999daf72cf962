import { toProblem, type Backend } from "$lib/backend/backend";
import type {
  AppEvent,
  Job,
  MachineCard,
  Problem,
  Settings,
  SettingsChange,
  Start,
} from "$lib/backend/bindings";

/** The views, in the order of the rail. */
export const viewNames = ["models", "measure", "compare", "settings"] as const;

/** One of the views. */
export type ViewName = (typeof viewNames)[number];

/** A quiet line above the content. */
export interface Notice {
  id: number;
  message: string;
  failed: boolean;
}

/** The address behind `#`: the view, and what in it. */
function readAddress(hash: string): { view: ViewName; rest: string } {
  const [name = "", ...rest] = hash.replace(/^#\/?/, "").split("/");
  const view = viewNames.find((each) => each === name) ?? "models";
  return { view, rest: rest.map(decodeURIComponent).join("/") };
}

/** What a job is to give. */
function aimOf({ kind }: Job): "file" | "twin" | "calibrate" {
  return kind === "twin" || kind === "calibrate" ? kind : "file";
}

/** Whether a job has not ended. */
export function isAtWork(job: Job | undefined): boolean {
  return job?.state.state === "waiting" || job?.state.state === "running";
}

/** The frame: machine, settings, notices, jobs, and which view is open. */
export class AppState {
  /** `start` has answered. */
  started = $state(false);
  /** `start` failed. */
  problem = $state<Problem | null>(null);
  version = $state("");
  machine = $state.raw<MachineCard | null>(null);
  settings = $state.raw<Settings | null>(null);
  notices = $state<Notice[]>([]);
  jobs = $state.raw<Job[]>([]);
  /** Twins that were tried to their end: what is known of their models is another. */
  twinsTried = $state(0);
  /** Files are held over the window. */
  dropping = $state(false);
  view = $state<ViewName>("models");
  /** What in the view is meant: the part of the address behind its name. */
  rest = $state("");

  #backend: Backend;
  #numbered = 0;
  #listeners: ((event: AppEvent) => void)[] = [];
  #starters: ((start: Start) => void)[] = [];

  constructor(backend: Backend) {
    this.#backend = backend;
    this.readAddress();
  }

  /** Tells `listener` of everything that happens. */
  onEvent(listener: (event: AppEvent) => void): void {
    this.#listeners.push(listener);
  }

  /** Tells `starter` what `start` answered. */
  onStart(starter: (start: Start) => void): void {
    this.#starters.push(starter);
  }

  /** Asks what the first view needs, and follows what happens. */
  async start(): Promise<void> {
    void this.#follow();
    try {
      const start = await this.#backend.call("start", {});
      this.version = start.version;
      this.machine = start.machine;
      this.settings = start.settings;
      this.jobs = start.jobs;
      for (const message of start.notices) this.notice(message);
      this.started = true;
      this.problem = null;
      for (const starter of this.#starters) starter(start);
    } catch (thrown) {
      this.problem = toProblem(thrown);
    }
  }

  async #follow(): Promise<void> {
    try {
      await this.#backend.call("follow_app", {}, (event) => {
        this.#take(event);
      });
    } catch (thrown) {
      this.problem ??= toProblem(thrown);
    }
  }

  #take(event: AppEvent): void {
    if (event.event === "job") this.takeJob(event.job);
    if (event.event === "machine") this.machine = event.machine;
    if (event.event === "drop_hover") this.dropping = event.over;
    if (event.event === "opened") this.dropping = false;
    if (event.event === "notice") this.notice(event.message, event.failed);
    for (const listener of this.#listeners) listener(event);
  }

  /** Keeps a job as it is now. One that ended well leaves the list, its row says the rest. */
  takeJob(job: Job): void {
    const others = this.jobs.filter(
      (each) => each.id !== job.id && (each.row !== job.row || aimOf(each) !== aimOf(job)),
    );
    const done = job.state.state === "done";
    if (done && this.view !== "models" && aimOf(job) === "file")
      this.notice(`${job.title} is there. Select it in Models to measure it.`);
    if (done && job.kind === "twin") this.twinsTried += 1;
    this.jobs = done || job.state.state === "cancelled" ? others : [...others, job];
  }

  /** The job that makes a row. */
  jobOf(row: string): Job | undefined {
    return this.jobs.find((job) => job.row === row && aimOf(job) === "file");
  }

  /** The job that tries a twin of a row or header. */
  twinOf(of: string): Job | undefined {
    return this.jobs.find((job) => job.row === of && job.kind === "twin");
  }

  /** The job that calibrates this machine. */
  get calibration(): Job | undefined {
    return this.jobs.find((job) => job.kind === "calibrate");
  }

  /** Takes a job that failed out of sight. */
  dismissJob(id: string): void {
    this.jobs = this.jobs.filter((job) => job.id !== id);
  }

  /** Says a sentence where the person is. */
  notice(message: string, failed = false): void {
    if (this.notices.some((notice) => notice.message === message)) return;
    this.#numbered += 1;
    this.notices.push({ id: this.#numbered, message, failed });
  }

  /** Says what went wrong where the person is. */
  fail(thrown: unknown): void {
    this.notice(toProblem(thrown).message, true);
  }

  /** Takes a notice away. */
  dismiss(id: number): void {
    this.notices = this.notices.filter((notice) => notice.id !== id);
  }

  /** Changes settings; they show at once and go back where the program refuses. */
  async change(change: SettingsChange): Promise<void> {
    const before = this.settings;
    if (before) {
      const threads = change.threads === undefined ? before.threads : change.threads || null;
      this.settings = { ...before, ...change, threads };
    }
    try {
      this.settings = await this.#backend.call("change_settings", { change });
    } catch (thrown) {
      this.settings = before;
      this.fail(thrown);
    }
  }

  /** Opens a view. */
  go(view: ViewName, rest = ""): void {
    const address = rest ? `#${view}/${encodeURIComponent(rest)}` : `#${view}`;
    if (location.hash !== address) location.hash = address;
    this.view = view;
    this.rest = rest;
  }

  /** Takes the view from the address. */
  readAddress(): void {
    const { view, rest } = readAddress(location.hash);
    this.view = view;
    this.rest = rest;
  }
}
