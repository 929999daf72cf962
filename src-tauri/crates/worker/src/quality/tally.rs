//! What all judged tokens come to.

use twospeed_engine::protocol::{AgainstBase, QualityReading};

use crate::quality::score::{Distance, Scored};

/// The figures of these tokens (at least two); `None` when one of them is no number.
pub fn reading(n_ctx: u32, chunks: u32, scored: &[Scored]) -> Option<QualityReading> {
    let surprises: Vec<f64> = scored.iter().map(|token| token.surprise).collect();
    let (mean, error) = mean_and_error(&surprises);
    let perplexity = mean.exp();
    let reading = QualityReading {
        n_ctx,
        chunks,
        n_scored: scored.len() as u64,
        perplexity,
        perplexity_error: perplexity * error,
        against_base: against_base(scored),
    };
    let against = reading.against_base.map_or(0.0, |against| {
        against.base_perplexity + against.kl_error + against.kl_max
    });
    // A sum is a number only where all its parts are.
    (reading.perplexity + reading.perplexity_error + against)
        .is_finite()
        .then_some(reading)
}

fn against_base(scored: &[Scored]) -> Option<AgainstBase> {
    let distances: Option<Vec<Distance>> = scored.iter().map(|token| token.against_base).collect();
    let distances = distances?;
    let base: Vec<f64> = distances.iter().map(|token| token.base_surprise).collect();
    let mut divergences: Vec<f64> = distances.iter().map(|token| token.divergence).collect();
    let (kl_mean, kl_error) = mean_and_error(&divergences);
    divergences.sort_unstable_by(f64::total_cmp);
    let same = distances.iter().filter(|token| token.same_top).count();
    Some(AgainstBase {
        base_perplexity: mean_and_error(&base).0.exp(),
        kl_mean,
        kl_error,
        kl_max: quantile(&divergences, 1.0),
        kl_p99: quantile(&divergences, 0.99),
        kl_median: quantile(&divergences, 0.5),
        same_top: same as f64 / distances.len() as f64,
    })
}

/// The mean and its standard error: sqrt((mean of squares - square of mean) / (n - 1)).
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = |value: &f64| (value - mean) * (value - mean);
    let variance = values.iter().map(square).sum::<f64>() / count;
    (mean, (variance / (count - 1.0)).sqrt())
}

/// The value below which that share of the sorted values lies, in between by the straight line from
/// one to the next.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = share * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    let part = place - below as f64;
    (1.0 - part) * sorted[below] + part * sorted[above]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(surprise: f64, divergence: f64, same_top: bool) -> Scored {
        Scored {
            surprise,
            against_base: Some(Distance {
                base_surprise: surprise / 2.0,
                divergence,
                same_top,
            }),
        }
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }

    #[test]
    fn perplexity_is_exp_of_the_mean_surprise() {
        let alone = |surprise| Scored {
            surprise,
            against_base: None,
        };
        let found = reading(512, 1, &[alone(1.0), alone(2.0), alone(6.0)]).unwrap();
        close(found.perplexity, 3.0_f64.exp());
        // Variance (4 + 1 + 9) / 3, over n - 1 = 2: the root of 7 / 3.
        close(
            found.perplexity_error,
            3.0_f64.exp() * (7.0_f64 / 3.0).sqrt(),
        );
        assert_eq!((found.n_ctx, found.chunks, found.n_scored), (512, 1, 3));
        assert_eq!(found.against_base, None);
    }

    #[test]
    fn divergences_are_told_by_their_spread() {
        let tokens: Vec<Scored> = (0..=100)
            .rev()
            .map(|n| token(4.0, f64::from(n * n), n % 4 != 0))
            .collect();
        let found = reading(512, 1, &tokens).unwrap().against_base.unwrap();
        close(found.base_perplexity, 2.0_f64.exp());
        // 100 x 101 x 201 / 6 / 101.
        close(found.kl_mean, 3_350.0);
        close(found.kl_max, 10_000.0);
        close(found.kl_p99, 9_801.0);
        close(found.kl_median, 2_500.0);
        // 0, 4, .. 100 are 26 of 101.
        close(found.same_top, 75.0 / 101.0);
    }

    #[test]
    fn a_place_between_two_values_lies_on_the_line_between_them() {
        close(quantile(&[1.0, 2.0], 0.5), 1.5);
        close(quantile(&[0.0, 10.0, 30.0], 0.75), 20.0);
        close(quantile(&[7.0], 0.99), 7.0);
    }

    #[test]
    fn no_figure_is_made_of_what_is_no_number() {
        let sound = token(1.0, 0.1, true);
        for broken in [
            token(f64::NAN, 0.1, true),
            token(1.0, f64::NAN, true),
            token(1.0, f64::INFINITY, true),
            token(2_000.0, 0.1, true),
        ] {
            assert_eq!(reading(512, 1, &[sound, broken]), None, "{broken:?}");
        }
        assert!(reading(512, 1, &[sound, sound]).is_some());
    }
}
