//! What a test of another kind than speed found, in words for a run's page.

use twospeed_engine::protocol::{QualityReading, Reading, ServedReading, UsersReading};
use twospeed_history::Test;
use twospeed_measure::{Kind, stats};

use super::run_page::{milliseconds, pair, percent};
use crate::compare::Pair;

/// Means over the samples, name and value pairs to show; none for a speed.
pub(super) fn readings(test: &Test) -> Vec<Pair> {
    match &test.record.kind {
        Kind::Speed => Vec::new(),
        Kind::FirstToken { .. } => waits(test, &[("", 0)]),
        Kind::PrefixCache { .. } => waits(
            test,
            &[
                ("New prompt: ", 0),
                ("Repeated: ", 1),
                ("Changed tail: ", 2),
            ],
        ),
        Kind::Users { users, .. } => of_users(test, *users),
        Kind::Quality { .. } => of_quality(test),
    }
}

fn all(test: &Test) -> impl Iterator<Item = &Reading> {
    test.samples
        .iter()
        .filter_map(|record| record.sample.reading.as_ref())
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    Some(stats::spread(&values)?.mean)
}

fn mean_time(values: impl Iterator<Item = u64>) -> Option<String> {
    mean(values.map(|ns| ns as f64)).map(|ns| milliseconds(ns.round() as u64))
}

/// The parts of each request.
fn waits(test: &Test, requests: &[(&str, usize)]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let loads = || {
        all(test).filter_map(|reading| match reading {
            Reading::Served { load, .. } => *load,
            _ => None,
        })
    };
    if loads().next().is_some() {
        pairs.push(pair(
            "Loading the model",
            mean_time(loads().map(|load| load.load_ns)),
        ));
        pairs.push(pair(
            "Making the context",
            mean_time(loads().map(|load| load.context_ns)),
        ));
        let resident = loads()
            .filter_map(|load| load.resident_before)
            .map(f64::from);
        pairs.push(pair(
            "In the page cache before",
            mean(resident).map(percent),
        ));
    }
    for (name, index) in requests {
        let of: Vec<ServedReading> = all(test)
            .filter_map(|reading| match reading {
                Reading::Served { requests, .. } => requests.get(*index).copied(),
                _ => None,
            })
            .collect();
        let Some(first) = of.first() else {
            continue;
        };
        let time = |what: &str, part: fn(&ServedReading) -> u64| {
            pair(&format!("{name}{what}"), mean_time(of.iter().map(part)))
        };
        pairs.push(time("time to first token", |request| request.ttft_ns));
        pairs.push(time("tokenizing", |request| request.tokenize_ns));
        pairs.push(time("prefill", |request| request.prefill_ns));
        pairs.push(time("first sample", |request| request.first_sample_ns));
        pairs.push(pair(
            &format!("{name}first decode"),
            mean_time(of.iter().filter_map(|request| request.first_decode_ns)),
        ));
        pairs.push(pair(
            &format!("{name}taken from the cache"),
            Some(format!(
                "{} of {}\u{a0}tokens",
                first.n_reused, first.n_prompt
            )),
        ));
        if first.n_reused < first.n_shared {
            pairs.push(pair(
                &format!("{name}known, and computed again"),
                Some(format!("{}\u{a0}tokens", first.n_shared - first.n_reused)),
            ));
        }
    }
    pairs
}

fn of_users(test: &Test, users: u32) -> Vec<Pair> {
    let spec = test.record.spec;
    let of: Vec<&UsersReading> = all(test)
        .filter_map(|reading| match reading {
            Reading::Users(reading) => Some(reading),
            _ => None,
        })
        .collect();
    let speed = |tokens: u32, ns: fn(&UsersReading) -> u64| {
        let speeds = of
            .iter()
            .filter_map(|reading| stats::tokens_per_second(u64::from(tokens), ns(reading)));
        mean(speeds).map(|speed| format!("{speed:.1}\u{a0}tok/s"))
    };
    let waits = |of_one: fn(&[f64]) -> Option<f64>| {
        let waits = of.iter().filter_map(|reading| {
            let ns: Vec<f64> = reading.ttft_ns.iter().map(|ns| *ns as f64).collect();
            of_one(&ns)
        });
        mean(waits).map(|ns| milliseconds(ns.round() as u64))
    };
    vec![
        pair(
            "Decode, all together",
            speed(users * spec.n_gen, |reading| reading.decode_ns),
        ),
        pair(
            "Decode of each user",
            speed(spec.n_gen, |reading| reading.decode_ns),
        ),
        pair("Prefill, all together", {
            let shared = matches!(
                test.record.kind,
                Kind::Users {
                    shared_prompt: true,
                    ..
                }
            );
            let prompts = if shared { 1 } else { users };
            speed(prompts * spec.n_prompt, |reading| reading.prefill_ns)
        }),
        pair("Time to first token, median", waits(stats::median)),
        pair(
            "Time to first token, worst",
            waits(|waits| waits.iter().copied().max_by(f64::total_cmp)),
        ),
    ]
}

