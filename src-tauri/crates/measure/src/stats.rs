//! Samples to numbers, purely.

use std::f64::consts::FRAC_PI_2;

use serde::{Deserialize, Serialize};
use twospeed_engine::TestSpec;
use twospeed_engine::protocol::Sample;

/// What the samples of one test say together.
///
/// Everything is computed from the samples in `f64`, in two passes: integer squares of
/// nanoseconds wrap at 64 bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Tokens per second. llama-bench's `avg_ts` is the mean, the mean of the samples' speeds and
    /// not tokens / mean time; its `stddev_ts` is the standard deviation, printed as 0 for one sample.
    pub tokens_per_second: Spread,
    /// Nanoseconds of the timed section: llama-bench's `avg_ns` and `stddev_ns`.
    pub nanoseconds: Spread,
}

/// A mean and how the values lie around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Values, at least 1.
    pub count: u32,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n - 1; one value has none.
    pub standard_deviation: Option<f64>,
    /// Median.
    pub median: f64,
    /// Median absolute deviation from the median, not scaled; one value has none.
    pub median_absolute_deviation: Option<f64>,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Half-width of the 95 % confidence interval of the mean; one value has none.
    ///
    /// t(0.975, n - 1) * s / sqrt(n): NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.5.2.
    pub half_width_95: Option<f64>,
    /// Half-width of an approximate 95 % confidence interval of the median; one value has none.
    ///
    /// As for the mean, with [`robust_deviation`] in place of s and the standard error of a
    /// median, sqrt(pi / 2) times that of a mean (Kendall and Stuart, The Advanced Theory of
    /// Statistics, 10.10, for a normal distribution). One far-off value hardly changes it.
    pub median_half_width_95: Option<f64>,
}

/// Sums up a test's samples; `None` when none of them can be a speed.
pub fn summary(spec: TestSpec, samples: &[Sample]) -> Option<Summary> {
    let speeds: Vec<f64> = samples
        .iter()
        .filter_map(|sample| tokens_per_second(spec.tokens(), sample.ns))
        .collect();
    let times: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.ns > 0)
        .map(|sample| sample.ns as f64)
        .collect();
    Some(Summary {
        tokens_per_second: spread(&speeds)?,
        nanoseconds: spread(&times)?,
    })
}

/// A sample's speed by llama-bench's definition, 1e9 * tokens / ns.
///
/// `None` where that is no speed: no tokens, or no time.
pub fn tokens_per_second(tokens: u64, ns: u64) -> Option<f64> {
    (tokens > 0 && ns > 0).then(|| 1e9 * tokens as f64 / ns as f64)
}

/// The spread of finite values; `None` when there are none.
pub fn spread(values: &[f64]) -> Option<Spread> {
    let count = values.len();
    if count == 0 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mean = mean(values);
    let median = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
    let standard_deviation = standard_deviation(values, mean);
    let median_absolute_deviation = self::median(&deviations).filter(|_| count > 1);
    let half_width = |deviation: f64| t_975(count as u32 - 1) * deviation / (count as f64).sqrt();
    let robust = median_absolute_deviation.map(|mad| robust_deviation(mad, count));
    Some(Spread {
        count: u32::try_from(count).ok()?,
        mean,
        standard_deviation,
        median,
        median_absolute_deviation,
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        half_width_95: standard_deviation.map(half_width),
        median_half_width_95: robust.map(|s| half_width(s) * FRAC_PI_2.sqrt()),
    })
}

/// An estimate of the standard deviation of `count` values by their median absolute deviation.
///
/// 1.4826 makes it consistent for a normal distribution; the factors for few values, which lie too
/// close to their own median, are those of Croux and Rousseeuw, Time-efficient algorithms for two
/// highly robust estimators of scale (COMPSTAT 1992).
pub fn robust_deviation(median_absolute_deviation: f64, count: usize) -> f64 {
    const FEW: [f64; 8] = [1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107];
    let n = count.max(2);
    let few = FEW.get(n - 2).copied();
    let factor = few.unwrap_or_else(|| n as f64 / (n as f64 - 0.8));
    1.4826 * factor * median_absolute_deviation
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Two passes, n - 1: the unbiased estimate of the variance that llama-bench prints too.
fn standard_deviation(values: &[f64], mean: f64) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The middle value, or the mean of the two middle ones; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.len() / 2;
    let high = *sorted.get(upper)?;
    if sorted.len() % 2 == 1 {
        return Some(high);
    }
    Some((sorted[upper - 1] + high) / 2.0)
}

