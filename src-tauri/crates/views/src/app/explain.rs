//! What explains a result: statements with their numbers, chosen from what is there.

mod expected;
mod kinds;

use twospeed_chart::{Measured, clearly};
use twospeed_estimate::explain::{Says, Verdict};

use super::compare::{Ceiling, Entry};
use crate::compare::Statement;
use crate::measure::PhaseName;

pub(super) use expected::Expectations;
pub(super) use kinds::of_figure;

/// Statements of what was measured, beside those of the estimator.
const MOST: usize = 3;
/// An everyday request: a long prompt and a short answer.
const PROMPT: u32 = 2000;
const ANSWER: u32 = 200;

/// What explains the focused result, the statement that says most first.
pub(super) fn statements(
    entries: &[Entry<'_>],
    focus: usize,
    expectations: &Expectations,
) -> Vec<Statement> {
    together(
        of_the_measured(entries, focus),
        expectations.statements(entries, focus),
    )
}

/// Both kinds in one order: speeds that are not as expected, what the result is, where its time
/// goes and why; then how it stands to others, then what holds for its model.
///
/// Where the estimator says the same with its parts, it says it alone.
fn together(measured: Vec<Statement>, explained: Vec<Statement>) -> Vec<Statement> {
    let has_time = explained.iter().any(is_time);
    let has_gap = explained.iter().any(|said| {
        matches!(
            said,
            Statement::Explained {
                says: Says::Gap { .. },
                ..
            }
        )
    });
    let mut all: Vec<(u32, Statement)> = measured
        .into_iter()
        .filter(|said| match said {
            Statement::TokenTime { .. } => !has_time,
            Statement::CeilingShare { .. } => !has_gap,
            _ => true,
        })
        .map(|said| (place(&said), said))
        .collect();
    // The estimator has an order of its own: what follows one of little weight stays behind it, and
    // the cache stands right behind the time of a token where it takes a good part of it.
    let (mut least, mut behind_time) = (0, false);
    for said in explained {
        let is_cache = matches!(
            &said,
            Statement::Explained {
                says: Says::KvGrowth { .. },
                ..
            }
        );
        if !(behind_time && is_cache) {
            least = place(&said).max(least);
        }
        behind_time = is_time(&said);
        all.push((least, said));
    }
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, said)| said).collect()
}

fn is_time(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Explained {
            says: Says::TokenTime { .. },
            ..
        }
    )
}

/// The place of a statement among others; equal ones stay as they came.
fn place(statement: &Statement) -> u32 {
    match statement {
        Statement::Explained { says, .. } => match says {
            Says::Judged {
                verdict: Verdict::Faster | Verdict::Slower,
                ..
            } => 0,
            Says::TokenTime { .. } | Says::Gap { .. } => 2,
            Says::Rates { .. } | Says::Unpacking { .. } => 4,
            Says::Judged { .. } | Says::Threads { .. } => 5,
            _ => 6,
        },
        Statement::Ratio { .. } => 1,
        Statement::CeilingShare { .. } => 2,
        Statement::TokenTime { .. } | Statement::Against { .. } => 3,
        Statement::NoCeiling => 7,
        _ => 8,
    }
}

