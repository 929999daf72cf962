//! What users side by side show, in one sentence.

use crate::curves::{At, in_title};
use crate::measured::{Measured, clearly};
use crate::number;
use crate::rows::Names;

use super::Prepared;

/// How much faster all are together than the fewest.
struct Gain {
    /// The fewest and the most users.
    users: (f64, f64),
    ratio: f64,
    clear: bool,
}

fn gain(points: &[At]) -> Option<Gain> {
    let measured: Vec<(f64, &Measured)> = points
        .iter()
        .filter_map(|point| Some((point.place, point.value.as_ref()?)))
        .collect();
    let ((few, slow), (many, fast)) = (measured.first()?, measured.last()?);
    (few < many && slow.mean > 0.0).then(|| Gain {
        users: (*few, *many),
        ratio: fast.mean / slow.mean,
        clear: clearly(slow, fast).is_some(),
    })
}

/// The finding, or the subject.
pub fn finding(rows: &[Prepared], names: &[Names], subject: &str) -> String {
    let found = match rows {
        [row] => single(row),
        rows => several(rows, names),
    };
    found.unwrap_or_else(|| match subject.is_empty() {
        true => "Decode of users at once".to_owned(),
        false => format!("{subject} with users at once"),
    })
}

fn single(row: &Prepared) -> Option<String> {
    let gain = gain(&row.together)?;
    let (few, many) = (
        number::in_words(gain.users.0),
        number::capital(&number::in_words(gain.users.1)),
    );
    Some(if !gain.clear {
        format!("{many} users together decode no faster than {few}")
    } else if gain.ratio < 1.0 {
        format!(
            "{many} users together decode {} slower than {few}",
            number::percent(1.0 - gain.ratio)
        )
    } else {
        format!(
            "{many} users together decode {} as fast as {few}",
            number::times(gain.ratio)
        )
    })
}

/// The series that gain most and least, where all have the same users.
fn several(rows: &[Prepared], names: &[Names]) -> Option<String> {
    let mut gains = Vec::new();
    for (row, name) in rows.iter().zip(names) {
        gains.push((gain(&row.together)?, in_title(name, names)));
    }
    let users = gains.first()?.0.users;
    if gains.iter().any(|(gain, _)| gain.users != users) {
        return None;
    }
    gains.sort_by(|a, b| a.0.ratio.total_cmp(&b.0.ratio));
    let ((least, last), (most, first)) = (gains.first()?, gains.last()?);
    let many = number::capital(&number::in_words(users.1));
    let (low, high) = (number::times(least.ratio), number::times(most.ratio));
    Some(if low == high {
        format!(
            "{many} users together decode {high} as fast as {}",
            number::in_words(users.0)
        )
    } else {
        format!(
            "{many} users decode {low} ({last}) to {high} ({first}) as fast as {}",
            number::in_words(users.0)
        )
    })
}