/// A straight line through values at 0, 1, 2, ... by least squares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Change of the value from one to the next.
    pub slope: f64,
    /// Standard error of the slope.
    pub slope_error: f64,
}

/// Fits a line; `None` below three values, where it has no error.
///
/// Slope and its standard error: Draper and Smith, Applied Regression Analysis, chapter 1.
pub fn line(values: &[f64]) -> Option<Line> {
    let n = values.len();
    if n < 3 {
        return None;
    }
    let middle = (n - 1) as f64 / 2.0;
    let mean = mean(values);
    let offsets = || (0..n).map(|i| i as f64 - middle);
    let width: f64 = offsets().map(|x| x * x).sum();
    let slope = offsets()
        .zip(values)
        .map(|(x, y)| x * (y - mean))
        .sum::<f64>()
        / width;
    let left: f64 = offsets()
        .zip(values)
        .map(|(x, y)| (y - mean - slope * x).powi(2))
        .sum();
    Some(Line {
        slope,
        slope_error: (left / (n - 2) as f64 / width).sqrt(),
    })
}

/// The 0.975 quantile of Student's t with `df` degrees of freedom, at least 1.
///
/// To 30 from the table of NIST/SEMATECH e-Handbook, 1.3.6.7.2; beyond by the expansion in
/// 1 / df of Abramowitz and Stegun, 26.7.5, good to four digits there.
pub fn t_975(df: u32) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    let index = df.max(1) as usize - 1;
    if let Some(&quantile) = TABLE.get(index) {
        return quantile;
    }
    let normal: f64 = 1.959_964;
    let df = f64::from(df);
    let first = (normal.powi(3) + normal) / 4.0;
    let second = (5.0 * normal.powi(5) + 16.0 * normal.powi(3) + 3.0 * normal) / 96.0;
    normal + first / df + second / (df * df)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TG128: TestSpec = TestSpec {
        n_prompt: 0,
        n_gen: 128,
        n_depth: 0,
    };

    fn samples(times: &[u64]) -> Vec<Sample> {
        times
            .iter()
            .zip(0..)
            .map(|(&ns, index)| Sample {
                index,
                ns,
                involuntary_switches: None,
                major_faults: None,
                reading: None,
            })
            .collect()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn one_sample_has_no_spread() {
        let summary = summary(TG128, &samples(&[2_000_000_000])).unwrap();
        let speed = summary.tokens_per_second;
        assert_eq!((speed.mean, speed.median), (64.0, 64.0));
        assert_eq!((speed.min, speed.max, speed.count), (64.0, 64.0, 1));
        assert_eq!(speed.standard_deviation, None);
        assert_eq!(speed.median_absolute_deviation, None);
        assert_eq!(speed.half_width_95, None);
        assert_eq!(speed.median_half_width_95, None);
        assert_eq!(summary.nanoseconds.standard_deviation, None);
    }

    #[test]
    fn the_mean_speed_is_the_mean_of_speeds_and_not_of_times() {
        // 128 tokens in 1 s and in 2 s: 128 and 64 tok/s, mean 96; 128 / 1.5 s would be 85.3.
        let summary = summary(TG128, &samples(&[1_000_000_000, 2_000_000_000])).unwrap();
        assert!(close(summary.tokens_per_second.mean, 96.0));
        assert!(close(summary.nanoseconds.mean, 1.5e9));
        // Two values 64 apart: s = 64 / sqrt(2).
        assert!(close(
            summary.tokens_per_second.standard_deviation.unwrap(),
            64.0 / 2f64.sqrt()
        ));
    }

    #[test]
    fn the_deviation_of_long_runs_does_not_wrap() {
        // Each square is above 2^64 / 10: the sum of integer squares wraps, as in a known fault
        // of llama-bench. By hand: deviations -150, 0, 150 million, s = 150 million.
        let summary = summary(
            TG128,
            &samples(&[3_850_000_000, 4_000_000_000, 4_150_000_000]),
        )
        .unwrap();
        let deviation = summary.nanoseconds.standard_deviation.unwrap();
        assert!(close(deviation, 150_000_000.0), "{deviation}");
    }

    #[test]
    fn no_time_and_no_tokens_are_no_speed() {
        assert_eq!(tokens_per_second(128, 0), None);
        assert_eq!(tokens_per_second(0, 1_000), None);
        assert_eq!(summary(TG128, &samples(&[0, 0])), None);
        assert_eq!(summary(TG128, &[]), None);
        let nothing_timed = TestSpec {
            n_prompt: 0,
            n_gen: 0,
            n_depth: 0,
        };
        assert_eq!(summary(nothing_timed, &samples(&[1_000])), None);
    }

    #[test]
    fn a_sample_without_time_does_not_spoil_the_others() {
        let summary = summary(TG128, &samples(&[0, 2_000_000_000])).unwrap();
        assert_eq!(summary.tokens_per_second.mean, 64.0);
        assert_eq!(summary.tokens_per_second.count, 1);
    }

    #[test]
    fn what_is_not_finite_has_no_spread() {
        assert_eq!(spread(&[1.0, f64::NAN]), None);
        assert_eq!(spread(&[1.0, f64::INFINITY]), None);
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn median_and_its_deviation_stand_an_outlier() {
        let spread = spread(&[10.0, 11.0, 12.0, 13.0, 1000.0]).unwrap();
        assert_eq!(spread.median, 12.0);
        assert_eq!(spread.median_absolute_deviation, Some(1.0));
        assert_eq!(median(&[1.0, 2.0, 3.0, 10.0]), Some(2.5));
    }

    #[test]
    fn the_medians_interval_is_worked_out_by_hand() {
        // Median 12, MAD 1, five values: s = 1.4826 * 1.206 = 1.788; t = 2.776;
        // 2.776 * 1.788 / sqrt(5) * sqrt(pi / 2) = 2.776 * 1.788 / 2.23607 * 1.25331 = 2.782.
        let spread = spread(&[10.0, 11.0, 12.0, 13.0, 1000.0]).unwrap();
        let half = spread.median_half_width_95.unwrap();
        assert!((half - 2.782).abs() < 1e-3, "{half}");
    }

    #[test]
    fn the_confidence_interval_is_the_textbooks() {
        // NIST's ZARR13 data set (1.3.5.2): n = 195, mean 9.261460, s = 0.022789, 95 % interval
        // 9.258242 to 9.264679. A set of that mean and s is enough to check the half-width.
        let n = 195.0f64;
        let half = t_975(194) * 0.022_789 / n.sqrt();
        assert!(
            (half - (9.264_679 - 9.258_242) / 2.0).abs() < 1e-6,
            "{half}"
        );
    }

    #[test]
    fn students_quantiles_are_the_tables_beyond_it_too() {
        // Values of the same table at 40, 60, 100 and infinity.
        for (df, quantile) in [
            (1, 12.706),
            (31, 2.040),
            (40, 2.021),
            (60, 2.000),
            (100, 1.984),
        ] {
            assert!((t_975(df) - quantile).abs() < 6e-4, "{df}: {}", t_975(df));
        }
        assert!((t_975(u32::MAX) - 1.96).abs() < 1e-3);
    }

    #[test]
    fn a_line_through_points_on_a_line_has_no_error() {
        let fit = line(&[5.0, 7.0, 9.0, 11.0]).unwrap();
        assert!(close(fit.slope, 2.0));
        assert!(fit.slope_error < 1e-9);
        assert_eq!(line(&[1.0, 2.0]), None);
    }

    #[test]
    fn the_error_of_a_slope_is_worked_out_by_hand() {
        // x = -1, 0, 1; y = 0, 3, 0: slope 0, residuals -1, 2, -1, sum of squares 6, one degree
        // of freedom, width 2: sqrt(6 / 1 / 2) = sqrt(3).
        let fit = line(&[0.0, 3.0, 0.0]).unwrap();
        assert!(close(fit.slope, 0.0));
        assert!(close(fit.slope_error, 3f64.sqrt()));
    }
}
