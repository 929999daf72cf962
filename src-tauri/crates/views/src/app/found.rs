//! What the samples of a test found, whatever its kind.

use twospeed_engine::TestSpec;
use twospeed_engine::protocol::{
    LoadReading, QualityReading, Reading, Sample, ServedReading, UsersReading,
};
use twospeed_measure::Kind;
use twospeed_measure::stats::{Spread, median, spread, tokens_per_second};

use crate::measure::{AgainstBaseModel, Found, Served, Unit};

/// What the main figure of a kind is.
pub(super) fn unit(kind: &Kind) -> Unit {
    match kind {
        Kind::Speed | Kind::Users { .. } => Unit::TokensPerSecond,
        Kind::FirstToken { .. } | Kind::PrefixCache { .. } => Unit::Seconds,
        Kind::Quality { base: None, .. } => Unit::Perplexity,
        Kind::Quality { base: Some(_), .. } => Unit::Divergence,
    }
}

/// The main figure of a sample; `None` where its reading is of another kind or no time passed.
pub(super) fn value(kind: &Kind, spec: TestSpec, sample: &Sample) -> Option<f64> {
    match (kind, &sample.reading) {
        (Kind::Speed, _) => tokens_per_second(spec.tokens(), sample.ns),
        (Kind::Users { users, .. }, Some(Reading::Users(reading))) => {
            tokens_per_second(u64::from(*users) * u64::from(spec.n_gen), reading.decode_ns)
        }
        (Kind::FirstToken { .. }, Some(Reading::Served { load, requests })) => {
            let loading = load.map_or(0, |load| load.load_ns + load.context_ns);
            Some(seconds(loading + requests.first()?.ttft_ns))
        }
        // The first request is cold, the second the same again.
        (Kind::PrefixCache { .. }, Some(Reading::Served { requests, .. })) => {
            Some(seconds(requests.get(1)?.ttft_ns))
        }
        (Kind::Quality { base, .. }, Some(Reading::Quality(reading))) => match base {
            None => Some(reading.perplexity),
            Some(_) => Some(reading.against_base?.kl_mean),
        },
        _ => None,
    }
}

/// The main figures of samples and how they lie; `None` without any.
pub(super) fn values(kind: &Kind, spec: TestSpec, samples: &[Sample]) -> Option<Spread> {
    let values: Vec<f64> = samples
        .iter()
        .filter_map(|sample| value(kind, spec, sample))
        .collect();
    spread(&values)
}

/// Half-width of the 95 % confidence interval over the mean; `None` for less than two samples.
pub(super) fn within(spread: &Spread) -> Option<f64> {
    Some(spread.half_width_95? / spread.mean).filter(|share| share.is_finite())
}

