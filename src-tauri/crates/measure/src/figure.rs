//! The one number that repetitions of a test are held against each other by.

use twospeed_engine::TestSpec;
use twospeed_engine::protocol::{Reading, Sample};

use crate::kind::Kind;
use crate::stats::tokens_per_second;

/// How fast a repetition was, in something per second: more is faster. `None` where the kind has no
/// such figure, or the sample none of it.
///
/// - speed: tokens per second, llama-bench's;
/// - first token: one by the time from asking for the model to the first token;
/// - prefix cache: one by the time to the first token of the repeated prompt;
/// - users: tokens per second that all write together;
/// - quality: none, it is not timed.
pub fn rate(kind: &Kind, spec: TestSpec, sample: &Sample) -> Option<f64> {
    match (kind, &sample.reading) {
        (Kind::Speed, _) => tokens_per_second(spec.tokens(), sample.ns),
        (Kind::FirstToken { .. }, Some(Reading::Served { load, requests })) => {
            let load = load.as_ref()?;
            let ns = load.load_ns + load.context_ns + requests.first()?.ttft_ns;
            per_second(ns)
        }
        (Kind::PrefixCache { .. }, Some(Reading::Served { requests, .. })) => {
            per_second(requests.get(1)?.ttft_ns)
        }
        (Kind::Users { users, .. }, Some(Reading::Users(reading))) => {
            let tokens = u64::from(*users) * u64::from(spec.n_gen);
            tokens_per_second(tokens, reading.decode_ns)
        }
        _ => None,
    }
}

/// The rates of all samples that have one, in their order.
pub fn rates(kind: &Kind, spec: TestSpec, samples: &[Sample]) -> Vec<f64> {
    let rates = samples.iter().map(|sample| rate(kind, spec, sample));
    rates.flatten().collect()
}

fn per_second(ns: u64) -> Option<f64> {
    tokens_per_second(1, ns)
}

#[cfg(test)]
mod tests {
    use twospeed_engine::protocol::{LoadReading, PageCache, ServedReading, UsersReading};

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

    fn served(load: bool, ttfts: &[u64]) -> Sample {
        let request = |&ttft_ns: &u64| ServedReading {
            n_prompt: 512,
            n_reused: 0,
            n_shared: 0,
            tokenize_ns: 0,
            prefill_ns: 0,
            first_sample_ns: 0,
            ttft_ns,
            first_decode_ns: None,
            n_generated: 32,
            decode_ns: 9,
        };
        let load = load.then_some(LoadReading {
            load_ns: 150_000_000,
            context_ns: 50_000_000,
            resident_before: None,
            page_cache: PageCache::Drop,
        });
        let requests = ttfts.iter().map(request).collect();
        sample(1, Some(Reading::Served { load, requests }))
    }

    #[test]
    fn a_first_token_is_counted_from_asking_for_the_model() {
        let kind = Kind::FirstToken {
            page_cache: PageCache::Drop,
        };
        // 0.15 s load, 0.05 s context, 0.3 s to the token: two in a second.
        assert_eq!(rate(&kind, SPEC, &served(true, &[300_000_000])), Some(2.0));
        assert_eq!(rate(&kind, SPEC, &served(false, &[300_000_000])), None);
    }

    #[test]
    fn a_prefix_cache_is_told_by_the_repeated_prompt() {
        let kind = Kind::PrefixCache { changed: 64 };
        let sample = served(false, &[800_000_000, 20_000_000, 100_000_000]);
        assert_eq!(rate(&kind, SPEC, &sample), Some(50.0));
    }

    #[test]
    fn users_are_told_by_what_they_write_together() {
        let kind = Kind::Users {
            users: 4,
            split_kv: false,
            shared_prompt: false,
        };
        let reading = UsersReading {
            prefill_ns: 7,
            decode_ns: 500_000_000,
            ttft_ns: vec![7; 4],
        };
        // 4 * 32 tokens in half a second.
        let sample = sample(9, Some(Reading::Users(reading)));
        assert_eq!(rate(&kind, SPEC, &sample), Some(256.0));
    }

    #[test]
    fn what_another_kind_found_is_no_figure() {
        let quality = Kind::Quality {
            n_ctx: 512,
            text: None,
            base: None,
        };
        assert_eq!(rate(&quality, SPEC, &sample(1_000, None)), None);
        let kind = Kind::PrefixCache { changed: 64 };
        assert_eq!(rates(&kind, SPEC, &[sample(1_000, None)]), [0.0; 0]);
    }
}
