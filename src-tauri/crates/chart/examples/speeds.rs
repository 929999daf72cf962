//! Draws the `speeds` figure of several inputs, to be looked at: `speeds [FOLDER]`.

#[path = "../tests/inputs/mod.rs"]
mod inputs;

use std::fs;
use std::path::PathBuf;

use twospeed_chart::{Frame, PngSize, Theme, speeds};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or_else(|| std::env::temp_dir().join("speeds"), PathBuf::from);
    fs::create_dir_all(&folder)?;
    let frame = Frame::default();
    let wide = Frame {
        width: 860.0,
        ..frame
    };
    let projector = Frame {
        width: 1080.0,
        height: Some(900.0),
        scale: 1.5,
    };
    for (name, input, frame) in [
        ("quantizations", inputs::quantizations(), frame),
        ("three-models", inputs::three_models(), frame),
        ("three-models-wide", inputs::three_models(), wide),
        ("one-model", inputs::one_model(), frame),
        ("gaps", inputs::gaps(), frame),
        ("far-off", inputs::far_off(), frame),
        ("extremes", inputs::extremes(), frame),
        ("twelve", inputs::twelve(), frame),
        ("hostile", inputs::hostile(), frame),
        (
            "breakdown",
            inputs::with_breakdown(inputs::quantizations()),
            frame,
        ),
        (
            "breakdown-models",
            inputs::with_breakdown(inputs::three_models()),
            wide,
        ),
        ("projector", inputs::quantizations(), projector),
    ] {
        let figure = speeds(&input, &frame)?;
        for (theme, suffix) in [(Theme::Light, ""), (Theme::Dark, "-dark")] {
            let file = |end: &str| folder.join(format!("{name}{suffix}.{end}"));
            fs::write(file("svg"), figure.svg_for(theme))?;
            fs::write(file("png"), figure.to_png(theme, PngSize::Scale(1.5))?)?;
        }
        fs::write(
            folder.join(format!("{name}.pdf")),
            figure.to_pdf(Theme::Light)?,
        )?;
        fs::write(
            folder.join(format!("{name}-screen.svg")),
            figure.for_screen(),
        )?;
        fs::write(
            folder.join(format!("{name}.json")),
            serde_json::to_string_pretty(&figure.data)?,
        )?;
    }
    println!("{}", folder.display());
    Ok(())
}