/// The three statements that say most of what was measured of the focused result, in the order
/// they are read.
///
/// First how its two speeds stand to each other, then what decode reached of what the machine
/// allows, then the result beside its nearest, or else what its speeds mean for a request. What
/// cannot be said makes room for: the time of a token, a request, that the ceiling is unknown.
fn of_the_measured(entries: &[Entry<'_>], focus: usize) -> Vec<Statement> {
    let Some(entry) = entries.get(focus) else {
        return Vec::new();
    };
    let share = ceiling_share(entry);
    let against = against(entries, focus);
    let first = [
        ratio(entry),
        share.clone(),
        against.clone().or_else(|| request(entry)),
        token_time(entry),
        against.and_then(|_| request(entry)),
        (share.is_none() && entry.decode.is_some()).then_some(Statement::NoCeiling),
    ];
    first.into_iter().flatten().take(MOST).collect()
}

fn mean(measured: Option<&Measured>) -> Option<f64> {
    let mean = measured?.mean;
    (mean.is_finite() && mean > 0.0).then_some(mean)
}

fn ratio(entry: &Entry<'_>) -> Option<Statement> {
    let (prefill, decode) = (mean(entry.prefill.as_ref())?, mean(entry.decode.as_ref())?);
    Some(Statement::Ratio {
        prefill,
        decode,
        ratio: prefill / decode,
    })
}

fn ceiling_share(entry: &Entry<'_>) -> Option<Statement> {
    let decode = mean(entry.decode.as_ref())?;
    let Ceiling {
        speed,
        weight_bytes,
        read_bytes_s,
    } = entry.ceiling?;
    Some(Statement::CeilingShare {
        decode,
        ceiling: speed,
        share: decode / speed,
        weight_bytes,
        read_bytes_s,
    })
}

/// Not where decode is faster than the ceiling: then the ceiling is wrong, and the share says so.
fn token_time(entry: &Entry<'_>) -> Option<Statement> {
    let decode = mean(entry.decode.as_ref())?;
    let (token_ms, weights_ms) = (1e3 / decode, 1e3 / entry.ceiling?.speed);
    (weights_ms <= token_ms).then_some(Statement::TokenTime {
        token_ms,
        weights_ms,
    })
}

fn request(entry: &Entry<'_>) -> Option<Statement> {
    let (prefill, decode) = (mean(entry.prefill.as_ref())?, mean(entry.decode.as_ref())?);
    Some(Statement::Request {
        prompt: PROMPT,
        answer: ANSWER,
        prefill_s: f64::from(PROMPT) / prefill,
        decode_s: f64::from(ANSWER) / decode,
    })
}

/// A phase of two results that was measured alike.
struct Pair<'a> {
    phase: PhaseName,
    this: &'a Measured,
    other: &'a Measured,
}

impl Pair<'_> {
    fn within_noise(&self) -> bool {
        clearly(self.this, self.other).is_none()
    }

    fn distance(&self) -> f64 {
        (self.this.mean / self.other.mean).ln().abs()
    }
}

fn against(entries: &[Entry<'_>], focus: usize) -> Option<Statement> {
    let this = &entries[focus];
    let (_, other, pair) = entries
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != focus)
        .filter_map(|(_, other)| Some((farness(this, other), other, pair(this, other)?)))
        .min_by(|(a, ..), (b, ..)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)))?;
    Some(Statement::Against {
        phase: pair.phase,
        this: this.name.clone(),
        other: other.name.clone(),
        ratio: pair.this.mean / pair.other.mean,
        size_ratio: this.bar.model.file_bytes as f64 / other.bar.model.file_bytes.max(1) as f64,
        within_noise: pair.within_noise(),
    })
}

/// How far from comparable two results are: first in kind, then in size.
fn farness(this: &Entry<'_>, other: &Entry<'_>) -> (u32, f64) {
    let (a, b) = (&this.bar, &other.bar);
    let here = a.run.run.machine.id == b.run.run.machine.id;
    let same_settings = a.settings == b.settings && a.variant == b.variant;
    let kind = match (
        a.model.fingerprint == b.model.fingerprint,
        a.name() == b.name(),
    ) {
        // Another quantization of the same model.
        (false, true) => 0,
        (false, false) => 1,
        (true, _) => 2,
    };
    let kind = kind + if same_settings { 0 } else { 3 } + if here { 0 } else { 6 };
    let size = |bytes: u64| bytes.max(1) as f64;
    let sizes = (size(a.model.file_bytes) / size(b.model.file_bytes))
        .ln()
        .abs();
    (kind, sizes)
}