fn of_quality(test: &Test) -> Vec<Pair> {
    let found = all(test).find_map(|reading| match reading {
        Reading::Quality(reading) => Some(*reading),
        _ => None,
    });
    let Some(reading) = found else {
        return Vec::new();
    };
    let QualityReading {
        perplexity,
        perplexity_error,
        n_scored,
        ..
    } = reading;
    let mut pairs = vec![
        pair(
            "Perplexity",
            Some(format!("{perplexity:.4} ± {perplexity_error:.4}")),
        ),
        pair("Scored", Some(format!("{n_scored}\u{a0}tokens"))),
    ];
    if let Some(against) = reading.against_base {
        pairs.extend([
            pair(
                "Perplexity of the base model",
                Some(format!("{:.4}", against.base_perplexity)),
            ),
            pair(
                "KL divergence, mean",
                Some(format!(
                    "{:.6} ± {:.6}\u{a0}nats",
                    against.kl_mean, against.kl_error
                )),
            ),
            pair(
                "KL divergence, median",
                Some(format!("{:.6}\u{a0}nats", against.kl_median)),
            ),
            pair(
                "KL divergence, 99th percentile",
                Some(format!("{:.6}\u{a0}nats", against.kl_p99)),
            ),
            pair("Same most likely token", Some(percent(against.same_top))),
        ]);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::super::results_fixture::{both, model};
    use super::*;

    fn of(kind: Kind, readings: Vec<Reading>) -> Test {
        let speeds = vec![100.0; readings.len()];
        let run = both(0, &model("A", "Q4_0", 92_000_000), &speeds, &[]);
        let mut test = run.tests[0].clone();
        test.record.kind = kind;
        for (record, reading) in test.samples.iter_mut().zip(readings) {
            record.sample.reading = Some(reading);
        }
        test
    }

    fn value(pairs: &[Pair], name: &str) -> Option<String> {
        let pair = pairs.iter().find(|pair| pair.name == name);
        pair.unwrap_or_else(|| panic!("{name} is not among {pairs:?}"))
            .value
            .clone()
    }

    #[test]
    fn users_are_told_together_and_each() {
        let kind = Kind::Users {
            users: 4,
            split_kv: false,
            shared_prompt: false,
        };
        let reading = |decode_ns| {
            Reading::Users(UsersReading {
                prefill_ns: 2_000_000_000,
                decode_ns,
                ttft_ns: vec![400_000_000, 500_000_000, 600_000_000, 900_000_000],
            })
        };
        let mut test = of(kind, vec![reading(1_000_000_000), reading(500_000_000)]);
        test.record.spec.n_gen = 32;
        let pairs = readings(&test);
        // 128 tokens in 1 s and in 0.5 s: (128 + 256) / 2.
        assert_eq!(
            value(&pairs, "Decode, all together").as_deref(),
            Some("192.0\u{a0}tok/s")
        );
        assert_eq!(
            value(&pairs, "Decode of each user").as_deref(),
            Some("48.0\u{a0}tok/s")
        );
        // 4 prompts of 512 tokens in 2 s.
        assert_eq!(
            value(&pairs, "Prefill, all together").as_deref(),
            Some("1024.0\u{a0}tok/s")
        );
        assert_eq!(
            value(&pairs, "Time to first token, median").as_deref(),
            Some("550\u{a0}ms")
        );
        assert_eq!(
            value(&pairs, "Time to first token, worst").as_deref(),
            Some("900\u{a0}ms")
        );
    }

    #[test]
    fn a_cache_that_cannot_drop_its_tail_is_said() {
        let request = |n_reused| ServedReading {
            n_prompt: 512,
            n_reused,
            n_shared: 511,
            tokenize_ns: 1_000_000,
            prefill_ns: 20_000_000,
            first_sample_ns: 0,
            ttft_ns: 21_000_000,
            first_decode_ns: None,
            n_generated: 1,
            decode_ns: 0,
        };
        let served = Reading::Served {
            load: None,
            requests: vec![request(0), request(511), request(300)],
        };
        let pairs = readings(&of(Kind::PrefixCache { changed: 32 }, vec![served]));
        assert_eq!(
            value(&pairs, "Repeated: taken from the cache").as_deref(),
            Some("511 of 512\u{a0}tokens")
        );
        assert_eq!(
            value(&pairs, "Changed tail: known, and computed again").as_deref(),
            Some("211\u{a0}tokens")
        );
        assert_eq!(
            value(&pairs, "Repeated: first decode"),
            None,
            "unknown is not 0"
        );
        assert!(!pairs.iter().any(|pair| pair.name == "Loading the model"));
    }
}
