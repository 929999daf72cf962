//! What estimates on this machine stand on: read speed, calibration, own results. One place for
//! every screen and every command.

use std::sync::Arc;

use twospeed_estimate::learn::{ModelKey, Residual, corrections};
use twospeed_estimate::{BandwidthFrom, Basis, Calibration, Question};
use twospeed_gguf::Model;
use twospeed_history::{History, HistoryError};
use twospeed_measure::machine::Machine;

use crate::calibration::{NotCalibrated, current};
use crate::learn::residuals;
use crate::read_speed::ReadSpeed;

/// What estimates on this machine stand on.
#[derive(Debug, Clone, PartialEq)]
pub struct Grounds {
    read_speed: Option<ReadSpeed>,
    calibration: Result<Arc<Calibration>, NotCalibrated>,
    /// Own results beside what the calibration expects of them.
    residuals: Vec<Residual>,
}

/// Of a machine of which nothing is known.
impl Default for Grounds {
    fn default() -> Self {
        Self {
            read_speed: None,
            calibration: Err(NotCalibrated::Never),
            residuals: Vec::new(),
        }
    }
}

impl Grounds {
    /// What the history knows of this machine, for so many threads and this micro-batch. `build` is
    /// the number of the program's own llama.cpp where it knows that.
    pub async fn load(
        history: &History,
        machine: &Machine,
        threads: u32,
        ubatch: u64,
        build: Option<u32>,
    ) -> Result<Self, HistoryError> {
        let read_speed = ReadSpeed::load(history, machine).await?;
        let calibration = current(history, machine, threads, ubatch, None, build).await?;
        let residuals = match &calibration {
            Ok(calibration) => {
                residuals(history, machine, calibration, &read_speed.bandwidth()).await?
            }
            Err(_) => Vec::new(),
        };
        Ok(Self {
            read_speed: Some(read_speed),
            calibration,
            residuals,
        })
    }

    /// The question with what is known of this machine. One about another device or with a bandwidth
    /// of its own stays as it is: that is not this machine.
    pub fn ask(&self, model: &Model, question: Question) -> Question {
        if question.device.is_some() || question.bandwidth != BandwidthFrom::Unknown {
            return question;
        }
        let calibration = self.calibration.as_ref().ok().cloned();
        let corrections = match calibration {
            Some(_) if !self.residuals.is_empty() => {
                corrections(&self.residuals, ModelKey::of(model), &question)
            }
            _ => question.corrections,
        };
        let bandwidth = match &self.read_speed {
            Some(known) => known.bandwidth(),
            None => BandwidthFrom::Unknown,
        };
        Question {
            bandwidth,
            calibration,
            corrections,
            ..question
        }
    }

    /// The read speed that was measured here.
    pub fn read_speed(&self) -> Option<&ReadSpeed> {
        self.read_speed.as_ref()
    }

    /// The calibration that holds, or why there is none.
    pub fn calibration(&self) -> Result<&Arc<Calibration>, &NotCalibrated> {
        self.calibration.as_ref()
    }
}

/// What an estimate rests on, in words: `calibrated`, `calibrated, corrected by 4 runs` or
/// `published figures only`.
pub fn basis_words(basis: &Basis) -> String {
    if basis.calibration.is_none() {
        return "published figures only".to_owned();
    }
    match basis.corrected_by_runs {
        0 => "calibrated".to_owned(),
        1 => "calibrated, corrected by 1 run".to_owned(),
        runs => format!("calibrated, corrected by {runs} runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twospeed_estimate::{Bandwidth, BytesPerSecond, Corrections};

    fn model() -> Model {
        let file = "../../../tests/data/gguf/archs/llama-dense-Q8_0.header.gguf";
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        twospeed_gguf::read(&path).unwrap()
    }

    fn grounds() -> Grounds {
        use twospeed_estimate::learn::{Conditions, Phase};
        let decode = |run, ratio| Residual {
            run,
            model: ModelKey::of(&model()),
            phase: Phase::Decode,
            conditions: Conditions::of(&Question::default(), Phase::Decode),
            ratio,
        };
        Grounds {
            read_speed: None,
            calibration: Ok(Arc::new(Calibration {
                id: "one".into(),
                at: "2026-12-01T12:00:00Z".into(),
                backend: "CPU".into(),
                variant: "zen4".into(),
                threads: 2,
                build: 11434,
                ubatch: 512,
                last_level_cache: None,
                reads: Vec::new(),
                kernels: Vec::new(),
                step_ns: None,
            })),
            residuals: vec![decode(1, 0.9), decode(2, 0.9), decode(3, 0.9)],
        }
    }

    #[test]
    fn a_question_about_this_machine_gets_what_is_known_of_it() {
        let asked = grounds().ask(&model(), Question::default());
        assert_eq!(
            asked.calibration.map(|one| one.id.clone()),
            Some("one".into())
        );
        let decode = asked.corrections.decode.unwrap();
        assert!((decode.factor - 0.9).abs() < 1e-12);
        assert_eq!((decode.runs, decode.same_model), (3, true));
        assert_eq!(asked.corrections.prefill, None);
    }

    #[test]
    fn a_question_about_another_machine_stays_as_it_is() {
        let device = Question {
            device: Some("Orin Nano Super".into()),
            ..Question::default()
        };
        let given = Question {
            bandwidth: BandwidthFrom::Known(Bandwidth::given(BytesPerSecond(1 << 34))),
            ..Question::default()
        };
        for question in [device, given] {
            assert_eq!(grounds().ask(&model(), question.clone()), question);
        }
    }

    #[test]
    fn without_a_calibration_nothing_is_corrected() {
        let none = Grounds {
            calibration: Err(NotCalibrated::Never),
            ..grounds()
        };
        let asked = none.ask(&model(), Question::default());
        assert_eq!(
            (asked.calibration, asked.corrections),
            (None, Corrections::default())
        );
    }

    #[test]
    fn what_it_rests_on_is_said() {
        let words = |calibration: Option<&str>, corrected_by_runs| {
            basis_words(&Basis {
                calibration: calibration.map(str::to_owned),
                corrected_by_runs,
                notes: Vec::new(),
            })
        };
        assert_eq!(words(None, 0), "published figures only");
        assert_eq!(words(Some("a"), 0), "calibrated");
        assert_eq!(words(Some("a"), 1), "calibrated, corrected by 1 run");
        assert_eq!(words(Some("a"), 12), "calibrated, corrected by 12 runs");
    }
}
