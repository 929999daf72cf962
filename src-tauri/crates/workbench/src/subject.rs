//! A model file made ready to be measured.

use std::path::Path;

use twospeed_engine::Settings;
use twospeed_estimate::{ContextSettings, FlashAttention, Shape, Weights, context_bytes};
use twospeed_gguf::Model;
use twospeed_library::display::shown;
use twospeed_library::is_synthetic;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{Kind, PlannedTest};

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
///
/// A model that predictions are held against has a context of its own beside the one judged; its
/// header is read here.
pub fn needs(header: &Model, test: &PlannedTest) -> Option<u64> {
    let settings = ContextSettings {
        sequences: u64::from(test.kind.sequences()),
        split: matches!(test.kind, Kind::Users { split_kv: true, .. }),
        ..context_settings(&test.settings, test.context())?
    };
    let bytes = |header: &Model| {
        let shape = Shape::from_model(header).ok()?;
        context_bytes(&shape, &settings).ok().map(|bytes| bytes.0)
    };
    let own = bytes(header)?;
    match &test.kind {
        Kind::Quality {
            base: Some(base), ..
        } => own.checked_add(bytes(&twospeed_gguf::read(&base.path.0).ok()?)?),
        _ => Some(own),
    }
}

/// A context of one sequence in the estimator's words; `None` for a cache type it does not know.
pub fn context_settings(settings: &Settings, context: u64) -> Option<ContextSettings> {
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use twospeed_engine::TestSpec;

    use super::*;

    fn file() -> PathBuf {
        let file = "../../../tests/data/gguf/archs/llama-dense-Q8_0.header.gguf";
        Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
    }

    /// What a test of this kind needs of a model of two layers with 256 values of K and of V each:
    /// llama.cpp allocates 8,388,608 bytes for 4,096 tokens of it, 2,048 a token; and 512 for a row
    /// of logits, 2,048 for four.
    fn needed(kind: Kind, spec: TestSpec) -> Option<u64> {
        let mut header = twospeed_gguf::read(&file()).unwrap();
        header.data = twospeed_gguf::Data::Complete;
        let model = MeasuredModel::of(&header, "content".into(), None, false).unwrap();
        let kind = match kind {
            Kind::Quality { n_ctx, text, .. } => Kind::Quality {
                n_ctx,
                text,
                base: Some(Box::new(model.clone())),
            },
            kind => kind,
        };
        let test = PlannedTest {
            model,
            settings: Settings::default(),
            spec,
            kind,
            variant: None,
        };
        needs(&header, &test)
    }

    const SPEC: TestSpec = TestSpec {
        n_prompt: 128,
        n_gen: 32,
        n_depth: 0,
    };

    fn users(split_kv: bool) -> Kind {
        Kind::Users {
            users: 4,
            split_kv,
            shared_prompt: false,
        }
    }

    #[test]
    fn users_need_a_context_for_all_of_them() {
        // 160 tokens take 256 cells; 4 * 160 = 640 take 768; four parts of 160 take 256 each.
        assert_eq!(needed(Kind::Speed, SPEC), Some(256 * 2048 + 512));
        assert_eq!(needed(users(false), SPEC), Some(768 * 2048 + 2048));
        assert_eq!(needed(users(true), SPEC), Some(1024 * 2048 + 2048));
    }

    #[test]
    fn a_base_model_needs_a_context_of_its_own() {
        let quality = Kind::Quality {
            n_ctx: 512,
            text: None,
            base: None,
        };
        let spec = TestSpec {
            n_prompt: 8192,
            n_gen: 0,
            n_depth: 0,
        };
        assert_eq!(needed(quality, spec), Some(2 * (512 * 2048 + 512)));
    }
}
