//! What a file is for. The lists follow llama.cpp build 11434: `llama_model::create_memory` (which
//! architectures have no cache), `llm_arch_is_diffusion`, `llama_model_has_decoder`.

use crate::metadata::Metadata;
use crate::model::Kind;

/// One pass over the text, nothing kept for a next token.
const ENCODERS: &[&str] = &[
    "bert",
    "modern-bert",
    "nomic-bert",
    "nomic-bert-moe",
    "neo-bert",
    "jina-bert-v2",
    "jina-bert-v3",
    "eurobert",
    "gemma-embedding",
    "llama-embed",
    "t5encoder",
    // From tokens to the frames of a voice, and from tokens to decisions.
    "wavtokenizer-dec",
    "clef",
];

/// Denoise whole blocks.
const DIFFUSION: &[&str] = &["dream", "llada", "llada-moe", "rnd1"];

/// Read another model's inner state, so they need that model.
const DRAFT_HEADS: &[&str] = &["eagle3", "dflash", "gemma4-assistant"];

/// Whether this architecture drafts tokens for another model.
pub(crate) fn is_draft_head(architecture: Option<&str>) -> bool {
    architecture.is_some_and(|name| DRAFT_HEADS.contains(&name))
}

/// What the file is for. `tensors`: whether it has any, or may have in a part that is not there.
pub(crate) fn kind(metadata: &Metadata, tensors: bool) -> Kind {
    match metadata.str("general.type").as_deref() {
        Some("adapter") => return Kind::Adapter,
        Some("imatrix") => return Kind::Imatrix,
        Some("mmproj") => return Kind::Projector,
        _ => {}
    }
    if metadata.get("imatrix.chunk_count").is_some() || metadata.get("imatrix.datasets").is_some() {
        return Kind::Imatrix;
    }
    if metadata.get("adapter.type").is_some() {
        return Kind::Adapter;
    }
    let Some(architecture) = metadata.architecture() else {
        return Kind::None;
    };
    match architecture {
        "clip" => Kind::Projector,
        "controlvector" => Kind::Adapter,
        name if DRAFT_HEADS.contains(&name) => Kind::Adapter,
        _ if !tensors && metadata.get("tokenizer.ggml.model").is_some() => Kind::Vocabulary,
        _ if !tensors => Kind::None,
        name if DIFFUSION.contains(&name) => Kind::Diffusion,
        name if ENCODERS.contains(&name) || pools(metadata) || looks_both_ways(metadata) => {
            Kind::Embeds
        }
        _ if metadata.arch_u64("block_count").is_some()
            || metadata.array_len("tokenizer.ggml.tokens").is_some() =>
        {
            Kind::Generates
        }
        _ => Kind::None,
    }
}

/// A pooling of all tokens into one vector: 1 mean, 2 first, 3 last, 4 rank. 0 is none; -1 (or the
/// largest u32) is "not said".
fn pools(metadata: &Metadata) -> bool {
    metadata
        .arch_u64("pooling_type")
        .is_some_and(|pooling| (1..=4).contains(&pooling))
}

/// Attention that is expressly not causal.
fn looks_both_ways(metadata: &Metadata) -> bool {
    metadata.bool(&metadata.arch_key("attention.causal")) == Some(false)
}

impl Kind {
    /// Whether llama.cpp can load it by itself and run tokens through it.
    #[must_use]
    pub fn is_model(self) -> bool {
        matches!(self, Kind::Generates | Kind::Embeds | Kind::Diffusion)
    }

