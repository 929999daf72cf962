//! A loaded model.

use std::ffi::{CStr, CString};
use std::ptr::NonNull;

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::Ability;

use crate::vocabulary::Vocabulary;

/// A model of llama.cpp; freed when the last context on it is.
#[derive(Debug)]
pub struct Model {
    raw: NonNull<sys::llama_model>,
}

impl Model {
    /// Loads a file with all that `params` points to.
    ///
    /// # Safety
    /// What `params` points to lives until this returns.
    pub unsafe fn load(path: &CStr, params: sys::llama_model_params) -> Option<Self> {
        // SAFETY: a C string, and parameters as this function's contract has them.
        let raw = unsafe { sys::llama_model_load_from_file(path.as_ptr(), params) };
        NonNull::new(raw).map(|raw| Self { raw })
    }

    /// The engine's pointer; valid while `self` lives.
    pub fn raw(&self) -> *mut sys::llama_model {
        self.raw.as_ptr()
    }

    /// llama-bench's `model_type`.
    pub fn description(&self) -> String {
        // llama-bench's own buffer has 128 bytes; a longer description is cut as there.
        let mut buffer = [0_u8; 128];
        // SAFETY: the buffer is writable and its size is its own; the result ends with a zero.
        unsafe { sys::llama_model_desc(self.raw(), buffer.as_mut_ptr().cast(), buffer.len()) };
        let text = CStr::from_bytes_until_nul(&buffer).unwrap_or_default();
        text.to_string_lossy().into_owned()
    }

    /// Bytes of all tensors.
    pub fn size(&self) -> u64 {
        // SAFETY: a live model, here and below.
        unsafe { sys::llama_model_size(self.raw()) }
    }

    /// Parameters.
    pub fn n_params(&self) -> u64 {
        // SAFETY: as above.
        unsafe { sys::llama_model_n_params(self.raw()) }
    }

    /// Layers.
    pub fn n_layer(&self) -> u32 {
        // SAFETY: as above.
        unsafe { sys::llama_model_n_layer(self.raw()) }.unsigned_abs()
    }

    /// Width of the embeddings.
    pub fn n_embd(&self) -> u32 {
        // SAFETY: as above.
        unsafe { sys::llama_model_n_embd(self.raw()) }.unsigned_abs()
    }

    /// Heads of its first layer.
    pub fn n_head(&self) -> u32 {
        // SAFETY: as above.
        unsafe { sys::llama_model_n_head(self.raw()) }.unsigned_abs()
    }

    /// Bytes that a context's output buffer begins with: a row of logits for each sequence, and one
    /// of embeddings where they are asked for (an encoder-decoder always keeps them).
    pub fn output_bytes(&self, params: &sys::llama_context_params) -> u64 {
        // SAFETY: as above.
        let (embeddings, decodes) = unsafe {
            (
                sys::llama_model_n_embd_out(self.raw()).unsigned_abs(),
                sys::llama_model_has_decoder(self.raw()),
            )
        };
        let keeps = params.embeddings || (self.has_encoder() && decodes);
        let row =
            u64::from(self.vocabulary().len()) + u64::from(if keeps { embeddings } else { 0 });
        u64::from(params.n_seq_max.max(1)) * row * 4
    }

    /// Context it was trained for.
    pub fn n_ctx_train(&self) -> u32 {
        // SAFETY: as above.
        unsafe { sys::llama_model_n_ctx_train(self.raw()) }.unsigned_abs()
    }

    /// Width of its sliding window; 0 when it has none.
    pub fn n_swa(&self) -> u32 {
        // SAFETY: as above.
        unsafe { sys::llama_model_n_swa(self.raw()) }.unsigned_abs()
    }

    /// Whether it carries recurrent state.
    pub fn is_recurrent(&self) -> bool {
        // SAFETY: as above.
        unsafe {
            sys::llama_model_is_recurrent(self.raw()) || sys::llama_model_is_hybrid(self.raw())
        }
    }

    /// Whether its memory has a cell for each token: not where recurrent state is all it keeps.
    pub fn keeps_cells(&self) -> bool {
        // SAFETY: as above.
        !unsafe { sys::llama_model_is_recurrent(self.raw()) }
    }

    /// Whether an encoder is all it has (T5's, for one): its batches go another way.
    pub fn is_encoder_alone(&self) -> bool {
        // SAFETY: as above.
        unsafe {
            sys::llama_model_has_encoder(self.raw()) && !sys::llama_model_has_decoder(self.raw())
        }
    }

