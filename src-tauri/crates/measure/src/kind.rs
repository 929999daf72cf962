//! What a test measures.

use serde::{Deserialize, Serialize};
use twospeed_engine::TestSpec;
use twospeed_engine::protocol::PageCache;

use crate::model::MeasuredModel;

/// What a test measures, beside the tokens that its [`TestSpec`] counts.
///
/// Results of different kinds are never merged or compared with each other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Kind {
    /// llama-bench's test: what the spec counts, timed as one.
    #[default]
    Speed,
    /// From asking for the model to the first token of a real prompt of `n_prompt` tokens; `n_gen`
    /// tokens are written. The model is loaded anew for each repetition.
    FirstToken {
        /// State of the file in the page cache when a load starts.
        page_cache: PageCache,
    },
    /// The same prompt of `n_prompt` tokens cold, again, and with a changed tail; `n_gen` tokens
    /// are written after each.
    PrefixCache {
        /// Tokens of the tail that are others in the third request.
        changed: u32,
    },
    /// Sequences side by side, `n_prompt` and `n_gen` tokens each, as llama-batched-bench does.
    Users {
        /// Sequences.
        users: u32,
        /// A part of the cache for each; otherwise they share one.
        split_kv: bool,
        /// All have one prompt, computed once.
        shared_prompt: bool,
    },
    /// Predictions of a text in chunks of `n_ctx`, as llama-perplexity judges them; `n_prompt` is
    /// how many tokens are read, a multiple of `n_ctx`; 0 = the whole text.
    Quality {
        /// Tokens of a chunk.
        n_ctx: u32,
        /// The text; `None` = the bundled one.
        text: Option<twospeed_engine::settings::ModelPath>,
        /// The model whose predictions are taken for right; `None` = perplexity alone.
        base: Option<Box<MeasuredModel>>,
    },
}

impl Kind {
    /// Its key, as stored: `speed`, `first_token`, `prefix_cache`, `users`, `quality`.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Speed => "speed",
            Self::FirstToken { .. } => "first_token",
            Self::PrefixCache { .. } => "prefix_cache",
            Self::Users { .. } => "users",
            Self::Quality { .. } => "quality",
        }
    }

    /// Whether the samples are llama-bench speeds.
    pub fn is_speed(&self) -> bool {
        *self == Self::Speed
    }

    /// Name of a test: llama-bench's for its own (`pp512 @ d4096`), like those for the others
    /// (`users4 pp128+tg32`).
    pub fn name(&self, spec: TestSpec) -> String {
        match self {
            Self::Speed => spec.to_string(),
            Self::FirstToken { page_cache } => {
                let cache = match page_cache {
                    PageCache::Drop => " cold",
                    PageCache::Warm => " warm",
                    PageCache::AsIs => "",
                };
                format!("first-token pp{}{cache}", spec.n_prompt)
            }
            Self::PrefixCache { changed } => {
                format!("prefix-cache pp{} tail{changed}", spec.n_prompt)
            }
            Self::Users {
                users,
                split_kv,
                shared_prompt,
            } => {
                let split = if *split_kv { " split" } else { "" };
                let shared = if *shared_prompt { " shared" } else { "" };
                format!("users{users} {spec}{split}{shared}")
            }
            Self::Quality { n_ctx, base, .. } => {
                let what = if base.is_some() { "kl" } else { "ppl" };
                match spec.n_prompt {
                    0 => format!("{what} ctx{n_ctx}"),
                    tokens => format!("{what}{tokens} ctx{n_ctx}"),
                }
            }
        }
    }

    /// Tokens the context of a test has to hold, all sequences together.
    pub fn context(&self, spec: TestSpec) -> u64 {
        match self {
            Self::Speed | Self::FirstToken { .. } | Self::PrefixCache { .. } => spec.context(),
            Self::Users {
                users,
                split_kv,
                shared_prompt,
            } => {
                let (users, depth) = (u64::from(*users), u64::from(spec.n_depth));
                let (prompt, answer) = (u64::from(spec.n_prompt), u64::from(spec.n_gen));
                // A part of its own holds the shared prompt too.
                if *shared_prompt && !split_kv {
                    depth + prompt + users * answer
                } else {
                    users * (depth + prompt + answer)
                }
            }
            Self::Quality { n_ctx, .. } => u64::from(*n_ctx),
        }
    }

    /// This kind as it is asked of `model`: no model is held against itself.
    pub fn of(&self, model: &MeasuredModel) -> Self {
        match self {
            Self::Quality {
                n_ctx,
                text,
                base: Some(base),
            } if base.fingerprint == model.fingerprint => Self::Quality {
                n_ctx: *n_ctx,
                text: text.clone(),
                base: None,
            },
            kind => kind.clone(),
        }
    }

    /// Whether it needs a model that predicts the next token.
    pub fn decodes(&self, spec: TestSpec) -> bool {
        !self.is_speed() || spec.n_gen > 0
    }

    /// Tokens that one repetition computes, all sequences together, cached ones not counted; `None`
    /// where that is known only from what was found.
    pub fn tokens(&self, spec: TestSpec) -> Option<u64> {
        let (prompt, answer) = (u64::from(spec.n_prompt), u64::from(spec.n_gen));
        let tokens = match self {
            Self::Speed | Self::FirstToken { .. } => prompt + answer,
            Self::Users {
                users,
                shared_prompt,
                ..
            } => {
                let users = u64::from(*users);
                let prompts = if *shared_prompt { 1 } else { users };
                prompts * prompt + users * answer
            }
            Self::PrefixCache { .. } | Self::Quality { .. } => return None,
        };
        Some(tokens).filter(|&tokens| tokens > 0)
    }

    /// Sequences side by side.
    pub fn sequences(&self) -> u32 {
        match self {
            Self::Users { users, .. } => *users,
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: TestSpec = TestSpec {
        n_prompt: 128,
        n_gen: 32,
        n_depth: 0,
    };

    fn users(shared_prompt: bool) -> Kind {
        Kind::Users {
            users: 4,
            split_kv: false,
            shared_prompt,
        }
    }

    #[test]
    fn each_user_needs_room_and_a_shared_prompt_only_once() {
        // 4 * (128 + 32) = 640; 128 + 4 * 32 = 256.
        assert_eq!(users(false).context(SPEC), 640);
        assert_eq!(users(true).context(SPEC), 256);
        let split = Kind::Users {
            users: 4,
            split_kv: true,
            shared_prompt: true,
        };
        assert_eq!(split.context(SPEC), 640, "each part holds it");
        assert_eq!(Kind::Speed.context(SPEC), 160);
    }

    #[test]
    fn a_stored_test_without_a_kind_is_a_speed() {
        #[derive(Deserialize)]
        struct Stored {
            #[serde(default)]
            kind: Kind,
        }
        assert_eq!(
            serde_json::from_str::<Stored>("{}").unwrap().kind,
            Kind::Speed
        );
        let text = serde_json::to_string(&users(false)).unwrap();
        assert_eq!(
            text,
            r#"{"name":"users","users":4,"split_kv":false,"shared_prompt":false}"#
        );
        assert_eq!(serde_json::from_str::<Kind>(&text).unwrap(), users(false));
    }

    #[test]
    fn names_tell_kinds_apart() {
        assert_eq!(Kind::Speed.name(SPEC), "pp128+tg32");
        assert_eq!(users(true).name(SPEC), "users4 pp128+tg32 shared");
    }
}
