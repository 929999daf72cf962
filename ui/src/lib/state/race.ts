/** A race of settings as the page knows it: nothing but what its steps said. */
import type { BothSpeeds, Setting, TuneStage, TuneStep } from "$lib/backend/bindings";

/** A choice of settings in a race. */
export interface Racer {
  /** In which it differs from the usual ones. */
  settings: Setting[];
  /** Its speed as a share of the first one's; `null` = not measured yet. */
  share: number | null;
  isOut: boolean;
  /** Why it could not be measured. */
  reason: string | null;
}

/** How far a race of settings is. */
export interface Race {
  /** Speeds of the usual settings. */
  usual: BothSpeeds | null;
  combinations: number | null;
  /** Seconds that all combinations would take, and that this takes at most. */
  gridS: number | null;
  budgetS: number | null;
  /** What is turned; `null` = the last check, or nothing yet. */
  stage: TuneStage | null;
  /** Pairs of the last check; `null` = it has not come to that. */
  pairs: number | null;
  racers: Racer[];
  /** What is tested now. */
  testing: Setting[] | null;
}

const nothing: Race = {
  usual: null,
  combinations: null,
  gridS: null,
  budgetS: null,
  stage: null,
  pairs: null,
  racers: [],
  testing: null,
};

function racer(settings: Setting[]): Racer {
  return { settings, share: null, isOut: false, reason: null };
}

/** The race after one more step. */
export function raced(before: Race | null, step: TuneStep): Race {
  const race = before ?? nothing;
  const one = (settings: Setting[], change: Partial<Racer>): Race => {
    const is = (each: Racer): boolean => JSON.stringify(each.settings) === JSON.stringify(settings);
    const racers = race.racers.some(is) ? race.racers : [...race.racers, racer(settings)];
    return { ...race, racers: racers.map((each) => (is(each) ? { ...each, ...change } : each)) };
  };
  switch (step.tuning) {
    case "searching": {
      const { speeds, combinations, grid_s, budget_s } = step;
      return { ...race, usual: speeds, combinations, gridS: grid_s, budgetS: budget_s };
    }
    case "stage":
      return { ...race, stage: step.stage, racers: step.choices.map(racer), testing: null };
    case "testing":
      return { ...race, testing: step.choice };
    case "measured":
      return one(step.choice, { share: step.share });
    case "dropped":
      return one(step.choice, { isOut: true, share: step.share, reason: step.reason });
    case "best":
      return { ...race, testing: null };
    case "final":
      return {
        ...race,
        stage: null,
        pairs: step.pairs,
        racers: [racer([]), racer(step.choice)],
        testing: null,
      };
  }
}
