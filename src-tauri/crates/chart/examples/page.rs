//! Writes the figures that the page's stand-in of the app shows, as JSON of what the app would
//! say: `page [FOLDER]`, by default `ui/src/lib/backend/fixtures`.

#[path = "../tests/inputs/mod.rs"]
mod inputs;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use inputs::{curves, predictions, rows};
use serde_json::json;
use twospeed_chart::{
    Figure, Frame, Overlays, Phase, Speeds, breakdown, context, estimates, first_token,
    quantization, roofline, speeds, sustained, users,
};

const FIXTURES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../ui/src/lib/backend/fixtures"
);

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from(FIXTURES), PathBuf::from);
    fs::create_dir_all(&folder)?;
    let quantizations = measured_only(inputs::quantizations());
    let mut one = quantizations.clone();
    one.subtitle = "SmolLM2 135M Instruct Q4_1. Mean of 5 samples, 2 threads.".into();
    one.footer[0] = one.footer[0].replace("Q4_0, Q4_1, Q8_0, F16", "Q4_1");
    one.rows = vec![one.rows[1].clone()];
    let place = |width, height, scale| Frame {
        width,
        height: Some(height),
        scale,
    };
    for (name, input, frame, ceiling) in [
        ("four", &quantizations, place(580.0, 639.0, 1.0), true),
        (
            "four-without-ceiling",
            &quantizations,
            place(580.0, 639.0, 1.0),
            false,
        ),
        (
            "four-large",
            &quantizations,
            place(672.0, 1000.0, 1.6),
            true,
        ),
        ("one", &one, place(580.0, 639.0, 1.0), true),
        (
            "hostile",
            &measured_only(inputs::hostile()),
            place(580.0, 639.0, 1.0),
            true,
        ),
    ] {
        let input = Speeds {
            overlays: Overlays {
                ceiling,
                ..Overlays::default()
            },
            ..input.clone()
        };
        write(&folder, name, &speeds(&input, &frame)?)?;
    }
    let expected = inputs::with_breakdown(inputs::quantizations());
    for (name, breakdown) in [("four-expected", false), ("four-breakdown", true)] {
        let input = Speeds {
            overlays: Overlays {
                breakdown,
                ..Overlays::default()
            },
            ..expected.clone()
        };
        write(&folder, name, &speeds(&input, &place(580.0, 639.0, 1.0))?)?;
    }
    let screen = place(580.0, 639.0, 1.0);
    for (name, figure) in [
        ("roofline", roofline(&predictions::roofline(), &screen)?),
        ("breakdown", breakdown(&predictions::breakdown(), &screen)?),
        ("estimate", estimates(&predictions::estimates(), &screen)?),
        ("context", context(&curves::context(), &screen)?),
        ("users", users(&curves::users(), &screen)?),
        ("first-token", first_token(&rows::first_token(), &screen)?),
        (
            "quantization",
            quantization(&rows::quantizations_with_quality(), &screen)?,
        ),
        ("sustained", sustained(&curves::sustained(), &screen)?),
    ] {
        write(&folder, name, &figure)?;
    }
    Ok(())
}

/// A figure of a machine that is not calibrated: what was measured, and the ceiling of decode.
fn measured_only(mut input: Speeds) -> Speeds {
    for row in &mut input.rows {
        row.prefill = Phase {
            measured: row.prefill.measured.take(),
            ..Phase::default()
        };
        row.decode.expected = None;
        row.decode.parts = Vec::new();
    }
    input
}

fn write(folder: &Path, name: &str, figure: &Figure) -> Result<(), Box<dyn Error>> {
    let view = json!({
        "svg": figure.for_screen(),
        "width": figure.width(),
        "height": figure.height(),
        "data": figure.data,
    });
    fs::write(
        folder.join(format!("{name}.json")),
        serde_json::to_string(&view)? + "\n",
    )?;
    Ok(())
}
