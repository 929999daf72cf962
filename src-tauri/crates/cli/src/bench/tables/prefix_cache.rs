//! What a kept prompt saves.

use twospeed_engine::protocol::ServedReading;
use twospeed_measure::stats::{median, tokens_per_second};
use twospeed_measure::{Kind, TestOutcome};

use super::{Leading, Part, UNKNOWN, around, milliseconds, percent, served};

pub fn table(tests: &[&TestOutcome]) -> Option<Part> {
    if tests.is_empty() {
        return None;
    }
    let leading = Leading::of(tests);
    let mut table = leading.table(&[
        "request",
        ">prompt",
        ">shared",
        ">reused",
        ">computed",
        ">prefill ms",
        ">prefill t/s",
        ">TTFT ms",
        ">of cold",
    ]);
    let mut kept_less = false;
    for test in tests {
        let at = |place: usize| -> Vec<ServedReading> {
            served(test)
                .filter_map(|requests| requests.get(place).copied())
                .collect()
        };
        let typical = |requests: &[ServedReading]| {
            let times: Vec<f64> = requests.iter().map(|one| one.ttft_ns as f64).collect();
            median(&times)
        };
        let cold = typical(&at(0));
        let changed = match test.test.kind {
            Kind::PrefixCache { changed } => changed,
            _ => 0,
        };
        let names = [
            "cold".to_owned(),
            "again".to_owned(),
            format!("last {changed} changed"),
        ];
        for (place, name) in names.into_iter().enumerate() {
            let requests = at(place);
            let Some(last) = requests.last() else {
                continue;
            };
            // The last token is always computed: its logits are asked for.
            kept_less |= last.n_reused + 1 < last.n_shared;
            let share = typical(&requests).zip(cold).map(|(this, cold)| this / cold);
            let computed = last.n_prompt.saturating_sub(last.n_reused);
            let mut cells = leading.cells(test);
            cells.extend([
                name,
                last.n_prompt.to_string(),
                last.n_shared.to_string(),
                last.n_reused.to_string(),
                computed.to_string(),
                around(requests.iter().map(|one| milliseconds(one.prefill_ns))),
                around(
                    requests
                        .iter()
                        .filter_map(|one| tokens_per_second(u64::from(computed), one.prefill_ns)),
                ),
                around(requests.iter().map(|one| milliseconds(one.ttft_ns))),
                share.map_or_else(|| UNKNOWN.into(), percent),
            ]);
            table.row(cells);
        }
    }
    let note = "Fewer tokens were reused than the prompts share: this model's memory (recurrent state, or a sliding window that has moved on) cannot drop a tail, so it was computed anew.";
    Some(Part {
        title: "Prefix cache: the same prompt cold, again, and with another tail; reused tokens never count as prefill.",
        table,
        notes: kept_less.then(|| note.to_owned()).into_iter().collect(),
    })
}