/// What samples found beside their main figure, on the average; `None` without samples.
pub(super) fn found(kind: &Kind, spec: TestSpec, samples: &[Sample]) -> Option<Found> {
    let readings = || samples.iter().filter_map(|sample| sample.reading.as_ref());
    match kind {
        Kind::Speed => (!samples.is_empty()).then_some(Found::Speed),
        Kind::FirstToken { .. } => first_token(readings()),
        Kind::PrefixCache { .. } => prefix_cache(readings()),
        Kind::Users {
            users,
            shared_prompt,
            ..
        } => {
            let prompts = if *shared_prompt { 1 } else { *users };
            let all: Vec<_> = readings().filter_map(of_users).collect();
            found_of_users(&all, prompts, spec)
        }
        // The text is judged once.
        Kind::Quality { .. } => readings().find_map(of_quality).map(quality),
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Mean of what is known; `None` of nothing.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

fn of_users(reading: &Reading) -> Option<&UsersReading> {
    match reading {
        Reading::Users(reading) => Some(reading),
        _ => None,
    }
}

fn of_quality(reading: &Reading) -> Option<&QualityReading> {
    match reading {
        Reading::Quality(reading) => Some(reading),
        _ => None,
    }
}

fn first_token<'a>(readings: impl Iterator<Item = &'a Reading>) -> Option<Found> {
    let (mut loads, mut firsts): (Vec<&LoadReading>, Vec<&ServedReading>) = Default::default();
    for reading in readings {
        if let Reading::Served { load, requests } = reading {
            loads.extend(load);
            firsts.extend(requests.first());
        }
    }
    let part = |ns: fn(&ServedReading) -> u64| mean(firsts.iter().map(|first| seconds(ns(first))));
    Some(Found::FirstToken {
        load: mean(loads.iter().map(|load| seconds(load.load_ns))),
        context: mean(loads.iter().map(|load| seconds(load.context_ns))),
        resident: mean(
            loads
                .iter()
                .filter_map(|load| load.resident_before.map(f64::from)),
        ),
        tokenize: part(|first| first.tokenize_ns)?,
        prefill: part(|first| first.prefill_ns)?,
        sample: part(|first| first.first_sample_ns)?,
        decode: mean(
            firsts
                .iter()
                .filter_map(|first| first.first_decode_ns.map(seconds)),
        ),
    })
}

fn prefix_cache<'a>(readings: impl Iterator<Item = &'a Reading>) -> Option<Found> {
    let rounds: Vec<&Vec<ServedReading>> = readings
        .filter_map(|reading| match reading {
            Reading::Served { requests, .. } => Some(requests),
            _ => None,
        })
        .collect();
    let last = rounds.last()?;
    let requests = last.iter().enumerate().map(|(place, request)| {
        let times = rounds
            .iter()
            .filter_map(|round| Some(seconds(round.get(place)?.ttft_ns)));
        Served {
            ttft: mean(times).unwrap_or_else(|| seconds(request.ttft_ns)),
            prompt: request.n_prompt,
            reused: request.n_reused,
            shared: request.n_shared,
        }
    });
    Some(Found::PrefixCache {
        requests: requests.collect(),
    })
}

fn found_of_users(all: &[&UsersReading], prompts: u32, spec: TestSpec) -> Option<Found> {
    let times = |reading: &&UsersReading| -> Vec<f64> {
        reading.ttft_ns.iter().copied().map(seconds).collect()
    };
    let prompt = u64::from(prompts) * u64::from(spec.n_prompt);
    let answer = u64::from(spec.n_gen);
    Some(Found::Users {
        prefill: mean(
            all.iter()
                .filter_map(|reading| tokens_per_second(prompt, reading.prefill_ns)),
        )?,
        // Every user's tokens come in the same steps.
        each: mean(
            all.iter()
                .filter_map(|reading| tokens_per_second(answer, reading.decode_ns)),
        )?,
        median: mean(all.iter().filter_map(|reading| median(&times(reading))))?,
        worst: mean(
            all.iter()
                .filter_map(|reading| times(reading).into_iter().reduce(f64::max)),
        )?,
    })
}

fn quality(reading: &QualityReading) -> Found {
    Found::Quality {
        perplexity: reading.perplexity,
        error: reading.perplexity_error,
        base: reading.against_base.map(|base| AgainstBaseModel {
            perplexity: base.base_perplexity,
            divergence: base.kl_mean,
            error: base.kl_error,
            same_top: base.same_top,
        }),
    }
}

#[cfg(test)]
mod tests {
    use twospeed_engine::protocol::PageCache;

    use super::*;

    const SPEC: TestSpec = TestSpec {
        n_prompt: 512,
        n_gen: 32,
        n_depth: 0,
    };

    fn sample(ns: u64, reading: Option<Reading>) -> Sample {
        Sample {
            index: 0,
            ns,
            involuntary_switches: None,
            major_faults: None,
            reading,
        }
    }

    fn served(ttft_ms: u64, reused: u32, shared: u32) -> ServedReading {
        ServedReading {
            n_prompt: 512,
            n_reused: reused,
            n_shared: shared,
            tokenize_ns: 1_000_000,
            prefill_ns: (ttft_ms - 2) * 1_000_000,
            first_sample_ns: 1_000_000,
            ttft_ns: ttft_ms * 1_000_000,
            first_decode_ns: Some(9_000_000),
            n_generated: 2,
            decode_ns: 9_000_000,
        }
    }

