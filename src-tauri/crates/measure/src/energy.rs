//! What a token costs in energy.

use twospeed_engine::TestSpec;

use crate::kind::Kind;
use crate::record::{Conditions, SampleRecord};
use crate::stats::{Spread, spread};

/// Joules that one token took, over the samples whose energy was read; `None` where none was, or
/// where a kind has no tokens to count it by.
///
/// The counter covers the whole processor, whatever else it does meanwhile, and a little more time
/// than the section itself ([`Conditions::energy_seconds`]). Only what lies inside is told: the
/// energy is taken in the proportion of the section to that time.
pub fn joules_per_token(kind: &Kind, spec: TestSpec, samples: &[SampleRecord]) -> Option<Spread> {
    let tokens = kind.tokens(spec)?;
    let each: Vec<f64> = samples
        .iter()
        .filter_map(|kept| Some(section_joules(&kept.conditions, kept.sample.ns)? / tokens as f64))
        .collect();
    spread(&each)
}

/// Mean power over the reading of one sample, in watts.
pub fn watts(conditions: &Conditions) -> Option<f64> {
    let seconds = conditions.energy_seconds.filter(|s| *s > 0.0)?;
    Some(conditions.energy_j? / seconds)
}

fn section_joules(conditions: &Conditions, ns: u64) -> Option<f64> {
    Some(watts(conditions)? * (ns as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use twospeed_engine::protocol::Sample;
    use uuid::Uuid;

    use super::*;

    fn kept(ns: u64, energy_j: Option<f64>, energy_seconds: Option<f64>) -> SampleRecord {
        SampleRecord {
            test: Uuid::nil(),
            sample: Sample {
                index: 0,
                ns,
                involuntary_switches: None,
                major_faults: None,
                reading: None,
            },
            at: Timestamp::UNIX_EPOCH,
            conditions: Conditions {
                energy_j,
                energy_seconds,
                ..Conditions::default()
            },
        }
    }

    const TG128: TestSpec = TestSpec {
        n_prompt: 0,
        n_gen: 128,
        n_depth: 0,
    };

    #[test]
    fn a_token_costs_its_share_of_the_sections_energy() {
        // 33 J in 1.1 s are 30 W; the section took 1 s of it: 30 J for 128 tokens.
        let samples = [kept(1_000_000_000, Some(33.0), Some(1.1))];
        let joules = joules_per_token(&Kind::Speed, TG128, &samples).unwrap();
        assert!((joules.mean - 30.0 / 128.0).abs() < 1e-12, "{joules:?}");
    }

    #[test]
    fn what_was_not_read_is_unknown_and_not_free() {
        let unread = kept(1_000_000_000, None, None);
        assert_eq!(
            joules_per_token(&Kind::Speed, TG128, std::slice::from_ref(&unread)),
            None
        );
        let read = kept(1_000_000_000, Some(12.8), Some(1.0));
        let some = joules_per_token(&Kind::Speed, TG128, &[unread, read]).unwrap();
        assert_eq!((some.count, some.mean), (1, 0.1));
        assert_eq!(watts(&kept(1, Some(1.0), Some(0.0)).conditions), None);
    }

    #[test]
    fn each_user_writes_tokens_of_its_own() {
        let kind = Kind::Users {
            users: 4,
            split_kv: false,
            shared_prompt: false,
        };
        // 4 * 128 tokens for 51.2 J.
        let samples = [kept(1_000_000_000, Some(51.2), Some(1.0))];
        let joules = joules_per_token(&kind, TG128, &samples).unwrap();
        assert!((joules.mean - 0.1).abs() < 1e-12, "{joules:?}");
    }
}
