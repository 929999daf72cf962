//! What every figure has: the finding above, what was measured below it, provenance at the foot.

use crate::palette::Role;
use crate::scene::{Label, Scene};
use crate::text::{self, Weight};

const TITLE_SIZE: f64 = 20.0;
const TITLE_STEP: f64 = 26.0;
const SUBTITLE_SIZE: f64 = 13.0;
const SUBTITLE_STEP: f64 = 20.0;
const FOOT_SIZE: f64 = 12.0;
const FOOT_STEP: f64 = 18.0;
/// Lines of the subtitle and of each provenance statement; what is longer is shortened.
const MOST_LINES: usize = 3;

/// Writes title and subtitle from the top; returns the last baseline.
pub fn header(scene: &mut Scene, title: &str, subtitle: &str, width: f64) -> f64 {
    let mut baseline = 18.0;
    for (i, line) in text::title_lines(title, width, TITLE_SIZE, Weight::SemiBold)
        .into_iter()
        .enumerate()
    {
        if i > 0 {
            baseline += TITLE_STEP;
        }
        scene.label(Label::new(line, 0.0, baseline, TITLE_SIZE, Role::Ink).bold());
    }
    if subtitle.is_empty() {
        return baseline;
    }
    let lines = text::wrap(subtitle, width, SUBTITLE_SIZE, Weight::Regular, MOST_LINES);
    for (i, line) in lines.into_iter().enumerate() {
        baseline += if i == 0 { 28.0 } else { SUBTITLE_STEP };
        scene.label(Label::new(
            line,
            0.0,
            baseline,
            SUBTITLE_SIZE,
            Role::InkSecond,
        ));
    }
    baseline
}

/// Writes provenance below `bottom`, the last baseline above; returns the figure's height.
pub fn footer(scene: &mut Scene, statements: &[String], bottom: f64, width: f64) -> f64 {
    let lines: Vec<String> = statements
        .iter()
        .filter(|statement| !statement.is_empty())
        .flat_map(|statement| text::wrap(statement, width, FOOT_SIZE, Weight::Regular, MOST_LINES))
        .collect();
    if lines.is_empty() {
        return bottom + 6.0;
    }
    let mut baseline = bottom + 49.0 - FOOT_STEP;
    for line in lines {
        baseline += FOOT_STEP;
        scene.label(Label::new(line, 0.0, baseline, FOOT_SIZE, Role::InkThird));
    }
    baseline + 6.0
}

/// Height of what [`footer`] writes, for figures that fill a given height.
pub fn footer_height(statements: &[String], width: f64) -> f64 {
    footer(&mut Scene::default(), statements, 0.0, width)
}
