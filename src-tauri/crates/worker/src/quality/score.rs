//! How well one prediction fits the token that came, by llama-perplexity's formulas (its
//! `--kl-divergence`, build 11434).

/// A token that was judged. All values are in nats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Negative log-likelihood of the token that came.
    pub surprise: f64,
    /// How far the prediction is from the base model's, where there is one.
    pub against_base: Option<Distance>,
}

/// How far a prediction is from that of the base model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distance {
    /// The base model's surprise at the same token.
    pub base_surprise: f64,
    /// Kullback-Leibler divergence of the prediction from the base model's.
    pub divergence: f64,
    /// Whether both take the same token for the likeliest.
    pub same_top: bool,
}

/// Judges a prediction, given as the logits of the whole vocabulary (at least one), by the token
/// that came. Logits that are no numbers give a surprise that is none.
pub fn score(logits: &[f32], base: Option<&[f32]>, token: usize) -> Scored {
    let prediction = Prediction::of(logits);
    Scored {
        surprise: -prediction.log_probability(token),
        against_base: base.map(|base| Rounded::of(base).distance(&prediction, token)),
    }
}

/// Logits with what makes probabilities of them.
struct Prediction<'a> {
    logits: &'a [f32],
    /// The likeliest token, the first of several.
    top: usize,
    highest: f32,
    /// Logarithm of the sum of exp(logit - highest).
    log_sum: f64,
}

impl<'a> Prediction<'a> {
    fn of(logits: &'a [f32]) -> Self {
        let (mut top, mut highest) = (0, logits[0]);
        for (token, logit) in logits.iter().enumerate() {
            if *logit > highest {
                (top, highest) = (token, *logit);
            }
        }
        let sum: f64 = logits.iter().map(|l| f64::from((l - highest).exp())).sum();
        Self {
            logits,
            top,
            highest,
            log_sum: sum.ln(),
        }
    }

    fn log_probability(&self, token: usize) -> f64 {
        f64::from(self.logits[token] - self.highest) - self.log_sum
    }
}

/// How far below the likeliest token the representation reaches, in nats.
const DEPTH: f32 = 16.0;

/// Probabilities below exp of this do not count.
const LEAST: f32 = -16.0;

/// Number of steps between the lowest and the highest logarithm.
const STEPS: f32 = 65_535.0;

/// The base model's logarithms of probabilities as llama-perplexity keeps them in its file: 65,536
/// equal steps from the likeliest token down to the unlikeliest, or to 16 nats below; what lies
/// lower is raised to that. Published figures have this in them, so it is done here as well.
struct Rounded<'a> {
    logits: &'a [f32],
    lowest: f32,
    step: f32,
    steps_a_nat: f32,
    lowest_log: f32,
}

impl<'a> Rounded<'a> {
    fn of(logits: &'a [f32]) -> Self {
        let whole = Prediction::of(logits);
        let lowest = logits.iter().copied().fold(whole.highest, f32::min);
        let lowest = lowest.max(whole.highest - DEPTH);
        let step = (whole.highest - lowest) / STEPS;
        Self {
            logits,
            lowest,
            step,
            // All logits equal: every token is at the lowest step.
            steps_a_nat: if step > 0.0 { 1.0 / step } else { 0.0 },
            lowest_log: lowest - whole.highest - whole.log_sum as f32,
        }
    }

    fn log_probability(&self, logit: f32) -> f32 {
        let steps = if logit > self.lowest {
            nearest(self.steps_a_nat * (logit - self.lowest))
        } else {
            0.0
        };
        self.step * steps + self.lowest_log
    }

