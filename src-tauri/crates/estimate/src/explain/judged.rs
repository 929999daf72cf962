//! What was measured beside what is expected.

use super::says::{Phase, Reason, Says, Statement, Verdict};
use super::{Facts, rests, sound};
use crate::estimate::Estimate;
use crate::expected::{Term, TermBasis};
use crate::units::TokensPerSecond;

/// From this share of the time on, constants that were taken over may be the reason.
const RESEMBLING: f64 = 0.25;

/// Rule, for each speed: it was measured, and expected with its band.
pub(super) fn judged(facts: &Facts<'_>) -> Vec<Statement> {
    let Some(estimate) = facts.estimate else {
        return Vec::new();
    };
    let (decode, prefill) = (&estimate.decode, &estimate.prefill);
    let bands = [
        (
            Phase::Decode,
            facts.result.decode,
            [
                decode.expected_tok_s,
                decode.expected_low,
                decode.expected_high,
            ],
            &decode.breakdown,
        ),
        (
            Phase::Prefill,
            facts.result.prefill,
            [
                prefill.expected_tok_s,
                prefill.expected_low,
                prefill.expected_high,
            ],
            &prefill.breakdown,
        ),
    ];
    bands
        .into_iter()
        .filter_map(|(phase, measured, band, terms)| {
            Some(Statement {
                says: judge(phase, sound(measured)?, band, || reasons(facts, terms))?,
                rests: rests(estimate),
            })
        })
        .map(quick_is_not_disturbed)
        .collect()
}

fn judge(
    phase: Phase,
    measured: f64,
    band: [Option<TokensPerSecond>; 3],
    reasons: impl Fn() -> Vec<Reason>,
) -> Option<Says> {
    let [expected, low, high] = band.map(|speed| sound(speed.map(|speed| speed.0)));
    let (expected, low, high) = (expected?, low?, high?);
    let verdict = if measured < low {
        Verdict::Slower
    } else if measured > high {
        Verdict::Faster
    } else {
        Verdict::Within
    };
    Some(Says::Judged {
        phase,
        measured,
        expected,
        low,
        high,
        ratio: measured / expected,
        verdict,
        reasons: match verdict {
            Verdict::Within => Vec::new(),
            Verdict::Slower | Verdict::Faster => reasons(),
        },
    })
}

/// What disturbs a run takes time from it: it is no reason for a faster one.
fn quick_is_not_disturbed(mut statement: Statement) -> Statement {
    if let Says::Judged {
        verdict: Verdict::Faster,
        reasons,
        ..
    } = &mut statement.says
    {
        reasons.retain(|reason| *reason != Reason::Disturbed);
    }
    statement
}

/// What may be the reason, the likeliest first.
fn reasons(facts: &Facts<'_>, terms: &[Term]) -> Vec<Reason> {
    let mut found = Vec::new();
    if facts.result.disturbed {
        found.push(Reason::Disturbed);
    }
    if let Some(calibration) = facts.calibration {
        let result = &facts.result;
        if let Some(ran) = result.threads.filter(|ran| *ran != calibration.threads) {
            found.push(Reason::Threads {
                ran,
                calibrated: calibration.threads,
            });
        }
        if let Some(ran) = result.variant.filter(|ran| *ran != calibration.variant) {
            found.push(Reason::Variant {
                ran: ran.to_owned(),
                calibrated: calibration.variant.clone(),
            });
        }
        if let Some(ran) = result.build.filter(|ran| *ran != calibration.build) {
            found.push(Reason::Build {
                ran,
                calibrated: calibration.build,
            });
        }
    }
    if terms.iter().any(|term| term.basis == TermBasis::Published) {
        found.push(Reason::Published);
    }
    let share = share(terms, TermBasis::Resembling);
    if share >= RESEMBLING {
        found.push(Reason::Resembling { share });
    }
    found
}

