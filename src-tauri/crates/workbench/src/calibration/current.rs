//! Which calibration holds now.

use std::fmt;
use std::sync::Arc;

use twospeed_estimate::Calibration;
use twospeed_history::{History, HistoryError};
use twospeed_measure::Recorder;
use twospeed_measure::machine::Machine;

/// The engine that runs on a machine when nobody names another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningEngine {
    /// Its CPU variant.
    pub variant: String,
    /// llama.cpp's build number.
    pub build: u32,
    /// Its backends.
    pub backend: String,
}

/// `zen4, llama.cpp 11434`.
impl fmt::Display for RunningEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, llama.cpp {}", self.variant, self.build)
    }
}

impl RunningEngine {
    fn of(calibration: &Calibration) -> Self {
        Self {
            variant: calibration.variant.clone(),
            build: calibration.build,
            backend: calibration.backend.clone(),
        }
    }
}

/// Why no calibration holds. Shown as what the estimate says of itself: `not calibrated for 4
/// threads (for 2 it is)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotCalibrated {
    /// This machine never was.
    Never,
    /// It was for other numbers of threads.
    Threads {
        /// Those that were asked about.
        asked: u32,
        /// Those that it was calibrated for, in order.
        calibrated: Vec<u32>,
    },
    /// It was for another engine.
    Engine {
        /// The one that runs.
        runs: RunningEngine,
        /// The one that was calibrated last.
        calibrated: RunningEngine,
    },
}

impl fmt::Display for NotCalibrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("not calibrated"),
            Self::Threads { asked, calibrated } => {
                let threads = |count: u32| match count {
                    1 => "1 thread".to_owned(),
                    count => format!("{count} threads"),
                };
                let others: Vec<_> = calibrated.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "not calibrated for {} (for {} it is)",
                    threads(*asked),
                    others.join(" and ")
                )
            }
            Self::Engine { runs, calibrated } => {
                write!(f, "not calibrated for {runs} (for {calibrated} it is)")
            }
        }
    }
}

/// The engine that runs here when nobody names another, as far as the history knows: of the build
/// that measured or calibrated last, the best variant that did not die. `build` is the program's own
/// where it knows that.
///
/// `None` where nothing ran yet.
pub async fn engine_here(
    history: &History,
    machine: &Machine,
    build: Option<u32>,
) -> Result<Option<RunningEngine>, HistoryError> {
    let calibrations = history.calibrations(&machine.id).await?;
    engine_of(history, machine, build, &calibrations).await
}

async fn engine_of(
    history: &History,
    machine: &Machine,
    build: Option<u32>,
    calibrations: &[Calibration],
) -> Result<Option<RunningEngine>, HistoryError> {
    let is_of_build = |other: u32| build.is_none_or(|build| build == other);
    let calibrated = calibrations
        .iter()
        .find(|calibration| is_of_build(calibration.build));
    let last = history.last_engine(&machine.id).await?;
    let Some(last) = last.filter(|last| is_of_build(last.build.build_number)) else {
        return Ok(calibrated.map(RunningEngine::of));
    };
    let at = |calibration: &Calibration| calibration.at.parse::<jiff::Timestamp>().ok();
    if let Some(newer) = calibrated.filter(|one| at(one) > Some(last.at)) {
        return Ok(Some(RunningEngine::of(newer)));
    }
    // Where it cannot be told which died, the engine's own order counts.
    let died = history
        .variants_set_aside(machine, &last.build)
        .await
        .unwrap_or_default();
    let best = last
        .variants
        .iter()
        .find(|variant| variant.score > 0 && !died.contains(&variant.name));
    Ok(best.map(|variant| RunningEngine {
        variant: variant.name.clone(),
        build: last.build.build_number,
        backend: last.backend,
    }))
}

/// The calibration that holds on this machine for so many threads, the one of this micro-batch if
/// there are several; otherwise why there is none. The engine is the one that runs here when nobody
/// names another; `variant` and `build` name one.
pub async fn current(
    history: &History,
    machine: &Machine,
    threads: u32,
    ubatch: u64,
    variant: Option<&str>,
    build: Option<u32>,
) -> Result<Result<Arc<Calibration>, NotCalibrated>, HistoryError> {
    let calibrations = history.calibrations(&machine.id).await?;
    if calibrations.is_empty() {
        return Ok(Err(NotCalibrated::Never));
    }
    let mut runs = engine_of(history, machine, build, &calibrations).await?;
    if let (Some(runs), Some(variant)) = (&mut runs, variant) {
        runs.variant = variant.to_owned();
    }
    Ok(choose(calibrations, runs, threads, ubatch, build))
}

