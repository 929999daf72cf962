//! Draws the figures of what is expected, to be looked at: `predictions [FOLDER]`.

#[path = "../tests/inputs/mod.rs"]
mod inputs;

use std::fs;
use std::path::PathBuf;

use inputs::predictions;
use twospeed_chart::{Figure, Frame, PngSize, Theme, breakdown, estimates, roofline, speeds};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| std::env::temp_dir().join("predictions"), PathBuf::from);
    fs::create_dir_all(&folder)?;
    for (suffix, width) in [("-narrow", 420.0), ("", 580.0), ("-wide", 1232.0)] {
        let frame = Frame {
            width,
            ..Frame::default()
        };
        let breakdowns = inputs::with_breakdown(inputs::quantizations());
        let figures: Vec<(&str, Figure)> = vec![
            ("roofline", roofline(&predictions::roofline(), &frame)?),
            (
                "roofline-expected",
                roofline(&predictions::roofline_expected(), &frame)?,
            ),
            (
                "roofline-ends",
                roofline(&predictions::roofline_ends(), &frame)?,
            ),
            (
                "roofline-four",
                roofline(&predictions::roofline_of_four(), &frame)?,
            ),
            (
                "roofline-many",
                roofline(&predictions::roofline_of_many(), &frame)?,
            ),
            (
                "roofline-damaged",
                roofline(&predictions::roofline_damaged(), &frame)?,
            ),
            ("breakdown", breakdown(&predictions::breakdown(), &frame)?),
            (
                "breakdown-experts",
                breakdown(&predictions::breakdown_of_experts(), &frame)?,
            ),
            (
                "breakdown-gaps",
                breakdown(&predictions::breakdown_gaps(), &frame)?,
            ),
            (
                "breakdown-ten",
                breakdown(&predictions::breakdown_of_ten(), &frame)?,
            ),
            ("estimate", estimates(&predictions::estimates(), &frame)?),
            (
                "estimate-parts",
                estimates(&predictions::estimates_with_parts(), &frame)?,
            ),
            (
                "estimate-alone",
                estimates(&predictions::estimates_alone(), &frame)?,
            ),
            (
                "estimate-uncalibrated",
                estimates(&predictions::estimates_without_calibration(), &frame)?,
            ),
            ("speeds-breakdown", speeds(&breakdowns, &frame)?),
        ];
        for (name, figure) in figures {
            for (theme, dark) in [(Theme::Light, ""), (Theme::Dark, "-dark")] {
                let file = folder.join(format!("{name}{suffix}{dark}.png"));
                fs::write(file, figure.to_png(theme, PngSize::Scale(1.5))?)?;
            }
        }
    }
    println!("{}", folder.display());
    Ok(())
}