    fn distance(&self, prediction: &Prediction<'_>, token: usize) -> Distance {
        let (mut top, mut highest) = (0, f32::NEG_INFINITY);
        let mut divergence = 0.0;
        let to_log = f64::from(prediction.highest) + prediction.log_sum;
        for (index, (base, own)) in self.logits.iter().zip(prediction.logits).enumerate() {
            let base_log = self.log_probability(*base);
            if base_log > highest {
                (top, highest) = (index, base_log);
            }
            if base_log > LEAST {
                let own_log = f64::from(*own) - to_log;
                divergence += f64::from(base_log.exp()) * (f64::from(base_log) - own_log);
            }
        }
        Distance {
            base_surprise: -f64::from(self.log_probability(self.logits[token])),
            divergence,
            same_top: top == prediction.top,
        }
    }
}

/// The nearest whole number, the even one of two, of a value from 0 to 2^22: adding 1.5 x 2^23
/// leaves no room for a fraction. `round_ties_even` is a call for each logit on processors that
/// this may run on.
fn nearest(value: f32) -> f32 {
    const ROOM: f32 = 12_582_912.0;
    (value + ROOM) - ROOM
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() < within, "{found} {expected}");
    }

    /// Logits of these probabilities.
    fn logits(probabilities: &[f32]) -> Vec<f32> {
        probabilities.iter().map(|p| p.ln() + 3.0).collect()
    }

    #[test]
    fn surprise_is_the_logarithm_of_one_over_the_probability() {
        let scored = score(&logits(&[0.5, 0.25, 0.125, 0.125]), None, 1);
        close(scored.surprise, 4.0_f64.ln(), 1e-6);
        assert_eq!(scored.against_base, None);
    }

    #[test]
    fn divergence_is_the_sum_over_the_base_models_probabilities() {
        let base = logits(&[0.5, 0.25, 0.25]);
        let own = logits(&[0.25, 0.5, 0.25]);
        let distance = score(&own, Some(&base), 0).against_base.unwrap();
        // 0.5 ln(0.5 / 0.25) + 0.25 ln(0.25 / 0.5) + 0.25 ln 1 = 0.25 ln 2; the steps of this
        // representation are ln 2 / 65,535 wide.
        close(distance.divergence, 0.25 * 2.0_f64.ln(), 1e-5);
        close(distance.base_surprise, 2.0_f64.ln(), 1e-5);
        assert!(!distance.same_top);
        let same = score(&base, Some(&base), 0).against_base.unwrap();
        close(same.divergence, 0.0, 1e-5);
        assert!(same.same_top);
    }

    #[test]
    fn what_the_base_model_takes_for_impossible_is_raised_to_16_nats_below_its_best() {
        let base = [0.0, -40.0];
        let own = [0.0, -1.0];
        let distance = score(&own, Some(&base), 1).against_base.unwrap();
        // ln(1 + e^-40) is 0 in an f32, so the best has probability 1 and the other e^-16.
        close(distance.base_surprise, 16.0, 1e-6);
        // Only what is above -16 counts: 1 x (0 - ln(1 / (1 + e^-1))).
        close(distance.divergence, 1.0_f64.exp().recip().ln_1p(), 1e-6);
    }

    #[test]
    fn equal_logits_are_equal_probabilities() {
        let scored = score(&[2.0; 8], Some(&[-1.0; 8]), 5);
        close(scored.surprise, 8.0_f64.ln(), 1e-6);
        let distance = scored.against_base.unwrap();
        close(distance.base_surprise, 8.0_f64.ln(), 1e-6);
        close(distance.divergence, 0.0, 1e-6);
        assert!(distance.same_top);
    }

    #[test]
    fn logits_that_are_no_numbers_stay_none() {
        for broken in [[f32::NAN, 0.0], [0.0, f32::NAN], [f32::INFINITY, 0.0]] {
            assert!(!score(&broken, None, 0).surprise.is_finite());
            let distance = score(&[0.0, 1.0], Some(&broken), 0).against_base.unwrap();
            assert!(!(distance.divergence + distance.base_surprise).is_finite());
        }
    }

    #[test]
    fn halves_go_to_the_even_number() {
        let found = [0.5, 1.5, 2.5, 65_534.6, 65_535.0].map(nearest);
        assert_eq!(found, [0.0, 2.0, 2.0, 65_535.0, 65_535.0]);
    }
}
