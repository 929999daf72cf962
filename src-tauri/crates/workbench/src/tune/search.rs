//! The search: the defaults, stage by stage around the best so far, and the last check.

use tokio::time::Instant;
use twospeed_engine::TestSpec;
use twospeed_measure::plan::Order;
use twospeed_measure::tune::{
    Choice, Costs, Decision, Fate, FinalPlan, Grid, Race, Searched, Space, Stage, Target,
    TuneProgress, Verdict, thread_counts,
};
use twospeed_measure::{Bench, Lease, Recorder};

use super::TuneRequest;
use super::rounds::{Found, Rounds};
use crate::Problem;

/// Rounds of a stage before anything is dropped, and then again.
const ROUNDS: u32 = 3;

/// How often a stage goes on for those that cannot be told apart.
const MOST_HEATS: u32 = 3;

/// How often the tests of a stage may be halved to find time for it.
const MOST_HALVINGS: u32 = 4;

/// A change of engine or model may take this many times what is measured in a round; where it takes
/// more, a choice is measured to its end before the next.
const DEAR_CHANGE: f64 = 2.0;

/// The part of the time left that the last check is planned into: it must not end early.
const SAFE: f64 = 0.9;

/// A file that lay in the page cache to this share was not read from disk when it was loaded.
const WARM: f32 = 0.95;

pub(super) struct Search<'a> {
    request: &'a TuneRequest<'a>,
    bench: Bench<'a>,
    defaults: &'a Choice,
    progress: &'a mut (dyn FnMut(TuneProgress) + Send),
    began: Instant,
    searched: Option<Searched>,
    untried: Vec<Stage>,
}

