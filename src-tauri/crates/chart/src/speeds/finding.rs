//! The finding: what the figure shows, in one sentence, or its subject where nothing is clear.

use std::cmp::Ordering;

use crate::measured::{Measured, clearly, faster};
use crate::text::{self, Weight};

use super::Prepared;

/// Fewer measured values make no trend.
const LEAST_POINTS: usize = 3;
/// Names in a title are shortened to so many px.
const NAME: f64 = 220.0;

const PREFILL: usize = 0;
const DECODE: usize = 1;

/// The finding of the rows, or their `subject`.
pub fn finding(rows: &[Prepared], subject: &str) -> String {
    let found = match rows {
        [] => None,
        [row] => single(row),
        [a, b] => pair(a, b),
        rows => trend(rows).or_else(|| champions(rows)),
    };
    found.unwrap_or_else(|| plain(rows, subject))
}

fn single(row: &Prepared) -> Option<String> {
    let [prefill, decode] = measured(row);
    let (prefill, decode) = (prefill?, decode?);
    let (first, second, (by, than)) = match clearly(prefill, decode)? {
        Ordering::Less => ("Writing", "reading", faster(decode, prefill)),
        _ => ("Reading", "writing", faster(prefill, decode)),
    };
    Some(format!("{first} is {by} {than} {second}"))
}

fn pair(a: &Prepared, b: &Prepared) -> Option<String> {
    let names = names(&[a, b]);
    let [Some(first), Some(second)] = &names[..] else {
        return None;
    };
    let names = [first, second];
    // The faster one's index and how much faster it is; `None` inside where there is no telling.
    let lead = |phase: usize| {
        let (x, y) = (measured(a)[phase]?, measured(b)[phase]?);
        Some(clearly(x, y).map(|order| match order {
            Ordering::Less => (1, faster(y, x)),
            _ => (0, faster(x, y)),
        }))
    };
    match (lead(PREFILL), lead(DECODE)) {
        (Some(Some((reads, (by, than)))), Some(Some((writes, (also, _))))) if reads == writes => {
            Some(format!(
                "{} reads {by} {than} {} and writes {also}",
                names[reads],
                names[1 - reads]
            ))
        }
        (Some(Some((reads, _))), Some(Some((writes, _)))) => Some(format!(
            "{} reads faster; {} writes faster",
            names[reads], names[writes]
        )),
        (Some(Some((reads, (by, than)))), decode) => Some(format!(
            "{} reads {by} {than} {}{}",
            names[reads],
            names[1 - reads],
            decode.map_or("", |_| "; writing does not differ clearly")
        )),
        (prefill, Some(Some((writes, (by, than))))) => Some(format!(
            "{} writes {by} {than} {}{}",
            names[writes],
            names[1 - writes],
            prefill.map_or("", |_| "; reading does not differ clearly")
        )),
        _ => None,
    }
}

/// How a speed goes as files grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Falls,
    Rises,
    /// No two differ clearly.
    Level,
    /// Some rise, some fall.
    Mixed,
}

fn course(by_size: &[&Prepared], phase: usize) -> Option<Course> {
    let values: Vec<&Measured> = by_size
        .iter()
        .filter_map(|row| measured(row)[phase])
        .collect();
    if values.len() < LEAST_POINTS {
        return None;
    }
    let (mut rises, mut falls) = (false, false);
    for (i, small) in values.iter().enumerate() {
        for large in &values[i + 1..] {
            match clearly(small, large) {
                Some(Ordering::Less) => rises = true,
                Some(_) => falls = true,
                None => {}
            }
        }
    }
    Some(match (rises, falls) {
        (false, false) => Course::Level,
        (true, false) => Course::Rises,
        (false, true) => Course::Falls,
        (true, true) => Course::Mixed,
    })
}

