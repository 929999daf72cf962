//! Sequences side by side.

use twospeed_engine::protocol::{BufferUse, Reading, UsersReading};
use twospeed_measure::stats::{median, tokens_per_second};
use twospeed_measure::{Kind, TestOutcome};

use super::{Leading, Part, UNKNOWN, around, milliseconds};

pub fn table(tests: &[&TestOutcome]) -> Option<Part> {
    if tests.is_empty() {
        return None;
    }
    let leading = Leading::of(tests);
    let mut table = leading.table(&[
        ">users",
        ">prefill t/s, all",
        ">decode t/s, all",
        ">decode t/s, each",
        ">TTFT ms, median",
        ">TTFT ms, worst",
        ">cache MiB, each",
        ">peak MiB",
    ]);
    for test in tests {
        let Kind::Users {
            users,
            shared_prompt,
            ..
        } = test.test.kind
        else {
            continue;
        };
        let readings: Vec<&UsersReading> = test
            .samples
            .iter()
            .filter_map(|sample| match &sample.sample.reading {
                Some(Reading::Users(reading)) => Some(reading),
                _ => None,
            })
            .collect();
        let prompts = if shared_prompt { 1 } else { users };
        let prompt = u64::from(prompts) * u64::from(test.test.spec.n_prompt);
        let answer = u64::from(test.test.spec.n_gen);
        let decode = |users: u32| {
            around(readings.iter().filter_map(|reading| {
                tokens_per_second(u64::from(users) * answer, reading.decode_ns)
            }))
        };
        let waits = |reading: &&UsersReading| -> Vec<f64> {
            reading.ttft_ns.iter().copied().map(milliseconds).collect()
        };
        let mut cells = leading.cells(test);
        cells.extend([
            users.to_string(),
            around(
                readings
                    .iter()
                    .filter_map(|reading| tokens_per_second(prompt, reading.prefill_ns)),
            ),
            decode(users),
            decode(1),
            around(
                readings
                    .iter()
                    .filter_map(|reading| median(&waits(reading))),
            ),
            around(
                readings
                    .iter()
                    .filter_map(|reading| waits(reading).into_iter().reduce(f64::max)),
            ),
            cache(test).map_or_else(
                || UNKNOWN.into(),
                |bytes| mebibytes(bytes as f64 / f64::from(users)),
            ),
            test.end
                .peak_rss_bytes
                .map_or_else(|| UNKNOWN.into(), |bytes| mebibytes(bytes as f64)),
        ]);
        table.row(cells);
    }
    Some(Part {
        title: "Users: sequences side by side, tokens per second of all together and of each.",
        table,
        notes: Vec::new(),
    })
}

/// Bytes of what the context keeps of its sequences; `None` where the engine does not say.
fn cache(test: &TestOutcome) -> Option<u64> {
    let buffers = &test.end.placement.as_ref()?.buffers;
    let kept = buffers
        .iter()
        .filter(|buffer| matches!(buffer.holds, BufferUse::Kv | BufferUse::State));
    kept.map(|buffer| buffer.bytes)
        .reduce(|sum, bytes| sum + bytes)
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.1}", bytes / f64::from(1 << 20))
}
