import type {
  CalibrationView,
  FigureView,
  ModelsView,
  ResultsView,
  ResumableRun,
  RunEvent,
  RunPage,
  Start,
} from "../bindings";
import type { RunScript } from "../fake-runs";

/** What the scripted program knows. Its handlers change it as the person acts. */
export interface World {
  /** Milliseconds before any answer. */
  delay: number;
  /** Everything that takes time takes so many times as long; 0 = at once. */
  pace: number;
  start: Start;
  models: ModelsView;
  results: ResultsView;
  pages: Record<string, RunPage>;
  /** A figure to show instead of the one that is made up from the results. */
  figure: FigureView | null;
  /** What happens in a run. */
  script: RunScript;
  /** Events after which a run holds for ever, to look at; `null` = it goes to its end. */
  hold: number | null;
  /** The run that goes on or went on last. */
  run: RunEvent[];
  /** GPUs that the engine computes on. */
  gpus: string[];
  /** A run with tests that are missing. */
  resumable: ResumableRun | null;
  /** What the pickers give. */
  picked: string | null;
  /** What the machine was measured to do. */
  calibration: CalibrationView | null;
}

/** A command that never answers. */
export function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}
