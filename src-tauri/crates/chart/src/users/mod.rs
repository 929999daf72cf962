//! The `users` figure: what sequences side by side reach together and each, and how long they wait.

mod finding;

use crate::Error;
use crate::curves::{self, At, Curves, Line, Marker, Name, Panel, Spread, at_ends, sound_points};
use crate::figure::{Figure, Frame};
use crate::look::PHASES;
use crate::number;
use crate::palette::Role;
use crate::rows::Names;
use crate::text;

/// What the figure shows. Places are users.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Users {
    /// What is compared, for a title without a finding. May be empty.
    pub subject: String,
    /// What was measured.
    pub subtitle: String,
    /// The test in words: `writing 32 tokens each`.
    pub decode_test: Option<String>,
    /// What each user sends, in words: `prompts of 128 tokens, all at once`.
    pub wait_test: Option<String>,
    /// A line each.
    pub series: Vec<UsersSeries>,
    /// Provenance, a statement each.
    pub footer: Vec<String>,
}

/// A model under one choice of settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsersSeries {
    /// What it is called.
    pub name: Name,
    /// Decode of all users together, tokens per second.
    pub together: Vec<At>,
    /// Decode of each user, tokens per second.
    pub each: Vec<At>,
    /// Median time to first token over the users, milliseconds.
    pub median_wait_ms: Vec<At>,
    /// The longest of them, milliseconds.
    pub worst_wait_ms: Vec<At>,
}

/// A series made fit to draw.
struct Prepared {
    names: Names,
    together: Vec<At>,
    each: Vec<At>,
    median: Vec<At>,
    worst: Vec<At>,
}

/// How many users there are, in words.
fn in_words(users: f64) -> String {
    match users {
        1.0 => "with one user".to_owned(),
        users => format!("with {} users", number::count(users)),
    }
}

/// Draws the figure: decode of all together, of each user, and the time to first token.
///
/// Errors: [`Error::Empty`] where nothing was measured.
pub fn users(input: &Users, frame: &Frame) -> Result<Figure, Error> {
    let rows: Vec<Prepared> = input
        .series
        .iter()
        .map(|series| Prepared {
            names: series.name.names(),
            together: sound_points(&series.together),
            each: sound_points(&series.each),
            median: sound_points(&series.median_wait_ms),
            worst: sound_points(&series.worst_wait_ms),
        })
        .collect();
    let names: Vec<Names> = rows.iter().map(|row| row.names.clone()).collect();
    let ends = at_ends(&names);
    let lines = |of: fn(&Prepared) -> &Vec<At>| -> Vec<Line> {
        rows.iter()
            .zip(&ends)
            .enumerate()
            .filter(|(_, (row, _))| !of(row).is_empty())
            .map(|(index, (row, end))| Line {
                row: index,
                part: None,
                name: end.clone(),
                marker: Marker::of(index),
                points: of(row).clone(),
            })
            .collect()
    };
    let test = |text: &Option<String>| {
        let test = text.as_deref().and_then(text::filled);
        test.map_or_else(String::new, |test| format!(", {test}"))
    };
    let decode = &PHASES[1];
    let speed = |id, heading, name, of| Panel {
        id,
        heading,
        name,
        shape: decode.shape,
        ink: decode.ink,
        note: format!("tokens per second{}", test(&input.decode_test)),
        unit: "tok/s",
        lines: lines(of),
        is_course: false,
    };
    let panels = vec![
        speed(
            "together",
            "Decode, all together",
            "decode of all together",
            |row| &row.together,
        ),
        speed(
            "each",
            "Decode of each user",
            "decode of each user",
            |row| &row.each,
        ),
        Panel {
            id: "first_token",
            heading: "Time to first token",
            name: "time to first token",
            shape: Role::InkSecond,
            ink: Role::Ink,
            note: format!("milliseconds{}", test(&input.wait_test)),
            unit: "ms",
            lines: waits(lines(|row| &row.median), lines(|row| &row.worst)),
            is_course: false,
        },
    ];
    let curves = Curves {
        kind: "users",
        title: finding::finding(&rows, &names, &text::clean(&input.subject)),
        subtitle: &input.subtitle,
        footer: &input.footer,
        names: &names,
        panels,
        spread: Spread::Doubling,
        axis_title: "users at once",
        across: "users",
        in_words,
    };
    curves::draw(curves, frame)
}

/// Median and worst of each series, named at their ends, also where there is one series alone: the
/// median filled, the worst in the same form without filling.
fn waits(median: Vec<Line>, worst: Vec<Line>) -> Vec<Line> {
    let named = |lines: Vec<Line>, part: &'static str, is_filled: bool| {
        lines.into_iter().map(move |line| {
            let filled = Marker::of(line.row * 2);
            Line {
                part: Some(part),
                name: match line.name.is_empty() {
                    true => part.to_owned(),
                    false => format!("{}, {part}", line.name),
                },
                marker: if is_filled { filled } else { filled.hollow() },
                ..line
            }
        })
    };
    named(median, "median", true)
        .chain(named(worst, "worst", false))
        .collect()
}
