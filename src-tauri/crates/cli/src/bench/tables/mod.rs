//! What llama-bench's table has no columns for: a table for each kind of test, in Markdown, with
//! units.

mod first_token;
mod prefix_cache;
mod quality;
mod sustained;
mod until;
mod users;

use std::io::{self, Write};

use twospeed_engine::protocol::{Reading, ServedReading};
use twospeed_history::llama_bench::settings_fields;
use twospeed_measure::plan::Order;
use twospeed_measure::stats::spread;
use twospeed_measure::{Kind, Plan, TestOutcome};

use super::output::short_name;
use crate::table::Table;

/// Writes a table for each kind of test that is there, and what the plan's order and end say of
/// the speeds.
pub fn write(out: &mut dyn Write, plan: &Plan, tests: &[TestOutcome]) -> io::Result<()> {
    let of = |key: &str| -> Vec<&TestOutcome> {
        tests
            .iter()
            .filter(|test| test.test.kind.key() == key)
            .collect()
    };
    let speeds = of(Kind::Speed.key());
    if let Some(until) = plan.until {
        write_one(out, &until::table(plan, tests, until))?;
    }
    if let Order::Sustained { .. } = plan.order {
        write_one(out, &sustained::table(&speeds))?;
    }
    write_one(out, &first_token::table(&of("first_token")))?;
    write_one(out, &prefix_cache::table(&of("prefix_cache")))?;
    write_one(out, &users::table(&of("users")))?;
    write_one(out, &quality::table(&of("quality")))
}

/// A table with the line above it, and what is to be said below.
struct Part {
    title: &'static str,
    table: Table,
    notes: Vec<String>,
}

fn write_one(out: &mut dyn Write, part: &Option<Part>) -> io::Result<()> {
    let Some(part) = part else { return Ok(()) };
    writeln!(out, "\n{}\n", part.title)?;
    part.table.write_markdown(out)?;
    for note in &part.notes {
        writeln!(out, "\n{note}")?;
    }
    Ok(())
}

/// The columns that tell tests apart: the model, the settings in which they differ, the test.
struct Leading(Vec<&'static str>);

impl Leading {
    fn of(tests: &[&TestOutcome]) -> Self {
        let settings: Vec<_> = tests
            .iter()
            .map(|test| settings_fields(&test.test.settings))
            .collect();
        let Some(first) = settings.first() else {
            return Self(Vec::new());
        };
        let differs = |at: usize| settings.iter().any(|fields| fields[at] != first[at]);
        let fields = first.iter().enumerate();
        Self(
            fields
                .filter(|(at, _)| differs(*at))
                .map(|(_, (name, _))| *name)
                .collect(),
        )
    }

    fn table(&self, headings: &[&'static str]) -> Table {
        let mut all = vec!["model"];
        all.extend(&self.0);
        all.push("test");
        all.extend_from_slice(headings);
        Table::new(&all)
    }

    fn cells(&self, test: &TestOutcome) -> Vec<String> {
        let fields = settings_fields(&test.test.settings);
        let of = |wanted: &&str| fields.iter().find(|(name, _)| name == wanted);
        let settings = self.0.iter().filter_map(of).map(|(_, value)| value.plain());
        let mut cells = vec![short_name(&test.test.model).replace('|', "\\|")];
        cells.extend(settings);
        cells.push(test.test.kind.name(test.test.spec));
        cells
    }
}

/// The requests of each repetition.
fn served(test: &TestOutcome) -> impl Iterator<Item = &[ServedReading]> {
    test.samples
        .iter()
        .filter_map(|sample| match &sample.sample.reading {
            Some(Reading::Served { requests, .. }) => Some(requests.as_slice()),
            _ => None,
        })
}

const UNKNOWN: &str = "unknown";

/// `12.3 ± 0.4`: mean and standard deviation; one value has none of the latter.
fn around(values: impl IntoIterator<Item = f64>) -> String {
    let values: Vec<f64> = values.into_iter().collect();
    let Some(spread) = spread(&values) else {
        return UNKNOWN.into();
    };
    let digits = digits(spread.mean);
    match spread.standard_deviation {
        Some(deviation) => format!("{:.digits$} ± {deviation:.digits$}", spread.mean),
        None => format!("{:.digits$}", spread.mean),
    }
}

/// Decimals that are worth showing: three digits and more of any number above 1.
fn digits(number: f64) -> usize {
    match number.abs() {
        0.0..10.0 => 2,
        10.0..1000.0 => 1,
        _ => 0,
    }
}

fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests;
