//! What llama.cpp keeps for each architecture: the rules by name, nothing computed.
//!
//! From llama.cpp build 11434: `llama_model::create_memory` chooses the kind of memory, the
//! `load_arch_hparams` of `src/models/*.cpp` choose windows, recurrent layers and indexers.

/// How an architecture remembers the tokens it has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    pub memory: Memory,
    pub window: Window,
    /// Whether `*_length_mla` make it keep one compressed key for all heads (and no values).
    pub latent: bool,
    pub indexer: Indexer,
    pub shared: SharedLayers,
    pub repeats: Repeats,
    /// Whether the next-token-prediction blocks at the end have cache rows too.
    pub next_token_blocks_cache: bool,
    /// Whether the engine forces flash attention off.
    pub without_flash_attention: bool,
    /// Where the lengths of a head's key and value come from.
    pub head_lengths: HeadLengths,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Nothing is kept.
    None(NoCache),
    /// Keys and values in every layer.
    Attention,
    /// A state of fixed size in every layer.
    Recurrent(State),
    /// Some layers attend, some are recurrent.
    Hybrid(State, RecurrentLayers),
    /// DeepSeek V4: a short window of keys, beside it compressed ones for the rest.
    Compressed,
}

/// Why nothing is kept between batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoCache {
    /// Encodes each batch anew.
    Encoder,
    /// Denoises each batch anew.
    Diffusion,
    /// A draft head that reads the cache of the model it is used with.
    Draft,
}

/// What a recurrent layer keeps for one sequence, in 32-bit floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Mamba's convolution and state; `grouped` where `ssm.group_count` is read.
    Mamba { grouped: bool },
    /// RWKV's token shift and state.
    Rwkv,
    /// LFM2's short convolution.
    ShortConv,
    /// Kimi's delta attention.
    Kda,
    /// MiniMax's lightning attention: one matrix per head.
    Lightning,
    /// Mamba's, and on some layers the n-gram history of a per-layer embedding.
    MambaWithHistory,
}

/// Which layers of a hybrid are recurrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecurrentLayers {
    /// Those without KV heads.
    WithoutKvHeads,
    /// Those without KV heads and feed-forward; those with a feed-forward keep nothing at all.
    WithoutKvHeadsAndFeedForward,
    /// As `attention.recurrent_layers` says, else all but every n-th (`full_attention_interval`).
    AllButEvery(u64),
    /// Each layer is both.
    All,
}

/// Which layers look back a limited way, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub size: WindowSize,
    pub layers: WindowLayers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowSize {
    /// No layer has one.
    None,
    /// `attention.sliding_window`; none where it is absent.
    IfSet,
    /// `attention.sliding_window`, which the engine requires.
    Required,
    /// `attention.sliding_window`, else this.
    Or(u64),
    /// This, whatever `attention.sliding_window` says; none where that is absent.
    IfSetFixed(u64),
    /// This, whatever `attention.sliding_window` says; none where that is present and 0.
    UnlessZeroFixed(u64),
    /// `attention.sliding_window`, else this, and only in models of so many layers.
    OnlyWithLayers { layers: usize, or: u64 },
}

/// Which layers have the window where `attention.sliding_window_pattern` does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowLayers {
    /// All but the last of every n.
    LastOfEachFull(u64),
    /// All but the first of every n.
    FirstOfEachFull(u64),
    /// The pattern is required.
    Listed,
    /// All of the trunk that attend, whatever the pattern says.
    AllThatAttend,
    /// All, next-token-prediction blocks too.
    All,
    /// All where `hyper_connection.count` is set, else the pattern is required.
    AllIfHyperConnected,
}

/// Which layers keep a key for choosing what to attend to (sparse attention).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indexer {
    None,
    /// Every layer of the trunk.
    Trunk,
    /// Those of the trunk that `attention.indexer.types` marks; GLM's defaults where it is absent.
    GlmTypes,
    /// Those that `attention.indexer.types` marks, where `attention.indexer.top_k` is set.
    TypesIfTopK,
    /// Those of the trunk that `attention.indexer.types` marks.
    Types,
    /// All after the leading dense ones; keeps values as well.
    AfterLeadingDense,
    /// Those that attend and that the types mark (all by default), three keys each.
    TypesPooled,
    /// Those that attend, two keys each where a compression ratio is given.
    AttentionPooled,
}

/// Which layers read another layer's cache instead of having their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SharedLayers {
    None,
    /// All from this one on.
    From(usize),
    /// The last `attention.shared_kv_layers`.
    LastAsSet,
}

/// Blocks that are run more than once for a token, each time with a cache of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    None,
    /// All blocks, `num_loops` times.
    Loops,
    /// `block_count` counts cache slots; two stacks of blocks run in cycles.
    Cycles,
    /// One more layer with one head after the last (it holds the adapter's choice).
    ExtraRouterLayer,
}