/// The phase in which two results differ most, where a clear difference goes before one within
/// noise; `None` where no phase was measured alike.
fn pair<'a>(this: &'a Entry<'_>, other: &'a Entry<'_>) -> Option<Pair<'a>> {
    let spec = |test: Option<&twospeed_history::Test>| test.map(|test| test.record.spec);
    let of = |phase, this: Option<&'a Measured>, other: Option<&'a Measured>, alike: bool| {
        let (this, other) = (this?, other?);
        let sound = mean(Some(this)).is_some() && mean(Some(other)).is_some();
        (alike && sound).then_some(Pair { phase, this, other })
    };
    let decode = of(
        PhaseName::Decode,
        this.decode.as_ref(),
        other.decode.as_ref(),
        spec(this.bar.decode) == spec(other.bar.decode),
    );
    let prefill = of(
        PhaseName::Prefill,
        this.prefill.as_ref(),
        other.prefill.as_ref(),
        spec(this.bar.prefill) == spec(other.bar.prefill),
    );
    let (decode, prefill) = match (decode, prefill) {
        (Some(decode), Some(prefill)) => (decode, prefill),
        (one, other) => return one.or(other),
    };
    Some(match (decode.within_noise(), prefill.within_noise()) {
        (true, false) => prefill,
        (false, false) if prefill.distance() > decode.distance() => prefill,
        _ => decode,
    })
}

#[cfg(test)]
mod tests {
    use twospeed_history::WholeRun;
    use twospeed_workbench::{bars, measured};

    use super::super::results_fixture::{both, model};
    use super::*;

    /// The statements of the first row; 16 GB/s where the ceiling is known.
    fn said(runs: &[WholeRun], focus: usize, read: Option<u64>) -> Vec<Statement> {
        let bars = bars(runs);
        let entries: Vec<Entry<'_>> = bars
            .iter()
            .map(|bar| Entry {
                bar: *bar,
                name: format!(
                    "{} {}",
                    bar.name(),
                    bar.model.quantization.as_deref().unwrap()
                ),
                prefill: bar.prefill.and_then(measured),
                decode: bar.decode.and_then(measured),
                ceiling: read.map(|read_bytes_s| Ceiling {
                    speed: read_bytes_s as f64 / bar.model.file_bytes as f64,
                    weight_bytes: bar.model.file_bytes,
                    read_bytes_s,
                }),
            })
            .collect();
        of_the_measured(&entries, focus)
    }

    fn names(statements: &[Statement]) -> Vec<&'static str> {
        let name = |statement: &Statement| match statement {
            Statement::Ratio { .. } => "ratio",
            Statement::CeilingShare { .. } => "share",
            Statement::NoCeiling => "no ceiling",
            Statement::TokenTime { .. } => "token",
            Statement::Against { .. } => "against",
            Statement::Request { .. } => "request",
            other => panic!("not of speeds: {other:?}"),
        };
        statements.iter().map(name).collect()
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-4 * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn a_result_alone_is_explained_by_its_ratio_its_share_and_a_request() {
        let runs = [both(0, &model("A", "Q4_0", 100_000_000), &[400.0], &[80.0])];
        let said = said(&runs, 0, Some(16_000_000_000));
        assert_eq!(names(&said), ["ratio", "share", "request"]);
        let [
            Statement::Ratio { ratio, .. },
            Statement::CeilingShare {
                ceiling,
                share,
                weight_bytes: 100_000_000,
                read_bytes_s: 16_000_000_000,
                ..
            },
            Statement::Request {
                prompt: 2000,
                answer: 200,
                prefill_s,
                decode_s,
            },
        ] = &said[..]
        else {
            panic!("{said:?}");
        };
        near(*ratio, 5.0);
        // 16e9 / 100e6 = 160; 80 / 160; 2000 / 400; 200 / 80.
        near(*ceiling, 160.0);
        near(*share, 0.5);
        near(*prefill_s, 5.0);
        near(*decode_s, 2.5);
    }

