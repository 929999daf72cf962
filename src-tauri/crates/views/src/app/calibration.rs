//! Calibrating, and the calibration as Settings shows it.

use std::sync::Arc;

use twospeed_estimate::Calibration;
use twospeed_library::display::shown;
use twospeed_measure::Stop;
use twospeed_workbench::calibration::{CalibrateProgress, CalibrateRequest, Rates, UBATCH};
use twospeed_workbench::{calibration, hold_lease, waiting_sentence};

use super::App;
use super::jobs::cancelled;
use crate::Problem;
use crate::estimate::*;
use crate::frame::AppEvent;

impl App {
    /// What this machine's engine was measured to do; `None` = never calibrated.
    pub async fn calibration(self: &Arc<Self>) -> Result<Option<CalibrationView>, Problem> {
        // While something is timed, what was known has to do.
        if !self.is_measuring() {
            self.ask_history().await;
        }
        let known = self.known();
        Ok(match known.grounds.calibration() {
            Ok(holds) => Some(view(holds, None)),
            Err(why) => known
                .calibration
                .as_ref()
                .map(|newest| view(newest, Some(why.to_string()))),
        })
    }

    /// Measures what ceilings and expected speeds rest on, and keeps it.
    pub(super) async fn calibrate_now(
        self: &Arc<Self>,
        id: &str,
        stop: &Stop,
    ) -> Result<String, Problem> {
        let history = self.history().await?;
        let lease = {
            let held = hold_lease(&self.environment.lease, "calibration", |holder| {
                self.wait_for(id, waiting_sentence(holder.as_ref()));
            });
            tokio::select! {
                biased;
                () = stop.asked_now() => return Err(cancelled()),
                lease = held => lease?,
            }
        };
        self.progress(id, None, None);
        let request = CalibrateRequest {
            engine: self.engine.as_ref(),
            history: &history,
            machine: &self.machine,
            threads: self.threads(),
            ubatch: UBATCH,
            stop,
        };
        let mut told = |progress: CalibrateProgress| match progress {
            CalibrateProgress::Memory => self.progress(id, None, None),
            CalibrateProgress::Kernels { done, of } => {
                let fraction = f64::from(done) / f64::from(of.max(1));
                self.progress(id, Some(fraction), None);
            }
            CalibrateProgress::Said(sentence) => self.tell(AppEvent::Notice {
                message: shown(&sentence),
                failed: false,
            }),
        };
        let made = calibration::calibrate(&request, &lease, &mut told).await;
        drop(lease);
        // What was found of memory is kept even where the rest was not.
        self.ask_history().await;
        made.map(|_| String::new()).map_err(Problem::from)
    }
}

fn view(calibration: &Calibration, does_not_hold: Option<String>) -> CalibrationView {
    let mut reads: Vec<ReadAt> = calibration
        .reads
        .iter()
        .map(|read| ReadAt {
            buffer_bytes: read.buffer.0,
            bytes_s: read.rate.0,
        })
        .collect();
    reads.sort_by_key(|read| read.buffer_bytes);
    let rates = Rates::of(calibration).matrices;
    CalibrationView {
        at: calibration.at.clone(),
        backend: shown(&calibration.backend),
        variant: shown(&calibration.variant),
        threads: calibration.threads,
        build: calibration.build,
        does_not_hold,
        reads,
        rates: rates
            .into_iter()
            .map(|rate| MatrixRate {
                tensor_type: rate.tensor_type.name().to_owned(),
                near_bytes_s: rate.cached.map(|rate| rate.0),
                far_bytes_s: rate.memory.map(|rate| rate.0),
                flops_s: rate.batch.map(|flops| flops.0),
                repacked: rate.repacked,
            })
            .collect(),
        last_level_cache_bytes: calibration.last_level_cache.map(|bytes| bytes.0),
        ubatch: calibration.ubatch,
    }
}
