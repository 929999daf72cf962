//! The wait for the first token, with its parts.

use twospeed_engine::protocol::{LoadReading, PageCache, Reading, ServedReading};
use twospeed_measure::stats::tokens_per_second;
use twospeed_measure::{Kind, TestOutcome};

use super::{Leading, Part, UNKNOWN, around, milliseconds, percent};

/// A cold load finds hardly anything of its file in the page cache.
const COLD: f64 = 0.05;

pub fn table(tests: &[&TestOutcome]) -> Option<Part> {
    if tests.is_empty() {
        return None;
    }
    let leading = Leading::of(tests);
    let mut table = leading.table(&[
        ">in page cache",
        ">load ms",
        ">context ms",
        ">tokenize ms",
        ">prefill ms",
        ">prefill t/s",
        ">first sample ms",
        ">TTFT ms",
        ">load + TTFT ms",
        ">second token ms",
    ]);
    let mut notes = Vec::new();
    for test in tests {
        let firsts: Vec<(Option<LoadReading>, ServedReading)> = test
            .samples
            .iter()
            .filter_map(|sample| match &sample.sample.reading {
                Some(Reading::Served { load, requests }) => Some((*load, *requests.first()?)),
                _ => None,
            })
            .collect();
        let loads = || firsts.iter().filter_map(|(load, _)| load.as_ref());
        let part = |ns: fn(&ServedReading) -> u64| {
            around(firsts.iter().map(|(_, first)| milliseconds(ns(first))))
        };
        let resident: Vec<f64> = loads()
            .filter_map(|load| load.resident_before.map(f64::from))
            .collect();
        let most_resident = resident.iter().copied().reduce(f64::max);
        if let Kind::FirstToken {
            page_cache: PageCache::Drop,
        } = test.test.kind
            && most_resident.is_some_and(|share| share > COLD)
        {
            notes.push(format!(
                "{} was no cold load: this system kept {} of the file in its page cache.",
                test.test.kind.name(test.test.spec),
                percent(most_resident.unwrap_or_default())
            ));
        }
        let mut cells = leading.cells(test);
        cells.extend([
            range(&resident),
            around(loads().map(|load| milliseconds(load.load_ns))),
            around(loads().map(|load| milliseconds(load.context_ns))),
            part(|first| first.tokenize_ns),
            part(|first| first.prefill_ns),
            around(firsts.iter().filter_map(|(_, first)| {
                let computed = first.n_prompt.saturating_sub(first.n_reused);
                tokens_per_second(u64::from(computed), first.prefill_ns)
            })),
            part(|first| first.first_sample_ns),
            part(|first| first.ttft_ns),
            around(firsts.iter().filter_map(|(load, first)| {
                let load = load.as_ref()?;
                Some(milliseconds(load.load_ns + load.context_ns + first.ttft_ns))
            })),
            around(
                firsts
                    .iter()
                    .filter_map(|(_, first)| first.first_decode_ns.map(milliseconds)),
            ),
        ]);
        table.row(cells);
    }
    notes.dedup();
    Some(Part {
        title: "First token: from the question to its first token, in milliseconds; the model is loaded anew each time.",
        table,
        notes,
    })
}

/// The share of the file that was in memory before each load, the least and the most of it.
fn range(shares: &[f64]) -> String {
    let least = shares.iter().copied().reduce(f64::min);
    let most = shares.iter().copied().reduce(f64::max);
    match (least.map(percent), most.map(percent)) {
        (Some(least), Some(most)) if least == most => most,
        (Some(least), Some(most)) => format!("{least} to {most}"),
        _ => UNKNOWN.into(),
    }
}
