//! The flags of `twospeed bench`: llama-bench's with llama-bench's meaning, and what goes beyond.

mod kinds;
mod settings;

use std::path::PathBuf;

use clap::{ArgAction, Args};

pub use kinds::KindArgs;
pub use settings::{FlashFlag, SettingArgs};

use super::lists::{Numbers, Percent, PromptGen, Seconds};

/// All flags of `bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    #[command(flatten, next_help_heading = "What is measured")]
    pub what: WhatArgs,
    #[command(flatten, next_help_heading = "More than one speed")]
    pub kinds: KindArgs,
    #[command(flatten, next_help_heading = "How often and in which order")]
    pub how: HowArgs,
    #[command(flatten, next_help_heading = "Settings of the engine")]
    pub settings: SettingArgs,
    #[command(flatten, next_help_heading = "Output")]
    pub out: OutputArgs,
    #[command(flatten, next_help_heading = "Plans and runs that are there already")]
    pub stored: StoredArgs,
    #[command(flatten, next_help_heading = "Instead of measuring")]
    pub instead: InsteadArgs,
}

/// Models and llama-bench's tests.
#[derive(Debug, Clone, Args)]
pub struct WhatArgs {
    /// Model file, or "builtin" for the built-in model; of a split set the first part
    #[arg(short, long = "model", value_name = "FILE", action = ArgAction::Append,
        required_unless_present_any = ["resume", "plan", "list_devices", "version"])]
    pub model: Vec<PathBuf>,
    /// Prompt tokens of the prefill tests; 0 for none [default: 512]
    #[arg(short = 'p', long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub n_prompt: Vec<Numbers>,
    /// Generated tokens of the decode tests; 0 for none [default: 128]
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub n_gen: Vec<Numbers>,
    /// Prompt and generation timed as one (-pg)
    #[arg(long = "prompt-gen", value_name = "PP,TG", action = ArgAction::Append)]
    pub prompt_gen: Vec<PromptGen>,
    /// Tokens already in the cache when a test starts [default: 0]
    #[arg(short = 'd', long, value_name = "N", allow_negative_numbers = true, action = ArgAction::Append)]
    pub n_depth: Vec<Numbers>,
    /// Both speeds at growing depth (0, then in doubling steps), as far as the model and the memory go
    #[arg(long, conflicts_with = "n_depth")]
    pub context_curve: bool,
    /// Deepest depth of --context-curve
    #[arg(long, value_name = "N", requires = "context_curve")]
    pub max_depth: Option<u32>,
}

/// Repetitions and their order.
#[derive(Debug, Clone, Args)]
pub struct HowArgs {
    /// Repetitions of each test [default: 5]; with --until the fewest [default: 3]
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    pub repetitions: Option<u32>,
    /// Repeat each test until its mean is known this well (half of the 95 % confidence interval), such as 2%
    #[arg(long, value_name = "PERCENT")]
    pub until: Option<Percent>,
    /// Repetitions after which --until gives up
    #[arg(
        long,
        value_name = "N",
        default_value_t = 50,
        requires = "until",
        allow_negative_numbers = true
    )]
    pub until_max: u32,
    /// One repetition of each test in turn (A B A B), so that what drifts meets all alike
    #[arg(long, conflicts_with = "sustained")]
    pub interleave: bool,
    /// One repetition of each test in turn until this time is up, such as 10m: what the machine holds
    #[arg(long, value_name = "TIME", conflicts_with = "until")]
    pub sustained: Option<Seconds>,
    /// Seconds to wait before each test
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    pub delay: u32,
    /// Leave out the untimed warm-up
    #[arg(long)]
    pub no_warmup: bool,
}

/// What is printed and kept.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// What goes to standard output: md, json, jsonl, csv, sql, none, results (with samples and environment)
    #[arg(short, long, value_name = "FORMAT", default_value = "md", hide_possible_values = true, value_parser = super::OUTPUTS)]
    pub output: String,
    /// The same on standard error (-oe), without results [default: none]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true, value_parser = super::OUTPUTS_ERR)]
    pub output_err: Option<String>,
    /// Say each step on standard error, also where it is no terminal
    #[arg(long)]
    pub progress: bool,
    /// Show the engine's log on standard error
    #[arg(short, long)]
    pub verbose: bool,
    /// Leave nothing in the history
    #[arg(long, overrides_with = "save")]
    pub no_save: bool,
    /// Keep everything in the history (the default)
    #[arg(long, overrides_with = "no_save")]
    pub save: bool,
}

/// What says what is measured instead of the flags above.
#[derive(Debug, Clone, Args)]
pub struct StoredArgs {
    /// Go on with a run that was stopped or cut off: the newest, or the one named by a part of its id
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "",
        conflicts_with_all = ["WhatArgs", "KindArgs", "HowArgs", "SettingArgs", "plan", "no_save", "print_plan"])]
    pub resume: Option<String>,
    /// Run a plan that --print-plan wrote
    #[arg(long, value_name = "FILE", conflicts_with_all = ["WhatArgs", "KindArgs", "HowArgs", "SettingArgs"])]
    pub plan: Option<PathBuf>,
}

/// What is said instead.
#[derive(Debug, Clone, Args)]
pub struct InsteadArgs {
    /// Print the plan as JSON: a file to edit, keep and run with --plan
    #[arg(long)]
    pub print_plan: bool,
    /// List the devices that -dev can name
    #[arg(long)]
    pub list_devices: bool,
    /// Print the versions of Twospeed and of the engine
    #[arg(long)]
    pub version: bool,
    /// For llama-bench's sake: bench never uses the network
    #[arg(long, hide = true)]
    pub offline: bool,
}
