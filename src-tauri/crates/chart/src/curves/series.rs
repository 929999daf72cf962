//! Series from outside, made fit to draw.

use crate::measured::{sound, sound_measured};
use crate::rows::Names;
use crate::text::{self, Weight};

use super::At;

/// What a line is called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Name {
    /// The model, where there is more than one.
    pub group: Option<String>,
    /// What tells it from the others: the quantization.
    pub label: String,
    /// What else differs: `4 threads`.
    pub detail: Option<String>,
}

impl Name {
    /// A name without model and detail.
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }

    /// The name made fit to draw.
    pub(crate) fn names(&self) -> Names {
        Names::new(
            self.group.as_deref(),
            &self.label,
            None,
            self.detail.as_deref(),
        )
    }
}

/// Names at the ends of lines: nothing where there is one line alone.
pub fn at_ends(names: &[Names]) -> Vec<String> {
    names
        .iter()
        .map(|name| match names.len() {
            1 => String::new(),
            _ => spoken(name, names),
        })
        .collect()
}

/// What tells a row from the others: as much of model, label and details as differs.
pub fn spoken(name: &Names, all: &[Names]) -> String {
    let several_models = all.iter().any(|other| other.group != name.group);
    let several_labels = all.iter().any(|other| other.label != name.label);
    let mut parts = Vec::new();
    if several_models {
        parts.extend(name.group.clone());
    }
    if several_labels || (!several_models && name.details.is_empty()) {
        parts.push(name.label.clone());
    }
    let alike = |other: &&Names| other.group == name.group && other.label == name.label;
    let mut text = parts.join(" ");
    if all.iter().filter(alike).count() > 1 || text.is_empty() {
        let details = name.details.join(", ");
        text = match (text.is_empty(), details.is_empty()) {
            (true, _) => details,
            (_, true) => text,
            _ => format!("{text}, {details}"),
        };
    }
    text
}

/// A name in a title.
pub fn in_title(name: &Names, all: &[Names]) -> String {
    text::shorten(&spoken(name, all), 220.0, 20.0, Weight::SemiBold)
}

/// Points in their order, each place once, values that can be shown.
pub fn sound_points(points: &[At]) -> Vec<At> {
    let mut sound_points: Vec<At> = points
        .iter()
        .filter(|point| sound(point.place))
        .map(|point| At {
            place: point.place,
            value: point.value.as_ref().and_then(sound_measured),
        })
        .collect();
    sound_points.sort_by(|a, b| a.place.total_cmp(&b.place));
    sound_points.dedup_by(|later, first| later.place == first.place);
    sound_points
}