    #[test]
    fn what_cannot_be_said_makes_room() {
        let small = model("A", "Q4_0", 100_000_000);
        let decode = [both(0, &small, &[], &[80.0])];
        let shared = said(&decode, 0, Some(16_000_000_000));
        assert_eq!(names(&shared), ["share", "token"]);
        let Statement::TokenTime {
            token_ms,
            weights_ms,
        } = shared[1]
        else {
            panic!("{shared:?}");
        };
        // 1000 / 80 and 100e6 / 16e9 s.
        near(token_ms, 12.5);
        near(weights_ms, 6.25);
        assert_eq!(names(&said(&decode, 0, None)), ["no ceiling"]);
        let prefill = [both(0, &small, &[400.0], &[])];
        assert!(said(&prefill, 0, None).is_empty());
        let full = [both(0, &small, &[400.0], &[80.0])];
        let without = said(&full, 0, None);
        assert_eq!(names(&without), ["ratio", "request", "no ceiling"]);
        assert!(said(&[], 0, None).is_empty());
    }

    #[test]
    fn a_decode_above_its_ceiling_has_no_time_left_over() {
        let runs = [both(0, &model("A", "Q4_0", 100_000_000), &[], &[200.0])];
        let said = said(&runs, 0, Some(16_000_000_000));
        assert_eq!(names(&said), ["share"]);
        assert!(matches!(said[0], Statement::CeilingShare { share, .. } if share > 1.0));
    }

    fn compared(runs: &[WholeRun], focus: usize) -> (PhaseName, String, f64, f64, bool) {
        let said = said(runs, focus, Some(16_000_000_000));
        let found = said.into_iter().find_map(|statement| match statement {
            Statement::Against {
                phase,
                other,
                ratio,
                size_ratio,
                within_noise,
                ..
            } => Some((phase, other, ratio, size_ratio, within_noise)),
            _ => None,
        });
        found.unwrap()
    }

    #[test]
    fn the_nearest_to_compare_is_another_quantization_of_the_nearest_size() {
        let runs = [
            both(
                0,
                &model("A", "Q4_0", 92_000_000),
                &[612.0, 610.0],
                &[118.0, 117.0],
            ),
            both(
                100,
                &model("A", "Q4_1", 98_000_000),
                &[300.0, 302.0],
                &[107.0, 106.0],
            ),
            both(
                200,
                &model("A", "F16", 271_000_000),
                &[254.0, 255.0],
                &[49.0, 48.0],
            ),
            both(
                300,
                &model("B", "Q4_0", 92_000_000),
                &[10.0, 10.1],
                &[10.0, 10.1],
            ),
        ];
        let (phase, other, ratio, size_ratio, within_noise) = compared(&runs, 0);
        // 611 / 301 says more than 117.5 / 106.5.
        assert_eq!((phase, other.as_str()), (PhaseName::Prefill, "A Q4_1"));
        near(ratio, 611.0 / 301.0);
        near(size_ratio, 92.0 / 98.0);
        assert!(!within_noise);
        let (_, other, ..) = compared(&runs, 3);
        assert!(
            other.starts_with("A "),
            "another model where there is no other of its own"
        );
    }

    #[test]
    fn a_difference_within_the_spread_is_called_noise() {
        let runs = [
            both(0, &model("A", "Q4_0", 92_000_000), &[], &[100.0, 110.0]),
            both(100, &model("A", "Q4_1", 98_000_000), &[], &[98.0, 108.0]),
        ];
        let (phase, .., within_noise) = compared(&runs, 0);
        assert_eq!((phase, within_noise), (PhaseName::Decode, true));
    }