/// The share of the time that rests on a basis.
fn share(terms: &[Term], basis: TermBasis) -> f64 {
    let of =
        |of: &dyn Fn(&&Term) -> bool| -> f64 { terms.iter().filter(of).map(|term| term.ns).sum() };
    let total = of(&|_| true);
    if total > 0.0 {
        of(&|term| term.basis == basis) / total
    } else {
        0.0
    }
}

/// Rule: something is expected, of another number of threads than ran, and no speed lies outside
/// its band, where that would be said as a reason.
pub(super) fn threads(facts: &Facts<'_>, judged: &[Statement]) -> Option<Statement> {
    let estimate = facts.estimate.filter(|estimate| is_expected(estimate))?;
    let (ran, calibrated) = (facts.result.threads?, facts.calibration?.threads);
    let is_said = judged.iter().any(|statement| {
        matches!(&statement.says, Says::Judged { verdict, .. } if *verdict != Verdict::Within)
    });
    (ran != calibrated && !is_said).then(|| Statement {
        says: Says::Threads { ran, calibrated },
        rests: rests(estimate),
    })
}

fn is_expected(estimate: &Estimate) -> bool {
    estimate.decode.expected_tok_s.is_some() || estimate.prefill.expected_tok_s.is_some()
}

#[cfg(test)]
mod tests {
    use super::super::Measured;
    use super::super::says::Rests;
    use super::super::tests::{calibration, decode, estimate, term};
    use super::*;
    use crate::calibration::Calibration;
    use crate::expected::What;

    /// 100 tok/s are expected, 92 to 108.
    fn hundred() -> Estimate {
        let mut estimate = decode(vec![term(What::Layers, 10e6, None)]);
        estimate.decode.expected_low = Some(TokensPerSecond(92.0));
        estimate.decode.expected_high = Some(TokensPerSecond(108.0));
        estimate
    }

