//! A model file made ready to be measured.

use std::path::Path;

use twospeed_engine::Settings;
use twospeed_estimate::{ContextSettings, FlashAttention, Shape, Weights, context_bytes};
use twospeed_gguf::Model;
use twospeed_library::display::shown;
use twospeed_library::is_synthetic;
use twospeed_measure::PlannedTest;
use twospeed_measure::model::MeasuredModel;

use crate::Problem;

/// The name that stands for the built-in model where a file is asked for.
pub const BUILTIN: &str = "builtin";

/// A model file that can be measured: what its header says, and what results are kept under.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The header.
    pub header: Model,
    /// What results are kept under.
    pub measured: MeasuredModel,
}

impl Subject {
    /// Reads the header and some samples of the content.
    ///
    /// Errors: `file_unusable` with one sentence, for everything the engine could not load.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let unusable = |error: &dyn std::fmt::Display| {
            Problem::new("file_unusable", shown(&error.to_string()))
        };
        let header = twospeed_gguf::read(path).map_err(|error| unusable(&error))?;
        header.check_loads().map_err(|error| unusable(&error))?;
        let fingerprint = twospeed_gguf::fingerprint(&header).map_err(|error| unusable(&error))?;
        let synthetic = is_synthetic(&header);
        let weights = Weights::of(&header).ok();
        let measured = MeasuredModel::of(
            &header,
            fingerprint,
            weights.map(|weights| weights.bytes_per_token().0),
            synthetic,
        )
        .map_err(|error| unusable(&error))?;
        Ok(Self { header, measured })
    }
}

/// Bytes of memory that a test needs at least; `None` where the closed forms do not know.
///
/// What does not fit for certain is refused before the worker starts; working buffers come on top
/// and only the engine knows them. Weights do not count: where they are mapped, the page cache may
/// drop and read them again.
pub fn needs(header: &Model, test: &PlannedTest) -> Option<u64> {
    let shape = Shape::from_model(header).ok()?;
    let settings = context_settings(&test.settings, test.spec.context())?;
    context_bytes(&shape, &settings).ok().map(|bytes| bytes.0)
}

/// The context of a test in the estimator's words; `None` for a cache type it does not know.
fn context_settings(settings: &Settings, context: u64) -> Option<ContextSettings> {
    Some(ContextSettings {
        context,
        batch: u64::from(settings.n_batch),
        ubatch: u64::from(settings.n_ubatch),
        type_k: settings.type_k.parse().ok()?,
        type_v: settings.type_v.parse().ok()?,
        flash_attention: flash_attention(settings.flash_attn),
        ..ContextSettings::default()
    })
}

/// The engine's word in the estimator's, which knows no engine.
pub fn flash_attention(asked: twospeed_engine::FlashAttention) -> FlashAttention {
    match asked {
        twospeed_engine::FlashAttention::Auto => FlashAttention::Auto,
        twospeed_engine::FlashAttention::Off => FlashAttention::Off,
        twospeed_engine::FlashAttention::On => FlashAttention::On,
    }
}
