//! How well a text is predicted.

use twospeed_engine::protocol::{AgainstBase, QualityReading, Reading};
use twospeed_measure::{Kind, TestOutcome};

use super::{Leading, Part, UNKNOWN, percent};
use crate::bench::output::short_name;

pub fn table(tests: &[&TestOutcome]) -> Option<Part> {
    if tests.is_empty() {
        return None;
    }
    let leading = Leading::of(tests);
    let mut table = leading.table(&[
        ">scored",
        ">perplexity",
        "against",
        ">its perplexity",
        ">KL divergence",
        ">KL median",
        ">KL 99 %",
        ">KL largest",
        ">same top token",
    ]);
    for test in tests {
        let reading = test
            .samples
            .iter()
            .find_map(|sample| match &sample.sample.reading {
                Some(Reading::Quality(reading)) => Some(*reading),
                _ => None,
            });
        let Some(reading) = reading else { continue };
        let mut cells = leading.cells(test);
        cells.extend(judged(test, &reading));
        table.row(cells);
    }
    Some(Part {
        title: "Quality: how well a text is predicted; lower perplexity and divergence (in nats) are better.",
        table,
        notes: Vec::new(),
    })
}

fn judged(test: &TestOutcome, reading: &QualityReading) -> Vec<String> {
    let mut cells = vec![
        reading.n_scored.to_string(),
        format!(
            "{:.4} ± {:.4}",
            reading.perplexity, reading.perplexity_error
        ),
    ];
    let Kind::Quality {
        base: Some(base), ..
    } = &test.test.kind
    else {
        cells.push("nothing".into());
        cells.extend(vec![String::new(); 6]);
        return cells;
    };
    cells.push(short_name(base).replace('|', "\\|"));
    match &reading.against_base {
        Some(against) => cells.extend(divergence(against)),
        None => cells.extend(vec![UNKNOWN.to_owned(); 6]),
    }
    cells
}

fn divergence(against: &AgainstBase) -> [String; 6] {
    [
        format!("{:.4}", against.base_perplexity),
        format!("{:.6} ± {:.6}", against.kl_mean, against.kl_error),
        format!("{:.6}", against.kl_median),
        format!("{:.4}", against.kl_p99),
        format!("{:.4}", against.kl_max),
        percent(against.same_top),
    ]
}