/// `calibrations` are the newest of each key, newest first, and at least one.
fn choose(
    calibrations: Vec<Calibration>,
    runs: Option<RunningEngine>,
    threads: u32,
    ubatch: u64,
    build: Option<u32>,
) -> Result<Arc<Calibration>, NotCalibrated> {
    let Some(runs) = runs else {
        // Nothing of this build ran yet.
        let calibrated = calibrations.first().map(RunningEngine::of);
        return Err(match (calibrated, build) {
            (Some(calibrated), Some(build)) => NotCalibrated::Engine {
                runs: RunningEngine {
                    build,
                    ..calibrated.clone()
                },
                calibrated,
            },
            _ => NotCalibrated::Never,
        });
    };
    let (of_engine, others): (Vec<_>, Vec<_>) = calibrations
        .into_iter()
        .partition(|calibration| RunningEngine::of(calibration) == runs);
    if of_engine.is_empty() {
        return Err(match others.first() {
            Some(other) => NotCalibrated::Engine {
                runs,
                calibrated: RunningEngine::of(other),
            },
            None => NotCalibrated::Never,
        });
    }
    let mut counts: Vec<u32> = of_engine.iter().map(|one| one.threads).collect();
    let mut of_threads: Vec<_> = of_engine
        .into_iter()
        .filter(|calibration| calibration.threads == threads)
        .collect();
    // Stable: the newest stays first among those that are alike.
    of_threads.sort_by_key(|calibration| u64::from(calibration.ubatch) != ubatch);
    match of_threads.into_iter().next() {
        Some(calibration) => Ok(Arc::new(calibration)),
        None => {
            counts.sort_unstable();
            counts.dedup();
            Err(NotCalibrated::Threads {
                asked: threads,
                calibrated: counts,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(variant: &str, build: u32, threads: u32, ubatch: u32) -> Calibration {
        Calibration {
            id: format!("{variant}{build}{threads}{ubatch}"),
            at: "2026-12-01T12:00:00Z".into(),
            backend: "CPU".into(),
            variant: variant.into(),
            threads,
            build,
            ubatch,
            last_level_cache: None,
            reads: Vec::new(),
            kernels: Vec::new(),
            step_ns: None,
        }
    }

    fn engine(variant: &str, build: u32) -> Option<RunningEngine> {
        Some(RunningEngine {
            variant: variant.into(),
            build,
            backend: "CPU".into(),
        })
    }

    #[test]
    fn one_of_the_same_engine_and_threads_holds_and_its_micro_batch_is_preferred() {
        let all = || {
            vec![
                calibration("zen4", 1, 2, 1024),
                calibration("zen4", 1, 2, 512),
                calibration("zen4", 1, 4, 512),
            ]
        };
        let chosen = |threads, ubatch| {
            let chosen = choose(all(), engine("zen4", 1), threads, ubatch, None);
            chosen.map(|calibration| (calibration.threads, calibration.ubatch))
        };
        assert_eq!(chosen(2, 512), Ok((2, 512)));
        assert_eq!(chosen(2, 128), Ok((2, 1024)), "the newest");
        assert_eq!(chosen(4, 512), Ok((4, 512)));
        let none = chosen(3, 512).unwrap_err();
        assert_eq!(
            none.to_string(),
            "not calibrated for 3 threads (for 2 and 4 it is)"
        );
    }

    #[test]
    fn one_of_another_engine_is_never_taken_for_it() {
        let all = vec![calibration("zen4", 1, 2, 512)];
        for runs in [engine("haswell", 1), engine("zen4", 2)] {
            let none = choose(all.clone(), runs.clone(), 2, 512, None).unwrap_err();
            assert!(matches!(none, NotCalibrated::Engine { .. }), "{runs:?}");
        }
        let none = choose(all.clone(), engine("haswell", 1), 2, 512, None).unwrap_err();
        assert_eq!(
            none.to_string(),
            "not calibrated for haswell, llama.cpp 1 (for zen4, llama.cpp 1 it is)"
        );
        // The program knows that it is of another build, and nothing of that ran yet.
        let none = choose(all, None, 2, 512, Some(2)).unwrap_err();
        assert_eq!(
            none.to_string(),
            "not calibrated for zen4, llama.cpp 2 (for zen4, llama.cpp 1 it is)"
        );
    }

    #[test]
    fn one_thread_is_one() {
        let none = NotCalibrated::Threads {
            asked: 1,
            calibrated: vec![2],
        };
        assert_eq!(
            none.to_string(),
            "not calibrated for 1 thread (for 2 it is)"
        );
    }
}