    /// Whether it needs an encoder pass before it can decode.
    pub fn has_encoder(&self) -> bool {
        // SAFETY: as above.
        unsafe { sys::llama_model_has_encoder(self.raw()) }
    }

    /// The most tokens it has positions for, where it learned them one by one: the engine aborts at
    /// the first one beyond.
    pub fn position_limit(&self) -> Option<u32> {
        // The architectures that need llama.cpp's `LLM_TENSOR_POS_EMBD`.
        const LEARNED: [&str; 3] = ["gpt2", "starcoder", "bert"];
        let architecture = self.meta("general.architecture")?;
        LEARNED
            .contains(&architecture.as_str())
            .then(|| self.n_ctx_train())
    }

    /// A single value of the file's metadata, as text.
    pub fn meta(&self, key: &str) -> Option<String> {
        let key = CString::new(key).ok()?;
        let mut buffer = [0_u8; 256];
        // SAFETY: a C string, and a writable buffer with its own size; the result ends with a zero.
        let length = unsafe {
            sys::llama_model_meta_val_str(
                self.raw(),
                key.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
            )
        };
        let text = CStr::from_bytes_until_nul(&buffer).ok()?;
        (length >= 0).then(|| text.to_string_lossy().into_owned())
    }

    /// What it can be asked to do.
    pub fn ability(&self) -> Ability {
        // SAFETY: as above.
        if unsafe { sys::llama_model_is_diffusion(self.raw()) } {
            return Ability::Diffuses;
        }
        let architecture = self.meta("general.architecture").unwrap_or_default();
        let key = |name: &str| self.meta(&format!("{architecture}.{name}"));
        let facts = EncoderFacts {
            encoder_alone: self.is_encoder_alone(),
            causal: key("attention.causal"),
            pooling: key("pooling_type"),
        };
        ability(&architecture, &facts)
    }

    /// Its vocabulary.
    pub fn vocabulary(&self) -> Vocabulary<'_> {
        Vocabulary::of(self)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: loaded by the engine, owned here, and no context is left on it (they own it too).
        unsafe { sys::llama_model_free(self.raw()) };
    }
}

struct EncoderFacts {
    encoder_alone: bool,
    causal: Option<String>,
    pooling: Option<String>,
}

/// Architectures that have no cache, so that decoding is encoding anew (llama.cpp `create_memory`);
/// llama.cpp itself claims a decoder for them.
const WITHOUT_CACHE: [&str; 11] = [
    "bert",
    "jina-bert-v2",
    "jina-bert-v3",
    "nomic-bert",
    "nomic-bert-moe",
    "neo-bert",
    "eurobert",
    "wavtokenizer-dec",
    "modern-bert",
    "gemma-embedding",
    "clef",
];

fn ability(architecture: &str, facts: &EncoderFacts) -> Ability {
    // Mean, CLS, last, rank: a model that pools was trained to give one vector, not the next token.
    // 0 is none, and files made by llama.cpp's own tests hold 2^32 - 1, unspecified.
    let pools = matches!(facts.pooling.as_deref(), Some("1" | "2" | "3" | "4"));
    let sees_ahead = facts.causal.as_deref() == Some("false");
    if facts.encoder_alone || sees_ahead || pools || WITHOUT_CACHE.contains(&architecture) {
        Ability::Embeds
    } else {
        Ability::Generates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoders_have_no_decode_speed_whatever_llama_cpp_claims() {
        let of = |architecture, causal: Option<&str>, pooling: Option<&str>| {
            ability(
                architecture,
                &EncoderFacts {
                    encoder_alone: false,
                    causal: causal.map(str::to_owned),
                    pooling: pooling.map(str::to_owned),
                },
            )
        };
        assert_eq!(of("llama", None, None), Ability::Generates);
        assert_eq!(of("qwen3", Some("true"), Some("0")), Ability::Generates);
        assert_eq!(of("llama", None, Some("4294967295")), Ability::Generates);
        assert_eq!(of("bert", None, None), Ability::Embeds);
        assert_eq!(of("gemma-embedding", None, None), Ability::Embeds);
        assert_eq!(of("llama", Some("false"), None), Ability::Embeds);
        assert_eq!(
            of("qwen3", None, Some("3")),
            Ability::Embeds,
            "Qwen3-Embedding pools the last token"
        );
    }
}