/// What the defaults' measurement says about the rest.
struct Known {
    costs: Costs,
    space: Space,
    budget: f64,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        request: &'a TuneRequest<'a>,
        recorder: &'a dyn Recorder,
        lease: &'a Lease,
        defaults: &'a Choice,
        progress: &'a mut (dyn FnMut(TuneProgress) + Send),
    ) -> Self {
        Self {
            request,
            bench: Bench {
                engine: request.engine,
                recorder,
                machine: request.machine,
                app_version: env!("CARGO_PKG_VERSION"),
                needs: request.needs,
                lease,
            },
            defaults,
            progress,
            began: Instant::now(),
            searched: None,
            untried: Vec::new(),
        }
    }

    /// The defaults' speeds and the time there was, once that is known.
    pub(super) fn searched(&self) -> Option<Searched> {
        self.searched.clone()
    }

    /// Stages whose time was up before their choices were measured.
    pub(super) fn untried(&self) -> Vec<Stage> {
        self.untried.clone()
    }

    /// Seconds since the beginning.
    pub(super) fn elapsed(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    pub(super) async fn run(&mut self) -> Result<Decision, Problem> {
        let Some(known) = self.measure_defaults().await? else {
            return Ok(Decision::Stopped);
        };
        let mut best = self.defaults.clone();
        for stage in Stage::ALL {
            if self.request.stop.is_asked() {
                return Ok(Decision::Stopped);
            }
            best = self.stage(&known, stage, best).await?;
        }
        if self.request.stop.is_asked() {
            return Ok(Decision::Stopped);
        }
        if best == *self.defaults {
            return Ok(Decision::Defaults {
                nearest: None,
                verdict: None,
            });
        }
        self.last_check(&known, best).await
    }

    /// Measures the target's tests once with the defaults; `None` when that was stopped.
    async fn measure_defaults(&mut self) -> Result<Option<Known>, Problem> {
        let target = self.request.target;
        let tests = target.tests();
        let found = self
            .measure(&Rounds {
                choices: std::slice::from_ref(self.defaults),
                tests: &tests,
                rounds: 1,
                order: Order::OneByOne,
                paired: false,
                limit: None,
            })
            .await?;
        let found = found.into_iter().next().unwrap_or_default();
        if let Some(message) = found.failure {
            return Err(Problem::new("not_measured", message));
        }
        let (Some(hello), Some(speeds)) = (&found.worker, found.rounds.first().copied()) else {
            return Ok(None);
        };
        let set_aside = self
            .bench
            .recorder
            .variants_set_aside(self.request.machine, &hello.engine)
            .await
            .map_err(|error| Problem::new("not_stored", error))?;
        let flash = found
            .placement
            .as_ref()
            .and_then(|placement| placement.flash_attention);
        let space = Space::new(
            target,
            self.defaults,
            (&hello.variant.name, &hello.variants, &set_aside),
            &thread_counts(self.request.topology),
            flash,
        );
        let section = |test: Option<TestSpec>, speed: Option<f64>| match (test, speed) {
            (Some(test), Some(speed)) => test.tokens() as f64 / speed,
            _ => 0.0,
        };
        let whole_prefill = section(target.prefill(), speeds.prefill);
        let whole_decode = section(target.decode(), speeds.decode);
        let measured = 2.0 * whole_prefill + whole_decode;
        let warm = found
            .loaded
            .as_ref()
            .filter(|loaded| loaded.resident_before.is_some_and(|share| share >= WARM));
        let costs = Costs {
            target,
            load: warm.map_or(0.0, |loaded| loaded.load_ns as f64 / 1e9),
            change: (self.elapsed() - measured).max(0.0),
            whole_prefill,
            whole_decode,
        };
        let grid = Grid::of(&space, target);
        let grid_seconds = grid.seconds(&costs);
        let budget = grid_seconds * self.request.share.0;
        let searched = Searched {
            variant: hello.variant.name.clone(),
            speeds,
            space: space.clone(),
            grid,
            grid_seconds,
            budget_seconds: budget,
        };
        (self.progress)(TuneProgress::Searching(searched.clone()));
        self.searched = Some(searched);
        Ok(Some(Known {
            costs,
            space,
            budget,
        }))
    }

    /// Races the choices of a stage; the best comes back, which may be what stood before.
    async fn stage(
        &mut self,
        known: &Known,
        stage: Stage,
        best: Choice,
    ) -> Result<Choice, Problem> {
        let choices = known.space.choices(stage, &best);
        if choices.len() < 2 {
            return Ok(best);
        }
        (self.progress)(TuneProgress::Stage {
            stage,
            choices: choices.clone(),
        });
        let until = known.costs.racing(known.budget);
        let tests = self.screening(known, stage, &choices, until);
        let mut race = Race::new(choices.len());
        let (mut out_of_time, mut was_cut) = (false, false);
        // Seconds that a choice took in the heat before.
        let mut each = None;
        for _ in 0..MOST_HEATS {
            let running = race.in_race();
            if running.len() < 2 || self.request.stop.is_asked() {
                break;
            }
            let left: Vec<Choice> = running.iter().map(|at| choices[*at].clone()).collect();
            let mut rounds = heat(&left, &tests, until);
            let at_first = foresee(&known.costs, &mut rounds);
            let foreseen = each.map_or(at_first, |each: f64| each * left.len() as f64);
            let start = self.elapsed();
            if start + foreseen > until {
                out_of_time = true;
                break;
            }
            let found = self.measure(&rounds).await?;
            was_cut = self.elapsed() >= until && each.is_none();
            out_of_time |= self.elapsed() >= until;
            each = Some((self.elapsed() - start) / left.len() as f64);
            self.take(&mut race, &choices, &running, found, stage);
            if out_of_time {
                break;
            }
        }
        if was_cut || (out_of_time && each.is_none()) {
            self.untried.push(stage);
        }
        let best = race.winner().map_or(best, |at| choices[at].clone());
        (self.progress)(TuneProgress::Best {
            stage,
            choice: best.clone(),
            out_of_time,
        });
        Ok(best)
    }

    /// The longest tests of a stage whose first heat leaves the stages behind it as much time as it
    /// takes; where none does, the shortest.
    fn screening(
        &self,
        known: &Known,
        stage: Stage,
        choices: &[Choice],
        until: f64,
    ) -> Vec<TestSpec> {
        let target = self.request.target;
        if stage == Stage::MicroBatch {
            // Decode knows no micro-batch, and a prompt that fits one tells nothing of larger ones.
            return target.prefill().into_iter().collect();
        }
        let behind = Stage::ALL.iter().skip_while(|its| **its != stage).count();
        let room = (until - self.elapsed()) / behind as f64;
        let tests = |halvings| target.screening(stage.needs_whole_prompts(), halvings);
        let fits =
            |tests: &Vec<TestSpec>| foresee(&known.costs, &mut heat(choices, tests, until)) <= room;
        (0..MOST_HALVINGS)
            .map(tests)
            .find(fits)
            .unwrap_or_else(|| tests(MOST_HALVINGS))
    }

    /// Takes a heat into the race, tells what it says, and drops who lost.
    fn take(
        &mut self,
        race: &mut Race,
        choices: &[Choice],
        running: &[usize],
        found: Vec<Found>,
        stage: Stage,
    ) {
        // What a micro-batch does shows in prefill alone.
        let target = match stage {
            Stage::MicroBatch => Target::Prefill,
            _ => self.request.target,
        };
        for (at, found) in running.iter().zip(&found) {
            race.add(*at, &found.seconds(target));
        }
        for (at, found) in running.iter().zip(found) {
            let choice = choices[*at].clone();
            if let Some(reason) = found.failure {
                race.fail(*at);
                (self.progress)(TuneProgress::Dropped {
                    choice,
                    fate: Fate::Failed,
                    reason: Some(reason),
                });
            } else if !found.rounds.is_empty() {
                (self.progress)(TuneProgress::Measured {
                    choice,
                    speeds: found.speeds(),
                    share: race.gain(*at),
                });
            }
        }
        for at in race.judge() {
            if let Some(fate) = race.fate(at) {
                (self.progress)(TuneProgress::Dropped {
                    choice: choices[at].clone(),
                    fate,
                    reason: None,
                });
            }
        }
    }

    /// Measures the defaults and the best in alternating pairs, and decides.
    async fn last_check(&mut self, known: &Known, best: Choice) -> Result<Decision, Problem> {
        let target = self.request.target;
        let sizes = (self.defaults.settings.n_ubatch, best.settings.n_ubatch);
        // Shorter prompts would fit the smaller micro-batch and hide what it does.
        let prompt = if sizes.0 == sizes.1 {
            0
        } else {
            sizes.0.max(sizes.1)
        };
        let left = (known.budget - self.elapsed()) * SAFE;
        let reloads = !best.shares_load(self.defaults);
        let plan = FinalPlan::within(&known.costs, prompt, reloads, left);
        (self.progress)(TuneProgress::Final {
            choice: best.clone(),
            tests: plan.tests.clone(),
            pairs: plan.pairs,
        });
        let found = self
            .measure(&Rounds {
                choices: &[self.defaults.clone(), best.clone()],
                tests: &plan.tests,
                rounds: plan.pairs,
                order: Order::Interleaved,
                paired: true,
                limit: Some(known.budget),
            })
            .await?;
        if self.request.stop.is_asked() {
            return Ok(Decision::Stopped);
        }
        let [default, tuned] = &found[..] else {
            unreachable!("BUG: two choices were measured");
        };
        let ratios: Vec<f64> = default
            .seconds(target)
            .iter()
            .zip(tuned.seconds(target))
            .map(|(default, tuned)| default / tuned)
            .collect();
        let verdict = Verdict::of(&ratios);
        Ok(match verdict {
            Some(verdict) if verdict.is_faster() => Decision::Tuned {
                choice: best,
                verdict,
                default_speeds: default.speeds(),
                speeds: tuned.speeds(),
            },
            verdict => Decision::Defaults {
                nearest: Some(best),
                verdict,
            },
        })
    }

    async fn measure(&mut self, rounds: &Rounds<'_>) -> Result<Vec<Found>, Problem> {
        rounds
            .measure(self.request, self.bench, self.began, self.progress)
            .await
    }
}

/// A heat of a stage: every choice a few times in turn.
fn heat<'a>(choices: &'a [Choice], tests: &'a [TestSpec], until: f64) -> Rounds<'a> {
    Rounds {
        choices,
        tests,
        rounds: ROUNDS,
        order: Order::Interleaved,
        paired: false,
        limit: Some(until),
    }
}

/// Seconds that rounds will take; where changes of engine or model are dear, they are put in the
/// order that needs the fewest.
fn foresee(costs: &Costs, rounds: &mut Rounds<'_>) -> f64 {
    let choices = rounds.choices.len();
    let changes = rounds.changes();
    let change = changes as f64 * costs.change;
    if change <= DEAR_CHANGE * choices as f64 * costs.round(rounds.tests) {
        return costs.rounds(rounds.tests, choices, rounds.rounds, changes);
    }
    rounds.order = Order::OneByOne;
    costs.rounds(rounds.tests, choices, rounds.rounds, 0) + change
}
