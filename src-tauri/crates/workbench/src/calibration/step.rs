//! What a step takes beside its operations: that of a tiny model, less what its operations take.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use twospeed_engine::protocol::{Event, Load, Measure, PageCache, Request};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{Session, Settings, TestSpec};
use twospeed_estimate::{Calibration, ContextSettings, Question, estimate};
use twospeed_gguf::Model;
use twospeed_library::{FileType, LlamaShape};
use twospeed_measure::Stop;

use super::{Trouble, ask};

/// A model whose operations are over as soon as they begin.
const TINY: LlamaShape = LlamaShape {
    width: 64,
    layers: 2,
    heads: 1,
    kv_heads: 1,
    feed_forward: 128,
    vocabulary: 1024,
    context: 2048,
};

const TOKENS: u32 = 128;
const REPETITIONS: u32 = 5;

/// A tiny model's step that takes longer than this was disturbed, and says nothing.
const MOST_NS: f64 = 1_000_000.0;

/// Nanoseconds of a step beside its operations; `None` where the tiny model could not be measured,
/// which spoils nothing of the calibration.
pub(super) async fn measure(
    session: &mut Session,
    calibration: &Calibration,
    stop: &Stop,
) -> Option<f64> {
    let folder = tempfile::tempdir().ok()?;
    let path = folder.path().join("tiny.gguf");
    write(&path).ok()?;
    let model = twospeed_gguf::read(&path).ok()?;
    let measured = decode_ns(session, &path, calibration.threads, stop).await;
    let operations = operations_ns(&model, calibration)?;
    let step = (measured.ok()?? - operations).max(0.0);
    (step <= MOST_NS).then_some(step)
}

fn write(path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    TINY.model("Tiny", FileType::Q8_0, 1)
        .write(&mut file, &mut |_, _| true)
        .map_err(io::Error::other)?;
    file.flush()
}

/// Nanoseconds for a token, the median of the repetitions.
async fn decode_ns(
    session: &mut Session,
    path: &Path,
    threads: u32,
    stop: &Stop,
) -> Result<Option<f64>, Trouble> {
    let settings = Settings {
        n_threads: threads,
        ..Settings::default()
    };
    let load = Request::Load(Load {
        model: ModelPath(path.to_owned()),
        settings: settings.clone(),
        page_cache: PageCache::AsIs,
    });
    ask(session, load, stop, |_| {}).await?;
    let measure = Request::Measure(Measure {
        spec: TestSpec {
            n_prompt: 0,
            n_gen: TOKENS,
            n_depth: 0,
        },
        settings,
        repetitions: REPETITIONS,
        warmup: true,
        seed: 1,
    });
    let mut samples = Vec::new();
    ask(session, measure, stop, |event| {
        if let Event::Sample(sample) = event {
            samples.push(sample.ns as f64 / f64::from(TOKENS));
        }
    })
    .await?;
    samples.sort_by(f64::total_cmp);
    Ok(samples.get(samples.len() / 2).copied())
}

/// What the operations of a token are expected to take.
fn operations_ns(model: &Model, calibration: &Calibration) -> Option<f64> {
    let question = Question {
        generate: TOKENS.into(),
        context: ContextSettings {
            context: TINY.context.into(),
            ..ContextSettings::default()
        },
        calibration: Some(Arc::new(calibration.clone())),
        ..Question::default()
    };
    let terms = estimate(model, &question).decode.breakdown;
    (!terms.is_empty()).then(|| terms.iter().map(|term| term.ns).sum())
}