/// What happens to the speeds as files grow, where every size is known and different.
fn trend(rows: &[Prepared]) -> Option<String> {
    let mut by_size: Vec<&Prepared> = rows.iter().collect();
    by_size.sort_by_key(|row| row.file_bytes);
    if by_size.iter().any(|row| row.file_bytes.is_none())
        || by_size
            .windows(2)
            .any(|w| w[0].file_bytes == w[1].file_bytes)
    {
        return None;
    }
    let prefill = course(&by_size, PREFILL);
    let decode = course(&by_size, DECODE);
    let moves = |course| matches!(course, Some(Course::Falls | Course::Rises));
    let (leading, name, other, other_name) = match (prefill, decode) {
        (Some(Course::Falls), Some(Course::Falls)) => {
            return Some("Both speeds fall as the file grows".to_owned());
        }
        (Some(Course::Rises), Some(Course::Rises)) => {
            return Some("Both speeds rise as the file grows".to_owned());
        }
        (prefill, decode) if moves(decode) => (decode?, "Decode", prefill, "prefill"),
        (prefill, decode) if moves(prefill) => (prefill?, "Prefill", decode, "decode"),
        _ => return None,
    };
    let verb = if leading == Course::Falls {
        "slows"
    } else {
        "gets faster"
    };
    let rest = match other {
        None => String::new(),
        Some(Course::Mixed) => format!("; {other_name} does not follow size"),
        Some(Course::Level) => format!("; {other_name} does not change clearly"),
        Some(Course::Rises) => format!("; {other_name} gets faster"),
        Some(Course::Falls) => format!("; {other_name} slows"),
    };
    Some(format!("{name} {verb} as the file grows{rest}"))
}

/// Who is clearly faster than all others, where a name says who that is.
fn champions(rows: &[Prepared]) -> Option<String> {
    let all: Vec<&Prepared> = rows.iter().collect();
    let names = names(&all);
    let champion = |phase: usize| {
        let runs: Vec<(usize, &Measured)> = rows
            .iter()
            .enumerate()
            .filter_map(|(i, row)| Some((i, measured(row)[phase]?)))
            .collect();
        let (best, fastest) = runs
            .iter()
            .max_by(|a, b| a.1.mean.total_cmp(&b.1.mean))
            .copied()?;
        let clear = runs.len() > 1
            && runs
                .iter()
                .all(|(i, run)| *i == best || clearly(run, fastest) == Some(Ordering::Less));
        clear.then(|| names[best].clone()).flatten()
    };
    match (champion(PREFILL), champion(DECODE)) {
        (Some(reads), Some(writes)) if reads == writes => {
            Some(format!("{reads} reads and writes fastest"))
        }
        (Some(reads), Some(writes)) => {
            Some(format!("{reads} reads fastest; {writes} writes fastest"))
        }
        (Some(reads), None) => Some(format!("{reads} reads fastest")),
        (None, Some(writes)) => Some(format!("{writes} writes fastest")),
        (None, None) => None,
    }
}

/// The subject, plainly.
fn plain(rows: &[Prepared], subject: &str) -> String {
    let has = |phase: usize| rows.iter().any(|row| measured(row)[phase].is_some());
    let speeds = match (has(PREFILL), has(DECODE)) {
        (true, false) => "Prefill speed",
        (false, true) => "Decode speed",
        _ => "Prefill and decode speed",
    };
    let all: Vec<&Prepared> = rows.iter().collect();
    let subject = match rows {
        _ if !subject.is_empty() => subject.to_owned(),
        [] => return speeds.to_owned(),
        [row] => match &row.names.group {
            Some(group) => format!("{group} {}", row.names.label),
            None => row.names.label.clone(),
        },
        [first, ..] if groups(&all) == 1 => match &first.names.group {
            Some(group) => group.clone(),
            None => format!("{} runs", rows.len()),
        },
        _ => format!("{} models", groups(&all)),
    };
    let subject = text::shorten(&subject, 2.0 * NAME, 20.0, Weight::SemiBold);
    format!("{speeds} of {subject}")
}

fn measured(row: &Prepared) -> [Option<&Measured>; 2] {
    [0, 1].map(|phase| row.phases[phase].measured.as_ref())
}

fn groups(rows: &[&Prepared]) -> usize {
    let mut names: Vec<_> = rows.iter().map(|row| &row.names.group).collect();
    names.sort();
    names.dedup();
    names.len()
}

/// What tells the rows apart: the model where each has its own, the label in one model, else both.
/// `None` for a row whose name another has too: a sentence would not say which of them it means.
fn names(rows: &[&Prepared]) -> Vec<Option<String>> {
    let groups = groups(rows);
    let names: Vec<String> = rows
        .iter()
        .map(|row| {
            let name = match &row.names.group {
                Some(group) if groups == rows.len() => group.clone(),
                Some(group) if groups > 1 => format!("{group} {}", row.names.label),
                _ => row.names.label.clone(),
            };
            text::shorten(&name, NAME, 20.0, Weight::SemiBold)
        })
        .collect();
    let alone = |name: &&String| names.iter().filter(|other| other == name).count() == 1;
    names
        .iter()
        .map(|name| Some(name).filter(alone).cloned())
        .collect()
}
