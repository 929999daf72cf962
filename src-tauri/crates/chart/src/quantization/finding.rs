//! What the quantizations show, in one sentence: the fastest writer against the best reader.

use crate::measured::{clearly, faster};
use crate::number;
use crate::text::{self, Weight};

use super::Prepared;

/// A perplexity that differs by less is called the same.
const LEAST: f64 = 0.0005;

/// The finding, or the subject.
pub fn finding(rows: &[Prepared], subject: &str) -> String {
    against(rows).unwrap_or_else(|| match subject.is_empty() {
        true => "Speeds of the quantizations".to_owned(),
        false => format!("Quantizations of {subject}"),
    })
}

/// The fastest in decode against the largest file of the same model; of several models nothing
/// is said.
fn against(rows: &[Prepared]) -> Option<String> {
    if rows
        .iter()
        .any(|row| row.names.group != rows[0].names.group)
    {
        return None;
    }
    let decode = |row: &Prepared| row.speeds[1].clone();
    let fast = rows
        .iter()
        .filter(|row| decode(row).is_some())
        .max_by(|a, b| mean(a).total_cmp(&mean(b)))?;
    let large = rows
        .iter()
        .filter(|row| decode(row).is_some() && row.file_bytes.is_some())
        .max_by_key(|row| row.file_bytes)?;
    let name = |row: &Prepared| text::shorten(&row.names.label, 220.0, 20.0, Weight::SemiBold);
    if fast.names == large.names || name(fast) == name(large) {
        return None;
    }
    let (quick, slow) = (decode(fast)?, decode(large)?);
    clearly(&quick, &slow)?;
    let (by, than) = faster(&quick, &slow);
    let speed = match than {
        "as" => format!("{} decodes {by} as {}", name(fast), name(large)),
        _ => format!("{} decodes {by} than {}", name(fast), name(large)),
    };
    let (Some(cost), Some(base)) = (&fast.quality, &large.quality) else {
        return Some(speed);
    };
    let more = cost.perplexity / base.perplexity - 1.0;
    Some(if more.abs() < LEAST {
        format!("{speed}; their perplexity is the same")
    } else if more > 0.0 {
        format!(
            "{speed} and its perplexity is {} higher",
            number::percent(more)
        )
    } else {
        format!(
            "{speed} and its perplexity is {} lower",
            number::percent(-more)
        )
    })
}

fn mean(row: &Prepared) -> f64 {
    row.speeds[1].as_ref().map_or(0.0, |speed| speed.mean)
}