/// Where the lengths of a head's key and value come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadLengths {
    /// `attention.key_length` and `attention.value_length`, else the embedding's share of a head;
    /// none where the first layer has no heads.
    Plain,
    /// The keys count even where the first layer has no heads.
    WithoutHeadsToo,
    /// The value is the compressed latent (`attention.kv_lora_rank`) whatever its key says.
    LatentValue,
}

/// Full attention in every layer.
pub(crate) const PLAIN: Rules = Rules {
    memory: Memory::Attention,
    window: Window {
        size: WindowSize::None,
        layers: WindowLayers::AllThatAttend,
    },
    latent: false,
    indexer: Indexer::None,
    shared: SharedLayers::None,
    repeats: Repeats::None,
    next_token_blocks_cache: false,
    without_flash_attention: false,
    head_lengths: HeadLengths::Plain,
};

/// Full attention in every layer, with MLA's compressed keys where the file has them.
const LATENT: Rules = Rules {
    latent: true,
    ..PLAIN
};

const fn windowed(size: WindowSize, layers: WindowLayers) -> Rules {
    Rules {
        window: Window { size, layers },
        ..PLAIN
    }
}

const fn without_cache(why: NoCache) -> Rules {
    Rules {
        memory: Memory::None(why),
        ..PLAIN
    }
}

const fn recurrent(state: State) -> Rules {
    Rules {
        memory: Memory::Recurrent(state),
        ..PLAIN
    }
}

/// Hybrids do not tell next-token blocks from others, except where their layers follow an interval.
const fn hybrid(state: State, layers: RecurrentLayers) -> Rules {
    Rules {
        memory: Memory::Hybrid(state, layers),
        next_token_blocks_cache: !matches!(layers, RecurrentLayers::AllButEvery(_)),
        ..PLAIN
    }
}