    /// What the file holds, in words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Generates => "a model that generates text",
            Kind::Embeds => "an embedding model: prefill only",
            Kind::Diffusion => "a diffusion model: no decode speed",
            Kind::Projector => "a projector for images or sound, used beside a model",
            Kind::Adapter => "an adapter, used on top of a model",
            Kind::Imatrix => "an importance matrix, used for quantizing",
            Kind::Vocabulary => "a tokenizer without weights",
            Kind::None => "no model",
        }
    }

    /// Why it cannot be run, after the file's name.
    pub(crate) fn no_model(self) -> &'static str {
        match self {
            Kind::Projector => {
                "is a projector for images or sound, used beside a model; name the model's own file"
            }
            Kind::Adapter => {
                "is an adapter or draft head, used on top of a model; name the model's own file"
            }
            Kind::Imatrix => "is an importance matrix, used for quantizing; name a model's file",
            Kind::Vocabulary => "holds a tokenizer and no weights; name a model's file",
            _ => {
                "is a sound GGUF file but holds no model that the engine knows; name a model's file"
            }
        }
    }

    /// Why it has no decode speed, after the file's name.
    pub(crate) fn no_decode(self) -> &'static str {
        match self {
            Kind::Embeds => {
                "is an embedding model: it reads its text in one pass and has no decode speed; measure its prefill only (-n 0)"
            }
            Kind::Diffusion => {
                "is a diffusion model: it denoises whole blocks and has no decode speed; measure its prefill only (-n 0)"
            }
            _ => self.no_model(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;
    use crate::testing::{read_back, two_layers, with};
    use crate::writer::Writer;

    #[test]
    fn an_architecture_says_what_a_model_does() {
        let cases = [
            ("llama", Kind::Generates),
            ("gpt-oss", Kind::Generates),
            ("t5", Kind::Generates),
            ("an-architecture-of-tomorrow", Kind::Generates),
            ("bert", Kind::Embeds),
            ("nomic-bert-moe", Kind::Embeds),
            ("gemma-embedding", Kind::Embeds),
            ("t5encoder", Kind::Embeds),
            ("dream", Kind::Diffusion),
            ("llada-moe", Kind::Diffusion),
            ("clip", Kind::Projector),
            ("controlvector", Kind::Adapter),
            ("eagle3", Kind::Adapter),
        ];
        for (architecture, kind) in cases {
            assert_eq!(
                read_back(&two_layers(architecture)).kind,
                kind,
                "{architecture}"
            );
        }
    }

    #[test]
    fn a_pooling_or_attention_both_ways_makes_any_architecture_an_embedding_model() {
        let kind = |key: &str, value: Field| read_back(&with(two_layers("qwen3"), key, value)).kind;
        assert_eq!(
            kind("qwen3.pooling_type", 3u32.into()),
            Kind::Embeds,
            "last token"
        );
        assert_eq!(
            kind("qwen3.pooling_type", 0u32.into()),
            Kind::Generates,
            "none"
        );
        assert_eq!(
            kind("qwen3.pooling_type", u32::MAX.into()),
            Kind::Generates,
            "not said"
        );
        assert_eq!(kind("qwen3.attention.causal", false.into()), Kind::Embeds);
        assert_eq!(kind("qwen3.attention.causal", true.into()), Kind::Generates);
    }

    #[test]
    fn helper_files_are_told_by_their_type() {
        let kind = |key: &str, value: Field| read_back(&with(two_layers("llama"), key, value)).kind;
        assert_eq!(kind("general.type", "adapter".into()), Kind::Adapter);
        assert_eq!(kind("general.type", "mmproj".into()), Kind::Projector);
        assert_eq!(kind("general.type", "imatrix".into()), Kind::Imatrix);
        assert_eq!(kind("general.type", "model".into()), Kind::Generates);
        assert_eq!(kind("imatrix.chunk_count", 8u32.into()), Kind::Imatrix);
    }

    #[test]
    fn without_tensors_it_is_a_vocabulary_or_nothing() {
        let mut writer = Writer::new();
        assert_eq!(read_back(&writer).kind, Kind::None);
        writer
            .set("general.architecture", "llama")
            .set("llama.block_count", 2u32);
        assert_eq!(read_back(&writer).kind, Kind::None);
        writer.set("tokenizer.ggml.model", "gpt2");
        assert_eq!(read_back(&writer).kind, Kind::Vocabulary);
    }

    #[test]
    fn an_image_model_without_layers_or_tokens_is_no_model_for_us() {
        let mut writer = Writer::new();
        writer.set("general.architecture", "flux");
        writer
            .tensor(
                "double_blocks.0.img_attn.qkv.weight",
                crate::TensorType::F16,
                &[64],
            )
            .unwrap();
        assert_eq!(read_back(&writer).kind, Kind::None);
    }
}
