//! What a context curve shows, in one sentence.

use crate::curves::{At, in_title};
use crate::look::PHASES;
use crate::measured::{Measured, clearly};
use crate::number;
use crate::rows::Names;

use super::Prepared;

/// What was lost of a speed from the first depth to the last.
#[derive(Debug, Clone, Copy)]
struct Loss {
    /// The last depth.
    depth: f64,
    /// From 0 to 1; negative where it became faster. `None` = no clear difference.
    share: Option<f64>,
}

fn loss(points: &[At], at: Option<f64>) -> Option<Loss> {
    let measured: Vec<(f64, &Measured)> = points
        .iter()
        .filter_map(|point| Some((point.place, point.value.as_ref()?)))
        .collect();
    let (first, last) = (
        measured.first()?,
        match at {
            Some(depth) => measured.iter().find(|(place, _)| *place == depth)?,
            None => measured.last()?,
        },
    );
    (first.0 < last.0 && first.1.mean > 0.0).then(|| Loss {
        depth: last.0,
        share: clearly(first.1, last.1).map(|_| 1.0 - last.1.mean / first.1.mean),
    })
}

/// The finding, or the subject.
pub fn finding(rows: &[Prepared], names: &[Names], subject: &str) -> String {
    let found = match rows {
        [row] => single(row),
        rows => several(rows, names),
    };
    found.unwrap_or_else(|| plain(subject))
}

/// `lost 38 %` or `gained 4 %`.
fn moved(share: f64) -> String {
    if share >= 0.0 {
        format!("lost {}", number::percent(share))
    } else {
        format!("gained {}", number::percent(-share))
    }
}

fn single(row: &Prepared) -> Option<String> {
    let [prefill, decode] = [0, 1].map(|phase| loss(&row.phases[phase], None));
    let at = |loss: &Loss| format!("At a depth of {} tokens", number::count(loss.depth));
    match (prefill, decode) {
        (Some(p), Some(d)) if p.depth == d.depth => Some(match (p.share, d.share) {
            (Some(read), Some(written)) if (read >= 0.0) == (written >= 0.0) => {
                format!(
                    "{} decode has {} and prefill {}",
                    at(&d),
                    moved(written),
                    number::percent(read.abs())
                )
            }
            (_, Some(written)) => format!("{} decode has {}", at(&d), moved(written)),
            (Some(read), None) => {
                format!(
                    "{} prefill has {}; decode keeps its speed",
                    at(&p),
                    moved(read)
                )
            }
            (None, None) => format!(
                "Both speeds hold up to a depth of {} tokens",
                number::count(d.depth)
            ),
        }),
        (_, Some(one)) => Some(alone(1, &one, &at(&one))),
        (Some(one), None) => Some(alone(0, &one, &at(&one))),
        (None, None) => None,
    }
}

fn alone(phase: usize, loss: &Loss, at: &str) -> String {
    match loss.share {
        Some(share) => format!("{at} {} has {}", PHASES[phase].name, moved(share)),
        None => format!(
            "{} keeps its speed up to a depth of {} tokens",
            PHASES[phase].heading,
            number::count(loss.depth)
        ),
    }
}

/// The series that lose least and most at the deepest depth that all have.
fn several(rows: &[Prepared], names: &[Names]) -> Option<String> {
    let phase = [1, 0].into_iter().find(|phase| {
        rows.iter()
            .all(|row| loss(&row.phases[*phase], None).is_some())
    })?;
    let has = |row: &Prepared, depth: f64| {
        let point = row.phases[phase].iter().find(|point| point.place == depth);
        point.is_some_and(|point| point.value.is_some())
    };
    let depth = rows.first()?.phases[phase]
        .iter()
        .map(|point| point.place)
        .rfind(|depth| rows.iter().all(|row| has(row, *depth)))?;
    let mut losses = Vec::new();
    for (row, name) in rows.iter().zip(names) {
        let share = loss(&row.phases[phase], Some(depth))?.share.unwrap_or(0.0);
        losses.push((share, in_title(name, names)));
    }
    losses.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ((least, keeps), (most, falls)) = (losses.first()?, losses.last()?);
    let decode = PHASES[phase].name;
    let at = format!("At a depth of {} tokens", number::count(depth));
    if *most < 0.02 {
        return Some(format!(
            "{} holds up to a depth of {} tokens",
            PHASES[phase].heading,
            number::count(depth)
        ));
    }
    if number::percent(*least) == number::percent(*most) {
        return Some(format!(
            "{at} {decode} has lost {} in each",
            number::percent(*most)
        ));
    }
    let least = number::percent(least.max(0.0));
    Some(format!(
        "{at} {decode} has lost {least} ({keeps}) to {} ({falls})",
        number::percent(*most)
    ))
}

fn plain(subject: &str) -> String {
    if subject.is_empty() {
        "Speed at growing depth".to_owned()
    } else {
        format!("Speed of {subject} at growing depth")
    }
}