/// The rules of an architecture; `None` for one that the engine does not know.
pub(crate) fn rules(architecture: &str) -> Option<Rules> {
    use RecurrentLayers::{AllButEvery, WithoutKvHeads, WithoutKvHeadsAndFeedForward};
    use WindowLayers::{
        AllIfHyperConnected, AllThatAttend, FirstOfEachFull, LastOfEachFull, Listed,
    };
    use WindowSize::{IfSet, IfSetFixed, OnlyWithLayers, Or, Required, UnlessZeroFixed};
    const MAMBA: State = State::Mamba { grouped: false };
    const MAMBA2: State = State::Mamba { grouped: true };

    Some(match architecture {
        "bert" | "modern-bert" | "nomic-bert" | "nomic-bert-moe" | "neo-bert" | "jina-bert-v2"
        | "jina-bert-v3" | "eurobert" | "gemma-embedding" | "wavtokenizer-dec" | "clef" => {
            without_cache(NoCache::Encoder)
        }
        "dream" | "llada" | "llada-moe" | "rnd1" => without_cache(NoCache::Diffusion),
        "gemma4-assistant" => without_cache(NoCache::Draft),

        "llama" | "llama-embed" | "deci" | "falcon" | "gpt2" | "gptneox" | "mpt" | "baichuan"
        | "starcoder" | "refact" | "bloom" | "stablelm" | "qwen" | "qwen2" | "qwen2moe"
        | "qwen2vl" | "qwen3" | "qwen3moe" | "qwen3vl" | "qwen3vlmoe" | "qwen3tts" | "phi2"
        | "phi3" | "phimoe" | "plamo" | "codeshell" | "orion" | "internlm2" | "minicpm"
        | "minicpm3" | "gemma" | "starcoder2" | "xverse" | "command-r" | "dbrx" | "olmo"
        | "olmoe" | "openelm" | "arctic" | "deepseek" | "deepseek2-ocr" | "chatglm" | "glm4"
        | "glm4moe" | "bitnet" | "t5" | "t5encoder" | "jais" | "jais2" | "nemotron" | "exaone"
        | "granite" | "granitemoe" | "chameleon" | "plm" | "bailingmoe" | "bailingmoe2"
        | "dots1" | "arcee" | "ernie4_5" | "ernie4_5-moe" | "hunyuan-moe" | "hunyuan-dense"
        | "hunyuan_vl" | "hy_v3" | "smollm3" | "seed_oss" | "grovemoe" | "apertus"
        | "minimax-m2" | "cogvlm" | "pangu-embedded" | "mistral3" | "paddleocr" | "maincoder"
        | "talkie" | "pockettts" | "eagle3" => PLAIN,
        "grok" => Rules {
            without_flash_attention: true,
            ..PLAIN
        },
        "nanbeige" => Rules {
            repeats: Repeats::Loops,
            ..PLAIN
        },
        "hrm_text" => Rules {
            repeats: Repeats::Cycles,
            ..PLAIN
        },
        "graniteswitch" => Rules {
            repeats: Repeats::ExtraRouterLayer,
            next_token_blocks_cache: true,
            ..PLAIN
        },

        "deepseek2" | "mistral4" => LATENT,
        "deepseek32" => Rules {
            indexer: Indexer::Trunk,
            ..LATENT
        },
        "glm-dsa" => Rules {
            indexer: Indexer::GlmTypes,
            ..LATENT
        },
        "hy_v4" => Rules {
            indexer: Indexer::TypesIfTopK,
            next_token_blocks_cache: true,
            ..LATENT
        },
        "dots3note" => Rules {
            latent: true,
            indexer: Indexer::Types,
            ..windowed(Required, Listed)
        },
        "minimax-m3" => Rules {
            indexer: Indexer::AfterLeadingDense,
            next_token_blocks_cache: true,
            ..PLAIN
        },
        "deepseek4" => Rules {
            memory: Memory::Compressed,
            next_token_blocks_cache: true,
            ..windowed(Required, WindowLayers::All)
        },

        "gemma2" => windowed(Or(4096), LastOfEachFull(2)),
        "gpt-oss" => windowed(Required, LastOfEachFull(2)),
        "gemma3" => windowed(IfSet, LastOfEachFull(6)),
        "gemma3n" => Rules {
            shared: SharedLayers::From(20),
            ..windowed(Required, LastOfEachFull(5))
        },
        "gemma4" => Rules {
            shared: SharedLayers::LastAsSet,
            ..windowed(Required, Listed)
        },
        "cohere2" | "exaone-moe" | "muse-glimmer" => windowed(Required, LastOfEachFull(4)),
        "afmoe" | "olmo2" | "mellum" => windowed(IfSet, LastOfEachFull(4)),
        "plamo3" => windowed(IfSet, LastOfEachFull(8)),
        "exaone4" => windowed(
            OnlyWithLayers {
                layers: 64,
                or: 4096,
            },
            LastOfEachFull(4),
        ),
        "llama4" => windowed(UnlessZeroFixed(8192), LastOfEachFull(4)),
        "cohere2moe" => windowed(Required, FirstOfEachFull(4)),
        "laguna" => windowed(IfSet, FirstOfEachFull(4)),
        "smallthinker" => windowed(IfSetFixed(4096), FirstOfEachFull(4)),
        "granite_swa" | "maple" | "mimo2" | "spark2_5" | "step35" => windowed(Required, Listed),
        "dflash" => windowed(IfSet, AllIfHyperConnected),

        "mamba" => recurrent(MAMBA),
        "mamba2" => recurrent(MAMBA2),
        "rwkv6" | "rwkv6qwen2" | "rwkv7" | "arwkv7" => recurrent(State::Rwkv),

        "jamba" => hybrid(MAMBA, WithoutKvHeads),
        "granitehybrid" => hybrid(MAMBA2, WithoutKvHeads),
        "plamo2" => Rules {
            head_lengths: HeadLengths::WithoutHeadsToo,
            ..hybrid(MAMBA2, WithoutKvHeads)
        },
        "falcon-h1" => hybrid(MAMBA2, RecurrentLayers::All),
        "nemotron_h" | "nemotron_h_moe" => hybrid(MAMBA2, WithoutKvHeadsAndFeedForward),
        "qwen3next" | "qwen35" | "qwen35moe" => hybrid(MAMBA2, AllButEvery(4)),
        "minimax-01" => hybrid(State::Lightning, AllButEvery(8)),
        "lfm2" => Rules {
            window: Window {
                size: IfSet,
                layers: AllThatAttend,
            },
            ..hybrid(State::ShortConv, WithoutKvHeads)
        },
        "lfm2moe" => hybrid(State::ShortConv, WithoutKvHeads),
        "kimi-linear" | "bailingmoe3" => Rules {
            latent: true,
            ..hybrid(State::Kda, WithoutKvHeads)
        },
        "kimi-k3" => Rules {
            latent: true,
            head_lengths: HeadLengths::LatentValue,
            ..hybrid(State::Kda, WithoutKvHeads)
        },
        "glm5-next" => Rules {
            latent: true,
            indexer: Indexer::TypesPooled,
            head_lengths: HeadLengths::LatentValue,
            next_token_blocks_cache: false,
            ..hybrid(State::Kda, WithoutKvHeads)
        },
        "qwen4exp" => Rules {
            indexer: Indexer::AttentionPooled,
            ..hybrid(State::MambaWithHistory, AllButEvery(4))
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every architecture that llama.cpp build 11434 can load (`LLM_ARCH_NAMES` without the two
    /// that it names and does not implement as a language model).
    const KNOWN_TO_THE_ENGINE: &str =
        include_str!("../../../../tests/data/archs/architectures.txt");

    #[test]
    fn every_architecture_of_the_engine_has_rules() {
        let mut known = 0;
        for name in KNOWN_TO_THE_ENGINE.lines() {
            assert!(rules(name).is_some(), "{name} has no rules");
            known += 1;
        }
        assert_eq!(known, 152);
    }

    #[test]
    fn an_architecture_the_engine_does_not_know_has_none() {
        for name in ["", "clip", "gptj", "llama5", "LLAMA"] {
            assert_eq!(rules(name), None, "{name}");
        }
    }
}
