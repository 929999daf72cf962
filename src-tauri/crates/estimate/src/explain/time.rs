//! Where the time of a written token goes.

use twospeed_gguf::TensorType;

use super::says::{GapPart, Portion, Says, Statement, TimePart};
use super::{Facts, rests, sound};
use crate::estimate::Estimate;
use crate::expected::{Term, What};

/// A type is told of when its matrices take this share of a token's time ...
const LARGE: f64 = 0.1;
/// ... and come slower than this share of the speed that memory is read with: beyond what the two
/// ways of measuring differ by.
const SLOW: f64 = 0.7;

/// Rule: something is expected of decode.
pub(super) fn token_time(facts: &Facts<'_>) -> Option<Statement> {
    let estimate = facts.estimate?;
    let parts = parts(&estimate.decode.breakdown);
    let total = sum(&parts)?;
    let weights = weights_ms(&parts);
    let mut shares: Vec<TimePart> = parts
        .iter()
        .map(|(portion, ms)| TimePart {
            portion: *portion,
            ms: *ms,
            share: ms / total,
        })
        .collect();
    shares.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    Some(Statement {
        says: Says::TokenTime {
            total_ms: total,
            weights_ms: weights,
            weights_share: weights / total,
            parts: shares,
        },
        rests: rests(estimate),
    })
}

/// Rule: the ceiling is known, decode is below it, and the expected time of a token is known by
/// its parts. Where decode was not measured, what is expected stands for it.
pub(super) fn gap(facts: &Facts<'_>) -> Option<Statement> {
    let estimate = facts.estimate?;
    let ceiling = sound(estimate.decode.ceiling_tok_s.map(|speed| speed.0))?;
    let parts = parts(&estimate.decode.breakdown);
    let total = sum(&parts)?;
    let measured = sound(facts.result.decode);
    let expected = sound(estimate.decode.expected_tok_s.map(|speed| speed.0));
    let decode = measured.or(expected)?;
    if decode >= ceiling {
        return None;
    }
    let (token_ms, at_ceiling) = (1e3 / decode, 1e3 / ceiling);
    let slower_weights = (Portion::Weights, weights_ms(&parts) - at_ceiling);
    let others = parts.iter().filter(|(portion, _)| !is_weights(*portion));
    let mut parts: Vec<GapPart> = std::iter::once(&slower_weights)
        .chain(others)
        .map(|(portion, ms)| GapPart {
            portion: *portion,
            ms: *ms,
        })
        .collect();
    parts.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    Some(Statement {
        says: Says::Gap {
            decode,
            is_measured: measured.is_some(),
            ceiling,
            share: decode / ceiling,
            gap_ms: token_ms - at_ceiling,
            parts,
            rest_ms: token_ms - total,
        },
        rests: rests(estimate),
    })
}

/// Rule: the matrices of a type take a good part of a token's time, and are read clearly slower
/// than memory is. Of several types the one that loses most.
pub(super) fn unpacking(facts: &Facts<'_>) -> Option<Statement> {
    let estimate = facts.estimate?;
    let read = estimate.at.bandwidth_bytes_s?.0;
    let total: f64 = estimate.decode.breakdown.iter().map(|term| term.ns).sum();
    let (tensor_type, bytes, ns) = by_type(&estimate.decode.breakdown)
        .into_iter()
        .filter(|(_, bytes, ns)| {
            *ns >= LARGE * total && *bytes as f64 / ns * 1e9 < SLOW * read as f64
        })
        .max_by(|a, b| lost(a, read).total_cmp(&lost(b, read)))?;
    Some(Statement {
        says: Says::Unpacking {
            tensor_type: tensor_type.name().to_owned(),
            ms: ns / 1e6,
            share: ns / total,
            rate_bytes_s: (bytes as f64 / ns * 1e9).round() as u64,
            read_bytes_s: read,
        },
        rests: rests(estimate),
    })
}

/// The share of a token's expected time that attention takes; 0 where nothing is expected.
pub(super) fn attention_share(facts: &Facts<'_>) -> f64 {
    let share = |estimate: &Estimate| {
        let parts = parts(&estimate.decode.breakdown);
        let total = sum(&parts)?;
        let attention = parts
            .iter()
            .find(|(portion, _)| *portion == Portion::Attention);
        Some(attention?.1 / total)
    };
    facts.estimate.and_then(share).unwrap_or(0.0)
}

/// What the rest would take if it were read as fast as memory is.
fn lost((_, bytes, ns): &(TensorType, u64, f64), read: u64) -> f64 {
    ns - *bytes as f64 / read as f64 * 1e9
}