    fn facts<'a>(
        estimate: &'a Estimate,
        calibration: Option<&'a Calibration>,
        decode: f64,
    ) -> Facts<'a> {
        Facts {
            estimate: Some(estimate),
            calibration,
            result: Measured {
                decode: Some(decode),
                threads: Some(2),
                variant: Some("zen4"),
                build: Some(11434),
                ..Measured::default()
            },
            ..Facts::default()
        }
    }

    fn only(facts: &Facts<'_>) -> (Verdict, f64, Vec<Reason>) {
        let said = judged(facts);
        let [
            Statement {
                says:
                    Says::Judged {
                        verdict,
                        ratio,
                        reasons,
                        ..
                    },
                ..
            },
        ] = &said[..]
        else {
            panic!("{said:?}");
        };
        (*verdict, *ratio, reasons.clone())
    }

    #[test]
    fn the_ends_of_the_band_belong_to_it() {
        let estimate = hundred();
        for (measured, expected) in [
            (91.9, Verdict::Slower),
            (92.0, Verdict::Within),
            (108.0, Verdict::Within),
            (108.1, Verdict::Faster),
        ] {
            let (verdict, ratio, reasons) = only(&facts(&estimate, None, measured));
            assert_eq!(verdict, expected, "{measured}");
            assert!((ratio - measured / 100.0).abs() < 1e-9);
            assert!(reasons.is_empty(), "none is known");
        }
    }

    #[test]
    fn both_speeds_are_judged_where_both_are_known() {
        let both = |estimate: &Estimate| -> Vec<(Phase, Verdict)> {
            let mut facts = facts(estimate, None, 100.0);
            facts.result.prefill = Some(500.0);
            let said = judged(&facts).into_iter();
            said.map(|said| match said.says {
                Says::Judged { phase, verdict, .. } => (phase, verdict),
                other => panic!("{other:?}"),
            })
            .collect()
        };
        let mut estimate = hundred();
        assert_eq!(
            both(&estimate),
            [(Phase::Decode, Verdict::Within)],
            "no prefill is expected"
        );
        estimate.prefill.expected_tok_s = Some(TokensPerSecond(400.0));
        estimate.prefill.expected_low = Some(TokensPerSecond(380.0));
        estimate.prefill.expected_high = Some(TokensPerSecond(420.0));
        assert_eq!(
            both(&estimate),
            [
                (Phase::Decode, Verdict::Within),
                (Phase::Prefill, Verdict::Faster)
            ]
        );
        let mut nothing = facts(&estimate, None, 100.0);
        nothing.result = Measured::default();
        assert!(judged(&nothing).is_empty(), "nothing was measured");
        assert!(judged(&Facts::default()).is_empty());
    }

    #[test]
    fn a_disturbed_run_is_a_reason_for_a_slower_one_alone() {
        let estimate = hundred();
        let mut slow = facts(&estimate, None, 60.0);
        slow.result.disturbed = true;
        assert_eq!(only(&slow).2, [Reason::Disturbed]);
        let mut quick = facts(&estimate, None, 160.0);
        quick.result.disturbed = true;
        assert!(only(&quick).2.is_empty());
        let mut within = facts(&estimate, None, 100.0);
        within.result.disturbed = true;
        assert!(only(&within).2.is_empty());
    }

    #[test]
    fn what_ran_otherwise_than_it_was_calibrated_is_a_reason() {
        let estimate = hundred();
        let alike = calibration(2, "zen4", 11434);
        assert!(only(&facts(&estimate, Some(&alike), 60.0)).2.is_empty());
        let other = calibration(4, "haswell", 11000);
        assert_eq!(
            only(&facts(&estimate, Some(&other), 60.0)).2,
            [
                Reason::Threads {
                    ran: 2,
                    calibrated: 4
                },
                Reason::Variant {
                    ran: "zen4".into(),
                    calibrated: "haswell".into()
                },
                Reason::Build {
                    ran: 11434,
                    calibrated: 11000
                },
            ]
        );
        // What is not known of the run is no difference.
        let mut unknown = facts(&estimate, Some(&other), 60.0);
        unknown.result.threads = None;
        unknown.result.variant = None;
        unknown.result.build = None;
        assert!(only(&unknown).2.is_empty());
    }

    #[test]
    fn constants_that_were_taken_over_are_a_reason_from_a_quarter_on() {
        let mut estimate = hundred();
        let mut taken = term(What::Attention, 3.3e6, None);
        taken.basis = TermBasis::Resembling;
        estimate.decode.breakdown.push(taken);
        // 3.3 of 13.3 ms.
        assert!(only(&facts(&estimate, None, 60.0)).2.is_empty());
        estimate.decode.breakdown[1].ns = 3.4e6;
        let reasons = only(&facts(&estimate, None, 60.0)).2;
        assert!(matches!(reasons[..], [Reason::Resembling { share }] if share > 0.25));
    }

    #[test]
    fn published_figures_are_a_reason_and_what_it_rests_on() {
        let mut estimate = hundred();
        estimate.decode.breakdown[0].basis = TermBasis::Published;
        let facts = facts(&estimate, None, 60.0);
        assert_eq!(only(&facts).2, [Reason::Published]);
        assert_eq!(judged(&facts)[0].rests, Rests::Published);
    }

    #[test]
    fn other_threads_are_said_where_no_speed_says_so() {
        let estimate_of = hundred();
        let four = calibration(4, "zen4", 11434);
        let within = facts(&estimate_of, Some(&four), 100.0);
        let said = threads(&within, &judged(&within)).map(|said| said.says);
        assert_eq!(
            said,
            Some(Says::Threads {
                ran: 2,
                calibrated: 4
            })
        );
        let outside = facts(&estimate_of, Some(&four), 60.0);
        assert_eq!(threads(&outside, &judged(&outside)), None, "it is a reason");
        let two = calibration(2, "zen4", 11434);
        let alike = facts(&estimate_of, Some(&two), 100.0);
        assert_eq!(threads(&alike, &judged(&alike)), None);
        let nothing = estimate();
        let unexpected = facts(&nothing, Some(&four), 100.0);
        assert_eq!(threads(&unexpected, &[]), None, "nothing is expected");
    }
}
