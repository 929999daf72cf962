//! Why the larger of two quantizations may read a prompt faster while it writes slower.

use twospeed_gguf::TensorType;

use super::says::{RateSide, Says, Statement};
use super::time::matrix;
use super::{Facts, rests, sound};
use crate::estimate::Estimate;
use crate::expected::Term;

/// Speeds nearer to each other than this are alike.
const ALIKE: f64 = 1.03;

/// Rule: of two quantizations of a model one is clearly faster in prefill and the other in decode;
/// the one that prefills faster reads more bytes for a token, and multiplies its main type by a
/// batch at a higher rate. Both speeds are the measured ones where all four are measured, otherwise
/// the expected ones.
pub(super) fn rates(facts: &Facts<'_>) -> Option<Statement> {
    let (own, beside) = (facts.estimate?, facts.beside?);
    let measured = || {
        Some([
            Side {
                estimate: own,
                label: facts.model.quantization?,
                prefill: sound(facts.result.prefill)?,
                decode: sound(facts.result.decode)?,
            },
            Side {
                estimate: beside.estimate,
                label: beside.quantization,
                prefill: sound(beside.prefill)?,
                decode: sound(beside.decode)?,
            },
        ])
    };
    let expected = || {
        Some([
            Side::expected(own, facts.model.quantization?)?,
            Side::expected(beside.estimate, beside.quantization)?,
        ])
    };
    let is_measured = measured().is_some();
    let [one, other] = measured().or_else(expected)?;
    let (reads, writes) = if one.prefill >= other.prefill {
        (one, other)
    } else {
        (other, one)
    };
    let prefill_ratio = reads.prefill / writes.prefill;
    let decode_ratio = writes.decode / reads.decode;
    if prefill_ratio < ALIKE || decode_ratio < ALIKE {
        return None;
    }
    let (reads_faster, writes_faster) = (reads.rate()?, writes.rate()?);
    let is_why = reads_faster.weight_bytes > writes_faster.weight_bytes
        && reads_faster.flops_s > writes_faster.flops_s;
    is_why.then(|| Statement {
        says: Says::Rates {
            reads_faster,
            writes_faster,
            prefill_ratio,
            decode_ratio,
            is_measured,
        },
        rests: rests(own),
    })
}

/// One of the two.
#[derive(Clone, Copy)]
struct Side<'a> {
    estimate: &'a Estimate,
    label: &'a str,
    prefill: f64,
    decode: f64,
}

impl<'a> Side<'a> {
    fn expected(estimate: &'a Estimate, label: &'a str) -> Option<Self> {
        Some(Self {
            estimate,
            label,
            prefill: sound(estimate.prefill.expected_tok_s.map(|speed| speed.0))?,
            decode: sound(estimate.decode.expected_tok_s.map(|speed| speed.0))?,
        })
    }

    fn rate(&self) -> Option<RateSide> {
        let (tensor_type, flops_s) = main_rate(&self.estimate.prefill.breakdown)?;
        Some(RateSide {
            label: self.label.to_owned(),
            tensor_type: tensor_type.name().to_owned(),
            flops_s,
            weight_bytes: self.estimate.decode.weight_bytes_per_token?.0,
        })
    }
}