/// Matrices by their type: bytes and nanoseconds.
fn by_type(terms: &[Term]) -> Vec<(TensorType, u64, f64)> {
    let mut found: Vec<(TensorType, u64, f64)> = Vec::new();
    for term in terms {
        let (Some(tensor_type), Some(bytes)) = (matrix(term.what), term.bytes) else {
            continue;
        };
        match found.iter_mut().find(|(other, ..)| *other == tensor_type) {
            Some((_, all, ns)) => {
                *all = all.saturating_add(bytes.0);
                *ns += term.ns;
            }
            None => found.push((tensor_type, bytes.0, term.ns)),
        }
    }
    found.retain(|(_, _, ns)| ns.is_finite() && *ns > 0.0);
    found
}

/// The type of a term that is a matrix.
pub(super) fn matrix(what: What) -> Option<TensorType> {
    match what {
        What::Weights { tensor_type }
        | What::Experts { tensor_type }
        | What::Output { tensor_type } => Some(tensor_type),
        What::Attention | What::State | What::Layers | What::Step => None,
    }
}

/// Milliseconds of each portion, in the order of the terms.
fn parts(terms: &[Term]) -> Vec<(Portion, f64)> {
    let mut found: Vec<(Portion, f64)> = Vec::new();
    for term in terms
        .iter()
        .filter(|term| term.ns.is_finite() && term.ns > 0.0)
    {
        let portion = portion(term.what);
        let ms = term.ns / 1e6;
        match found.iter_mut().find(|(other, _)| *other == portion) {
            Some((_, sum)) => *sum += ms,
            None => found.push((portion, ms)),
        }
    }
    found
}

fn portion(what: What) -> Portion {
    match what {
        What::Weights { .. } => Portion::Weights,
        What::Experts { .. } => Portion::Experts,
        What::Output { .. } => Portion::Output,
        What::Attention => Portion::Attention,
        What::State => Portion::State,
        What::Layers => Portion::Layers,
        What::Step => Portion::Step,
    }
}

fn is_weights(portion: Portion) -> bool {
    matches!(
        portion,
        Portion::Weights | Portion::Experts | Portion::Output
    )
}

/// Milliseconds of all that is read as weights.
fn weights_ms(parts: &[(Portion, f64)]) -> f64 {
    let weights = parts.iter().filter(|(portion, _)| is_weights(*portion));
    weights.map(|(_, ms)| ms).sum()
}

