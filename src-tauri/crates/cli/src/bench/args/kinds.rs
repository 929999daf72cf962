//! Tests that are more than one speed.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::bench::lists::Numbers;

/// Each of these takes the place of the two speeds; several go together.
#[derive(Debug, Clone, Args)]
pub struct KindArgs {
    /// Time to the first token of a real prompt of -p tokens, with the load before it: the file first not in the page cache (cold), then in it (warm)
    #[arg(long)]
    pub ttft: bool,
    /// What a kept prompt saves: the same -p tokens cold, again, and with the last quarter changed
    #[arg(long)]
    pub prefix_cache: bool,
    /// So many sequences side by side, each with -p tokens of prompt and -n of answer: 1,2,4,8
    #[arg(long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub users: Vec<Numbers>,
    /// Each user gets a part of the cache instead of sharing one
    #[arg(long, requires = "users")]
    pub split_kv: bool,
    /// All users have one prompt, computed once
    #[arg(long, requires = "users")]
    pub shared_prompt: bool,
    /// How well a text is predicted: perplexity, and the divergence from the best file of the same model
    #[arg(long)]
    pub quality: bool,
    /// The file --quality compares with [default: the same model with the most bits found on this disk]
    #[arg(long, value_name = "FILE", requires = "quality")]
    pub base: Option<PathBuf>,
    /// Compare with no file: perplexity alone
    #[arg(long, requires = "quality", conflicts_with = "base")]
    pub no_base: bool,
    /// Chunks of the text that --quality reads; 0 for all
    #[arg(
        long,
        value_name = "N",
        default_value_t = 16,
        requires = "quality",
        allow_negative_numbers = true
    )]
    pub chunks: u32,
    /// Tokens of a chunk
    #[arg(
        long,
        value_name = "N",
        default_value_t = 512,
        requires = "quality",
        allow_negative_numbers = true
    )]
    pub ctx: u32,
    /// The text that --quality reads [default: a part of a book in the public domain]
    #[arg(long, value_name = "FILE", requires = "quality")]
    pub text: Option<PathBuf>,
    /// Measure both speeds too
    #[arg(long)]
    pub speeds: bool,
}

impl KindArgs {
    /// Whether any of them was asked for.
    pub fn any(&self) -> bool {
        self.ttft || self.prefix_cache || !self.users.is_empty() || self.quality
    }
}