    #[test]
    fn the_first_token_takes_its_load_with_it() {
        let kind = Kind::FirstToken {
            page_cache: PageCache::Drop,
        };
        let reading = |load_ms: u64, resident_before| Reading::Served {
            load: Some(LoadReading {
                load_ns: load_ms * 1_000_000,
                context_ns: 20_000_000,
                resident_before,
                page_cache: PageCache::Drop,
            }),
            requests: vec![served(700, 0, 0)],
        };
        let samples = [
            sample(1, Some(reading(580, Some(0.0)))),
            sample(1, Some(reading(620, None))),
        ];
        // 580 + 20 + 700 ms.
        assert_eq!(value(&kind, SPEC, &samples[0]), Some(1.3));
        let Some(Found::FirstToken {
            load,
            resident,
            prefill,
            ..
        }) = found(&kind, SPEC, &samples)
        else {
            panic!("it has parts");
        };
        assert_eq!((load, resident), (Some(0.6), Some(0.0)));
        assert!((prefill - 0.698).abs() < 1e-9);
    }

    #[test]
    fn the_prefix_cache_is_judged_by_the_repeated_request() {
        let kind = Kind::PrefixCache { changed: 128 };
        let requests = vec![
            served(710, 0, 0),
            served(20, 511, 512),
            served(200, 384, 384),
        ];
        let samples = [sample(
            930_000_000,
            Some(Reading::Served {
                load: None,
                requests,
            }),
        )];
        assert_eq!(value(&kind, SPEC, &samples[0]), Some(0.02));
        let Some(Found::PrefixCache { requests }) = found(&kind, SPEC, &samples) else {
            panic!("it has requests");
        };
        let reused: Vec<_> = requests
            .iter()
            .map(|one| (one.reused, one.shared))
            .collect();
        assert_eq!(reused, [(0, 0), (511, 512), (384, 384)]);
    }

    #[test]
    fn users_together_are_as_many_times_as_fast_as_each() {
        let kind = Kind::Users {
            users: 4,
            split_kv: false,
            shared_prompt: false,
        };
        let reading = Reading::Users(UsersReading {
            prefill_ns: 2_048_000_000,
            decode_ns: 640_000_000,
            ttft_ns: [500, 1000, 1500, 2000].map(|ms| ms * 1_000_000).to_vec(),
        });
        let samples = [sample(2_688_000_000, Some(reading))];
        // 4 x 32 tokens in 0.64 s.
        assert_eq!(value(&kind, SPEC, &samples[0]), Some(200.0));
        assert_eq!(
            found(&kind, SPEC, &samples),
            Some(Found::Users {
                prefill: 1000.0,
                each: 50.0,
                median: 1.25,
                worst: 2.0
            })
        );
    }

    #[test]
    fn a_reading_of_another_kind_is_no_figure() {
        let kind = Kind::PrefixCache { changed: 128 };
        assert_eq!(value(&kind, SPEC, &sample(1, None)), None);
        assert_eq!(found(&kind, SPEC, &[sample(1, None)]), None);
        assert_eq!(found(&Kind::Speed, SPEC, &[]), None);
    }

    #[test]
    fn quality_is_the_divergence_where_there_is_a_base() {
        let base = twospeed_engine::protocol::AgainstBase {
            base_perplexity: 17.9,
            kl_mean: 0.041,
            kl_error: 0.001,
            kl_max: 2.3,
            kl_p99: 0.4,
            kl_median: 0.02,
            same_top: 0.91,
        };
        let reading = Reading::Quality(QualityReading {
            n_ctx: 512,
            chunks: 64,
            n_scored: 16_000,
            perplexity: 18.42,
            perplexity_error: 0.3,
            against_base: Some(base),
        });
        let alone = Kind::Quality {
            n_ctx: 512,
            text: None,
            base: None,
        };
        let sample = sample(1, Some(reading));
        assert_eq!(value(&alone, SPEC, &sample), Some(18.42));
        assert_eq!(unit(&alone), Unit::Perplexity);
        let model = super::super::results_fixture::model("A", "F16", 1);
        let against = Kind::Quality {
            n_ctx: 512,
            text: None,
            base: Some(Box::new(model)),
        };
        assert_eq!(value(&against, SPEC, &sample), Some(0.041));
        assert_eq!(unit(&against), Unit::Divergence);
    }
}