    #[test]
    fn what_was_measured_otherwise_is_not_compared() {
        let small = model("A", "Q4_0", 92_000_000);
        let mut other = both(100, &model("A", "Q4_1", 98_000_000), &[300.0], &[50.0]);
        for test in &mut other.tests {
            test.record.spec.n_depth = 4096;
        }
        let runs = [both(0, &small, &[612.0], &[118.0]), other];
        assert_eq!(
            names(&said(&runs, 0, Some(16_000_000_000))),
            ["ratio", "share", "request"]
        );
    }

    mod together {
        use twospeed_estimate::explain::{Phase, Rests};

        use super::super::*;

        fn explained(says: Says) -> Statement {
            Statement::Explained {
                says,
                rests: Rests::Calibrated,
            }
        }

        fn judged(verdict: Verdict) -> Statement {
            explained(Says::Judged {
                phase: Phase::Decode,
                measured: 80.0,
                expected: 100.0,
                low: 90.0,
                high: 110.0,
                ratio: 0.8,
                verdict,
                reasons: Vec::new(),
            })
        }

        fn token_time() -> Statement {
            explained(Says::TokenTime {
                total_ms: 10.0,
                weights_ms: 7.0,
                weights_share: 0.7,
                parts: Vec::new(),
            })
        }

        fn gap() -> Statement {
            explained(Says::Gap {
                decode: 80.0,
                is_measured: true,
                ceiling: 200.0,
                share: 0.4,
                gap_ms: 7.5,
                parts: Vec::new(),
                rest_ms: 0.0,
            })
        }

        fn kv_growth() -> Statement {
            explained(Says::KvGrowth {
                bytes_per_token: 512,
                context: 4096,
                kv_bytes: 2_097_152,
                doubled_bytes: 4_194_304,
                weight_bytes: 100_000_000,
                equal_depth: None,
                most_context: 8192,
            })
        }

        fn measured() -> Vec<Statement> {
            vec![
                Statement::Ratio {
                    prefill: 400.0,
                    decode: 80.0,
                    ratio: 5.0,
                },
                Statement::CeilingShare {
                    decode: 80.0,
                    ceiling: 200.0,
                    share: 0.4,
                    weight_bytes: 100_000_000,
                    read_bytes_s: 20_000_000_000,
                },
                Statement::TokenTime {
                    token_ms: 12.5,
                    weights_ms: 5.0,
                },
            ]
        }

        fn name(statement: &Statement) -> String {
            let json = serde_json::to_value(statement).unwrap();
            let says = json.get("says").and_then(|says| says["says"].as_str());
            says.or(json["statement"].as_str()).unwrap().to_owned()
        }

        fn names(measured: Vec<Statement>, explained: Vec<Statement>) -> Vec<String> {
            let all = super::super::together(measured, explained);
            all.iter().map(name).collect()
        }

        #[test]
        fn what_the_estimator_says_with_its_parts_is_not_said_twice() {
            assert_eq!(
                names(
                    measured(),
                    vec![token_time(), gap(), judged(Verdict::Within), kv_growth()]
                ),
                ["ratio", "token_time", "gap", "judged", "kv_growth"]
            );
            // What holds for the model comes last.
            assert_eq!(
                names(measured(), vec![kv_growth()]),
                ["ratio", "ceiling_share", "token_time", "kv_growth"]
            );
        }

        #[test]
        fn a_cache_that_takes_a_good_part_of_a_token_stands_behind_its_time() {
            let said = vec![token_time(), kv_growth(), gap()];
            assert_eq!(
                names(measured(), said),
                ["ratio", "token_time", "kv_growth", "gap"]
            );
        }

        #[test]
        fn a_speed_that_is_not_as_expected_comes_first() {
            let said = vec![judged(Verdict::Slower), token_time(), gap()];
            assert_eq!(
                names(measured(), said),
                ["judged", "ratio", "token_time", "gap"]
            );
        }

        #[test]
        fn without_an_estimate_what_was_measured_is_said() {
            assert_eq!(
                names(measured(), Vec::new()),
                ["ratio", "ceiling_share", "token_time"]
            );
        }
    }
}