/// The type that most operations of a prompt are done in, and how many it does in a second.
fn main_rate(terms: &[Term]) -> Option<(TensorType, f64)> {
    let mut found: Vec<(TensorType, u64, f64)> = Vec::new();
    for term in terms {
        let (Some(tensor_type), Some(flops)) = (matrix(term.what), term.flops) else {
            continue;
        };
        match found.iter_mut().find(|(other, ..)| *other == tensor_type) {
            Some((_, all, ns)) => {
                *all = all.saturating_add(flops.0);
                *ns += term.ns;
            }
            None => found.push((tensor_type, flops.0, term.ns)),
        }
    }
    let (tensor_type, flops, ns) = found.into_iter().max_by_key(|(_, flops, _)| *flops)?;
    let rate = flops as f64 / ns * 1e9;
    (rate.is_finite() && rate > 0.0).then_some((tensor_type, rate))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{decode, term};
    use super::super::{Beside, Measured, ModelKnown};
    use super::*;
    use crate::expected::What;
    use crate::units::{Bytes, Flops, TokensPerSecond};
    use TensorType::{Q4K, Q6K, Q8_0};

    /// A file that reads `bytes` for a token, and whose prompt is 200 GFLOP in its main type.
    fn file(tensor_type: TensorType, ns: f64, bytes: u64) -> Estimate {
        let mut estimate = decode(vec![term(What::Layers, 10e6, None)]);
        let mut main = term(What::Weights { tensor_type }, ns, Some(bytes));
        main.flops = Some(Flops(200_000_000_000));
        let mut little = term(What::Weights { tensor_type: Q6K }, 1e9, Some(10));
        little.flops = Some(Flops(50_000_000_000));
        estimate.prefill.breakdown = vec![little, main];
        estimate.decode.weight_bytes_per_token = Some(Bytes(bytes));
        estimate
    }

    fn facts<'a>(
        own: &'a Estimate,
        speeds: [f64; 2],
        other: &'a Estimate,
        of_other: [f64; 2],
    ) -> Facts<'a> {
        Facts {
            model: ModelKnown {
                quantization: Some("Q8_0"),
                ..ModelKnown::default()
            },
            estimate: Some(own),
            result: Measured {
                prefill: Some(speeds[0]),
                decode: Some(speeds[1]),
                ..Measured::default()
            },
            beside: Some(Beside {
                quantization: "Q4_K_M",
                estimate: other,
                prefill: Some(of_other[0]),
                decode: Some(of_other[1]),
            }),
            ..Facts::default()
        }
    }

    #[test]
    fn q8_0_reads_faster_by_its_rate_and_writes_slower_by_its_bytes() {
        let (large, small) = (file(Q8_0, 0.4e9, 800), file(Q4K, 0.5e9, 500));
        let facts = facts(&large, [500.0, 20.0], &small, [400.0, 30.0]);
        let said = rates(&facts).unwrap();
        let Says::Rates {
            reads_faster,
            writes_faster,
            prefill_ratio,
            decode_ratio,
            is_measured,
        } = said.says
        else {
            panic!("{said:?}");
        };
        // 200 GFLOP in 0.4 s and in 0.5 s.
        assert_eq!(
            (
                reads_faster.label.as_str(),
                reads_faster.tensor_type.as_str()
            ),
            ("Q8_0", "Q8_0")
        );
        assert!((reads_faster.flops_s - 500e9).abs() < 1.0);
        assert_eq!(writes_faster.tensor_type, "Q4_K", "not its few of Q6_K");
        assert!((writes_faster.flops_s - 400e9).abs() < 1.0);
        assert_eq!(
            (reads_faster.weight_bytes, writes_faster.weight_bytes),
            (800, 500)
        );
        assert!((prefill_ratio - 1.25).abs() < 1e-9 && (decode_ratio - 1.5).abs() < 1e-9);
        assert!(is_measured);
    }

    #[test]
    fn it_is_said_of_either_of_the_two() {
        let (large, small) = (file(Q8_0, 0.4e9, 800), file(Q4K, 0.5e9, 500));
        let turned = facts(&small, [400.0, 30.0], &large, [500.0, 20.0]);
        let Some(Says::Rates { writes_faster, .. }) = rates(&turned).map(|said| said.says) else {
            panic!("nothing is said");
        };
        assert_eq!(writes_faster.weight_bytes, 500);
    }

    #[test]
    fn nothing_is_said_where_one_is_faster_in_both_or_they_are_alike() {
        let (large, small) = (file(Q8_0, 0.4e9, 800), file(Q4K, 0.5e9, 500));
        let said =
            |own: [f64; 2], other: [f64; 2]| rates(&facts(&large, own, &small, other)).is_some();
        assert!(said([500.0, 20.0], [400.0, 30.0]));
        assert!(!said([500.0, 30.0], [400.0, 20.0]), "faster in both");
        assert!(!said([408.0, 20.0], [400.0, 30.0]), "2 % are alike");
        assert!(!said([500.0, 20.0], [400.0, 20.4]), "2 % are alike");
    }

    #[test]
    fn nothing_is_said_where_rate_and_bytes_do_not_explain_it() {
        let speeds = ([500.0, 20.0], [400.0, 30.0]);
        let (large, small) = (file(Q8_0, 0.6e9, 800), file(Q4K, 0.5e9, 500));
        assert_eq!(
            rates(&facts(&large, speeds.0, &small, speeds.1)),
            None,
            "a lower rate"
        );
        let (large, small) = (file(Q8_0, 0.4e9, 400), file(Q4K, 0.5e9, 500));
        assert_eq!(
            rates(&facts(&large, speeds.0, &small, speeds.1)),
            None,
            "fewer bytes"
        );
    }

    #[test]
    fn expected_speeds_stand_in_where_not_all_were_measured() {
        let (mut large, mut small) = (file(Q8_0, 0.4e9, 800), file(Q4K, 0.5e9, 500));
        let mut facts_of = facts(&large, [500.0, 20.0], &small, [400.0, 30.0]);
        facts_of.result.prefill = None;
        assert_eq!(rates(&facts_of), None, "no prefill is expected");
        let expect = |estimate: &mut Estimate, prefill, decode| {
            estimate.prefill.expected_tok_s = Some(TokensPerSecond(prefill));
            estimate.decode.expected_tok_s = Some(TokensPerSecond(decode));
        };
        expect(&mut large, 500.0, 20.0);
        expect(&mut small, 400.0, 40.0);
        let mut facts_of = facts(&large, [500.0, 20.0], &small, [400.0, 30.0]);
        facts_of.result.prefill = None;
        let Some(Says::Rates {
            decode_ratio,
            is_measured: false,
            ..
        }) = rates(&facts_of).map(|said| said.says)
        else {
            panic!("nothing is said");
        };
        assert!((decode_ratio - 2.0).abs() < 1e-9);
        assert_eq!(
            rates(&Facts {
                beside: None,
                ..facts_of
            }),
            None
        );
    }
}