/// All milliseconds; `None` of nothing.
fn sum(parts: &[(Portion, f64)]) -> Option<f64> {
    let total: f64 = parts.iter().map(|(_, ms)| ms).sum();
    (total > 0.0).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::super::Rests;
    use super::super::tests::{decode, estimate, term};
    use super::*;
    use crate::units::{BytesPerSecond, TokensPerSecond};
    use TensorType::{Q4K, Q6K};

    /// 5 ms of layers' matrices, 2 ms of output, 1 ms of attention, 1.5 ms and 0.5 ms beside: 10 ms.
    fn ten_ms() -> Estimate {
        decode(vec![
            term(What::Weights { tensor_type: Q4K }, 4e6, Some(60_000_000)),
            term(What::Weights { tensor_type: Q6K }, 1e6, Some(12_000_000)),
            term(What::Attention, 1e6, Some(8_000_000)),
            term(What::Layers, 1.5e6, None),
            term(What::Output { tensor_type: Q6K }, 2e6, Some(28_000_000)),
            term(What::Step, 0.5e6, None),
        ])
    }

    fn facts(estimate: &Estimate, measured: Option<f64>) -> Facts<'_> {
        let mut facts = Facts {
            estimate: Some(estimate),
            ..Facts::default()
        };
        facts.result.decode = measured;
        facts
    }

    #[test]
    fn a_token_is_its_parts_the_longest_first() {
        let estimate = ten_ms();
        let Some(Statement {
            says:
                Says::TokenTime {
                    total_ms,
                    weights_ms,
                    weights_share,
                    parts,
                },
            rests,
        }) = token_time(&facts(&estimate, None))
        else {
            panic!("nothing is said");
        };
        assert_eq!(rests, Rests::Calibrated);
        assert!((total_ms - 10.0).abs() < 1e-9);
        // 4 + 1 of the layers and 2 of the output.
        assert!((weights_ms - 7.0).abs() < 1e-9);
        assert!((weights_share - 0.7).abs() < 1e-9);
        let order: Vec<Portion> = parts.iter().map(|part| part.portion).collect();
        let expected = [
            Portion::Weights,
            Portion::Output,
            Portion::Layers,
            Portion::Attention,
            Portion::Step,
        ];
        assert_eq!(order, expected);
        assert!((parts[0].ms - 5.0).abs() < 1e-9 && (parts[0].share - 0.5).abs() < 1e-9);
    }

    #[test]
    fn without_an_expectation_nothing_is_said_of_time() {
        let estimate = estimate();
        let facts = facts(&estimate, Some(80.0));
        assert_eq!(token_time(&facts), None);
        assert_eq!(gap(&facts), None);
        assert_eq!(unpacking(&facts), None);
        assert_eq!(attention_share(&facts), 0.0);
        assert_eq!(token_time(&Facts::default()), None);
    }

    #[test]
    fn the_parts_of_the_gap_and_the_rest_are_the_gap() {
        let mut estimate = ten_ms();
        // A ceiling of 200 tok/s is 5 ms; measured 80 tok/s is 12.5 ms.
        estimate.decode.ceiling_tok_s = Some(TokensPerSecond(200.0));
        let said = gap(&facts(&estimate, Some(80.0))).unwrap();
        let Says::Gap {
            share,
            gap_ms,
            parts,
            rest_ms,
            is_measured: true,
            ..
        } = said.says
        else {
            panic!("{said:?}");
        };
        assert!((share - 0.4).abs() < 1e-9);
        assert!((gap_ms - 7.5).abs() < 1e-9);
        // Weights take 7 ms where the ceiling gives them 5; 10 ms are expected and 12.5 measured.
        let of = |portion| {
            parts
                .iter()
                .find(|part| part.portion == portion)
                .unwrap()
                .ms
        };
        assert!((of(Portion::Weights) - 2.0).abs() < 1e-9);
        assert!((of(Portion::Layers) - 1.5).abs() < 1e-9);
        assert!((rest_ms - 2.5).abs() < 1e-9);
        let sum: f64 = parts.iter().map(|part| part.ms).sum();
        assert!((sum + rest_ms - gap_ms).abs() < 1e-9);
        assert_eq!(parts[0].portion, Portion::Weights, "the largest first");
    }

    #[test]
    fn what_is_expected_stands_in_where_decode_was_not_measured() {
        let mut estimate = ten_ms();
        estimate.decode.ceiling_tok_s = Some(TokensPerSecond(200.0));
        let said = gap(&facts(&estimate, None)).unwrap();
        let Says::Gap {
            decode,
            is_measured: false,
            rest_ms,
            ..
        } = said.says
        else {
            panic!("{said:?}");
        };
        assert!((decode - 100.0).abs() < 1e-9);
        assert!(rest_ms.abs() < 1e-9);
    }

    #[test]
    fn at_or_above_the_ceiling_there_is_no_gap() {
        let mut estimate = ten_ms();
        assert_eq!(gap(&facts(&estimate, Some(80.0))), None, "no ceiling");
        estimate.decode.ceiling_tok_s = Some(TokensPerSecond(80.0));
        assert_eq!(gap(&facts(&estimate, Some(80.0))), None);
        assert!(gap(&facts(&estimate, Some(79.0))).is_some());
    }

    #[test]
    fn a_type_that_comes_slower_than_memory_is_unpacked() {
        // Q4_K: 60 MB in 4 ms are 15 GB/s; Q6_K: 40 MB in 3 ms are 13.3 GB/s.
        let mut estimate = ten_ms();
        estimate.at.bandwidth_bytes_s = BytesPerSecond::from_gb_s(30.0);
        let said = unpacking(&facts(&estimate, None)).unwrap();
        let Says::Unpacking {
            tensor_type,
            ms,
            share,
            rate_bytes_s,
            read_bytes_s,
        } = said.says
        else {
            panic!("{said:?}");
        };
        // At 30 GB/s Q4_K would take 2 ms and loses 2; Q6_K would take 1.33 and loses 1.67.
        assert_eq!(tensor_type, "Q4_K");
        assert!((ms - 4.0).abs() < 1e-9 && (share - 0.4).abs() < 1e-9);
        assert_eq!(
            (rate_bytes_s, read_bytes_s),
            (15_000_000_000, 30_000_000_000)
        );
    }

    #[test]
    fn a_type_that_comes_as_fast_as_memory_is_not_unpacked() {
        let mut estimate = ten_ms();
        // 0.7 x 19 GB/s = 13.3 GB/s, just below Q6_K's 13.33.
        estimate.at.bandwidth_bytes_s = BytesPerSecond::from_gb_s(19.0);
        assert_eq!(unpacking(&facts(&estimate, None)), None);
        estimate.at.bandwidth_bytes_s = None;
        assert_eq!(unpacking(&facts(&estimate, None)), None, "not known");
        // Slow, and too little to matter: 0.5 of 10.5 ms.
        let mut little = ten_ms();
        little.at.bandwidth_bytes_s = BytesPerSecond::from_gb_s(19.0);
        let f16 = What::Weights {
            tensor_type: TensorType::F16,
        };
        little.decode.breakdown.push(term(f16, 0.5e6, Some(1_000)));
        assert_eq!(unpacking(&facts(&little, None)), None);
    }

    #[test]
    fn attention_has_its_share() {
        let estimate = ten_ms();
        assert!((attention_share(&facts(&estimate, None)) - 0.1).abs() < 1e-9);
    }
}
