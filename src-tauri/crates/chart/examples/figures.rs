//! Draws every figure of several inputs, to be looked at: `figures [FOLDER]`.

#[path = "../tests/inputs/mod.rs"]
mod inputs;

use std::fs;
use std::path::{Path, PathBuf};

use inputs::{curves, rows};
use twospeed_chart::{Figure, Frame, PngSize, Theme};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| std::env::temp_dir().join("figures"), PathBuf::from);
    fs::create_dir_all(&folder)?;
    let frame = Frame::default();
    let narrow = Frame {
        width: 420.0,
        ..frame
    };
    let screen = Frame {
        height: Some(639.0),
        ..frame
    };
    for (name, figure) in [
        (
            "context",
            twospeed_chart::context(&curves::context(), &screen)?,
        ),
        (
            "context-three",
            twospeed_chart::context(&curves::context_of_three(), &frame)?,
        ),
        (
            "context-three-narrow",
            twospeed_chart::context(&curves::context_of_three(), &narrow)?,
        ),
        (
            "context-twelve",
            twospeed_chart::context(&curves::context_of_twelve(), &frame)?,
        ),
        (
            "context-point",
            twospeed_chart::context(&curves::context_point(), &frame)?,
        ),
        (
            "context-damaged",
            twospeed_chart::context(&curves::context_damaged(), &frame)?,
        ),
        (
            "context-hostile",
            twospeed_chart::context(&curves::hostile_context(), &frame)?,
        ),
        ("users", twospeed_chart::users(&curves::users(), &screen)?),
        (
            "users-two",
            twospeed_chart::users(&curves::users_of_two(), &frame)?,
        ),
        (
            "sustained",
            twospeed_chart::sustained(&curves::sustained(), &frame)?,
        ),
        (
            "sustained-short",
            twospeed_chart::sustained(&curves::sustained_short(), &frame)?,
        ),
        (
            "first-token",
            twospeed_chart::first_token(&rows::first_token(), &frame)?,
        ),
        (
            "first-token-narrow",
            twospeed_chart::first_token(&rows::first_token(), &narrow)?,
        ),
        (
            "first-token-two",
            twospeed_chart::first_token(&rows::starts_of_two(), &frame)?,
        ),
        (
            "first-token-nothing",
            twospeed_chart::first_token(&rows::nothing_reused(), &frame)?,
        ),
        (
            "first-token-one",
            twospeed_chart::first_token(&rows::one_wait(), &frame)?,
        ),
        (
            "quantization",
            twospeed_chart::quantization(&rows::quantizations_with_quality(), &frame)?,
        ),
        (
            "quantization-speeds",
            twospeed_chart::quantization(&rows::quantizations_without_quality(), &frame)?,
        ),
        (
            "quantization-gaps",
            twospeed_chart::quantization(&rows::quantization_gaps(), &narrow)?,
        ),
    ] {
        write(&folder, name, &figure)?;
    }
    println!("{}", folder.display());
    Ok(())
}

fn write(folder: &Path, name: &str, figure: &Figure) -> Result<(), Box<dyn std::error::Error>> {
    for (theme, suffix) in [(Theme::Light, ""), (Theme::Dark, "-dark")] {
        let png = figure.to_png(theme, PngSize::Scale(1.5))?;
        fs::write(folder.join(format!("{name}{suffix}.png")), png)?;
    }
    fs::write(
        folder.join(format!("{name}.svg")),
        figure.svg_for(Theme::Light),
    )?;
    fs::write(
        folder.join(format!("{name}.json")),
        serde_json::to_string_pretty(&figure.data)?,
    )?;
    Ok(())
}
