//! A model file made ready to be measured.

use std::path::Path;

use twospeed_engine::Settings;
use twospeed_estimate::{
    Bytes, ContextSettings, FlashAttention, Shape, Weights, WouldFit, context_bytes, loaded_bytes,
    would_fit,
};
use twospeed_gguf::Model;
use twospeed_library::display::shown;
use twospeed_library::is_synthetic;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{Kind, Need, PlannedTest};

use crate::{Allocated, Problem};

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

/// The memory that a test needs at least, with what would fit instead; `None` where the closed
/// forms do not know.
///
/// What does not fit for certain is refused before the worker starts; working buffers come on top
/// and only the engine knows them ([`needs_with`]). Weights count where they have to stay in
/// memory: where they are mapped, the page cache may drop and read them again.
///
/// A model that predictions are held against has a context of its own beside the one judged; its
/// header is read here.
pub fn needs(header: &Model, test: &PlannedTest) -> Option<Need> {
    needs_with(header, test, None)
}

/// [`needs`] with the engine's own count of this very context, where it was asked for one.
pub fn needs_with(
    header: &Model,
    test: &PlannedTest,
    allocated: Option<&Allocated>,
) -> Option<Need> {
    let settings = ContextSettings {
        sequences: u64::from(test.kind.sequences()),
        split: matches!(test.kind, Kind::Users { split_kv: true, .. }),
        ..context_settings(&test.settings, test.context())?
    };
    let shape = Shape::from_model(header).ok()?;
    let own = context_bytes(&shape, &settings).ok()?;
    let beside = match allocated {
        Some(allocated) => {
            let all = allocated.resident(is_mapped(&test.settings));
            Bytes(all.0.saturating_sub(own.0))
        }
        None => resident_weights(header, &test.settings),
    };
    let beside = match &test.kind {
        Kind::Quality {
            base: Some(base), ..
        } => {
            let base = twospeed_gguf::read(&base.path.0).ok()?;
            let its_shape = Shape::from_model(&base).ok()?;
            let its_own = context_bytes(&its_shape, &settings).ok()?;
            beside + its_own + resident_weights(&base, &test.settings)
        }
        _ => beside,
    };
    let instead = move |free: u64| {
        let room = free.checked_sub(beside.0);
        let fits = room.map(|room| would_fit(&shape, &settings, Bytes(room)));
        match fits {
            Some(Ok(fits)) => fits.to_string(),
            // What stays beside the context does not fit alone.
            _ => WouldFit::default().to_string(),
        }
    };
    Some(Need {
        bytes: (own + beside).0,
        instead: Some(Box::new(instead)),
    })
}

/// Weights that the kernel cannot give back and read again; nothing where they are mapped, or where
/// a graphics processor may take them.
fn resident_weights(header: &Model, settings: &Settings) -> Bytes {
    if is_mapped(settings) || may_offload(settings) {
        return Bytes::ZERO;
    }
    loaded_bytes(header).unwrap_or(Bytes::ZERO)
}

/// Whether the file's own pages serve as weights.
fn is_mapped(settings: &Settings) -> bool {
    matches!(settings.load_mode.as_str(), "auto" | "mmap")
}

/// Whether weights may go to a graphics processor: which of them does only the engine knows.
fn may_offload(settings: &Settings) -> bool {
    settings.n_gpu_layers != 0 && settings.devices != "none" && may_have_graphics()
}

/// Whether this machine may have a graphics processor. Linux names them all here; elsewhere nobody
/// is asked.
fn may_have_graphics() -> bool {
    const PLACES: [&str; 4] = ["/dev/dri", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg"];
    !cfg!(target_os = "linux") || PLACES.iter().any(|place| Path::new(place).exists())
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
        need(kind, spec, Settings::default()).map(|need| need.bytes)
    }

    fn need(kind: Kind, spec: TestSpec, settings: Settings) -> Option<Need> {
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
            kind,
            ..planned(&header, Kind::Speed, spec, settings)
        };
        needs(&header, &test)
    }

    fn planned(header: &Model, kind: Kind, spec: TestSpec, settings: Settings) -> PlannedTest {
        let mut header = header.clone();
        header.data = twospeed_gguf::Data::Complete;
        PlannedTest {
            model: MeasuredModel::of(&header, "content".into(), None, false).unwrap(),
            settings,
            spec,
            kind,
            variant: None,
        }
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
    fn weights_count_where_they_have_to_stay_in_memory() {
        let with = |load_mode: &str, n_gpu_layers| {
            let settings = Settings {
                load_mode: load_mode.into(),
                n_gpu_layers,
                ..Settings::default()
            };
            need(Kind::Speed, SPEC, settings).unwrap().bytes
        };
        let context = 256 * 2048 + 512;
        for mapped in ["auto", "mmap"] {
            assert_eq!(with(mapped, 0), context, "{mapped}");
        }
        // llama.cpp maps 1,276,032 bytes of it (allocations.csv).
        for read in ["none", "mlock", "mmap+mlock", "dio"] {
            assert_eq!(with(read, 0), context + 1_276_032, "{read}");
        }
    }

    #[test]
    fn the_engines_own_count_brings_working_buffers_and_copies() {
        use twospeed_engine::protocol::{Buffer, BufferUse, Placement};
        let buffer = |device: &str, holds, bytes| Buffer {
            device: device.into(),
            holds,
            bytes,
        };
        let allocated = Allocated {
            placement: Placement {
                buffers: vec![
                    buffer("CPU", BufferUse::Model, 1_000_000),
                    buffer("CPU_REPACK", BufferUse::Model, 300_000),
                    buffer("CPU", BufferUse::Kv, 256 * 2048),
                    buffer("CPU", BufferUse::Output, 512),
                    buffer("CPU", BufferUse::Compute, 8_000_000),
                ],
                ..Placement::default()
            },
            devices: Vec::new(),
        };
        let header = twospeed_gguf::read(&file()).unwrap();
        let test = planned(&header, Kind::Speed, SPEC, Settings::default());
        let need = needs_with(&header, &test, Some(&allocated)).unwrap();
        // The mapped weights may be given back, their copy may not.
        assert_eq!(need.bytes, 256 * 2048 + 512 + 8_300_000);
    }

    #[test]
    fn what_does_not_fit_says_what_would() {
        let spec = TestSpec {
            n_prompt: 4096,
            ..SPEC
        };
        let need = need(users(true), spec, Settings::default()).unwrap();
        // Four parts of 4,128 tokens, 4,352 cells each, 2,048 bytes a cell: 34 MiB, and 2,048 of logits.
        assert_eq!(need.bytes, 4 * 4352 * 2048 + 2048);
        let instead = need.instead.unwrap();
        // In 20 MiB: 4 parts of 2,304 cells are 18 MiB and of 2,560 just too much with the logits;
        // q8_0 takes 1,088 bytes a cell, 18.1 MiB; 2 users of 4,352 cells take 17 MiB.
        assert_eq!(
            instead(20 << 20),
            "It would fit with a context of at most 9216 tokens, a KV cache of type q8_0 or at most 2 users."
        );
        assert!(instead(1000).contains("Not even the smallest context fits"));
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
