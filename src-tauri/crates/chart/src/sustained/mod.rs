//! The `sustained` figure: what a machine holds over time, with clock and temperature.

mod finding;

use crate::Error;
use crate::curves::{self, At, Curves, Line, Marker, Name, Panel, Spread, at_ends, sound_points};
use crate::figure::{Figure, Frame};
use crate::look::PHASES;
use crate::number;
use crate::palette::Role;
use crate::rows::Names;
use crate::text;

/// What the figure shows. Places are seconds from the start, a value for each sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sustained {
    /// What is compared, for a title without a finding. May be empty.
    pub subject: String,
    /// What was measured.
    pub subtitle: String,
    /// The prefill test in words: `reading 512 tokens`.
    pub prefill_test: Option<String>,
    /// The decode test in words: `writing 128 tokens`.
    pub decode_test: Option<String>,
    /// A course each.
    pub series: Vec<SustainedSeries>,
    /// Provenance, a statement each.
    pub footer: Vec<String>,
}

/// A model under one choice of settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SustainedSeries {
    /// What it is called.
    pub name: Name,
    /// Seconds and tokens per second of each prefill.
    pub prefill: Vec<(f64, f64)>,
    /// Seconds and tokens per second of each decode.
    pub decode: Vec<(f64, f64)>,
    /// Seconds and clock in GHz.
    pub clock_ghz: Vec<(f64, f64)>,
    /// Seconds and degrees Celsius.
    pub temperature_c: Vec<(f64, f64)>,
}

/// Courses longer than this are drawn in minutes.
const IN_MINUTES: f64 = 150.0;

/// A series made fit to draw, its places in the unit of the axis.
struct Prepared {
    names: Names,
    phases: [Vec<At>; 2],
    clock: Vec<At>,
    temperature: Vec<At>,
}

fn points(values: &[(f64, f64)], unit: f64) -> Vec<At> {
    let points: Vec<At> = values
        .iter()
        .map(|(place, value)| At::one(place / unit, *value))
        .collect();
    sound_points(&points)
}

fn minutes(place: f64) -> String {
    let seconds = (place * 60.0).round();
    match (seconds / 60.0).floor() {
        0.0 => format!("after {seconds:.0} s"),
        whole => format!("after {whole:.0} min {:.0} s", seconds - whole * 60.0),
    }
}

fn seconds(place: f64) -> String {
    format!("after {place:.0} s")
}

/// Draws the figure: prefill, decode, and clock and temperature where they are known.
///
/// Errors: [`Error::Empty`] where nothing was measured.
pub fn sustained(input: &Sustained, frame: &Frame) -> Result<Figure, Error> {
    let last = input
        .series
        .iter()
        .flat_map(|series| series.prefill.iter().chain(&series.decode))
        .map(|(place, _)| *place)
        .filter(|place| place.is_finite())
        .fold(0.0, f64::max);
    let in_minutes = last > IN_MINUTES;
    let unit = if in_minutes { 60.0 } else { 1.0 };
    let rows: Vec<Prepared> = input
        .series
        .iter()
        .map(|series| Prepared {
            names: series.name.names(),
            phases: [points(&series.prefill, unit), points(&series.decode, unit)],
            clock: points(&series.clock_ghz, unit),
            temperature: points(&series.temperature_c, unit),
        })
        .collect();
    let names: Vec<Names> = rows.iter().map(|row| row.names.clone()).collect();
    if rows.iter().all(|row| row.phases.iter().all(Vec::is_empty)) {
        return Err(Error::Empty);
    }
    let curves = Curves {
        kind: "sustained",
        title: finding::finding(&rows, &names, unit, &text::clean(&input.subject)),
        subtitle: &input.subtitle,
        footer: &input.footer,
        names: &names,
        panels: panels(input, &rows, &at_ends(&names)),
        spread: Spread::Even,
        axis_title: if in_minutes {
            "minutes from the start"
        } else {
            "seconds from the start"
        },
        across: if in_minutes { "minutes" } else { "seconds" },
        in_words: if in_minutes { minutes } else { seconds },
    };
    curves::draw(curves, frame)
}

fn panels(input: &Sustained, rows: &[Prepared], ends: &[String]) -> Vec<Panel> {
    let lines = |of: &dyn Fn(&Prepared) -> Vec<At>| -> Vec<Line> {
        rows.iter()
            .zip(ends)
            .enumerate()
            .map(|(row, (prepared, end))| Line {
                row,
                part: None,
                name: end.clone(),
                marker: Marker::of(row),
                points: of(prepared),
            })
            .filter(|line| !line.points.is_empty())
            .collect()
    };
    let tests = [&input.prefill_test, &input.decode_test];
    let mut panels: Vec<Panel> = [0, 1]
        .into_iter()
        .map(|phase| {
            let look = &PHASES[phase];
            let test = tests[phase].as_deref().and_then(text::filled);
            Panel {
                id: look.name,
                heading: look.heading,
                name: look.name,
                shape: look.shape,
                ink: look.ink,
                note: match test {
                    Some(test) => format!("tokens per second, {test}"),
                    None => "tokens per second".to_owned(),
                },
                unit: "tok/s",
                lines: lines(&|row| row.phases[phase].clone()),
                is_course: true,
            }
        })
        .collect();
    let machine = |id, heading, name, note: &str, unit, lines| Panel {
        id,
        heading,
        name,
        shape: Role::InkSecond,
        ink: Role::Ink,
        note: note.to_owned(),
        unit,
        lines,
        is_course: true,
    };
    // Not readable on this machine is no gap of the measurement: then there is no panel.
    let clock = lines(&|row| row.clock.clone());
    if !clock.is_empty() {
        panels.push(machine(
            "clock",
            "Clock",
            "clock",
            "GHz, mean of the cores",
            "GHz",
            clock,
        ));
    }
    let temperature = lines(&|row| row.temperature.clone());
    if !temperature.is_empty() {
        panels.push(machine(
            "temperature",
            "Temperature",
            "temperature",
            "degrees Celsius, of the processor",
            "°C",
            temperature,
        ));
    }
    panels
}

/// The length of a course in words.
fn length(place: f64, unit: f64) -> String {
    let seconds = place * unit;
    if seconds < 90.0 {
        return format!("{} seconds", number::count(seconds));
    }
    match number::in_words(seconds / 60.0).as_str() {
        "one" => "one minute".to_owned(),
        minutes => format!("{minutes} minutes"),
    }
}
