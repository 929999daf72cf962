//! What a run tells.

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use twospeed_measure::Warning;

use super::{BothSpeeds, PlanView, Setting, TuneStep};

/// A step of a run. Every one is kept, so that `follow_run` can tell a run from its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct RunEvent {
    /// When, seconds since the run was asked for.
    pub at_s: f64,
    /// Seconds the rest will take, as far as is known now.
    pub left_s: Option<f64>,
    /// What happened.
    pub step: RunStep,
}

/// What happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum RunStep {
    /// Asked for.
    Asked {
        /// The plan.
        plan: PlanView,
        /// When (UTC).
        at: String,
    },
    /// Another measurement has the machine.
    Waiting {
        /// One sentence.
        sentence: String,
    },
    /// The run begins and is in the history.
    Started {
        /// Its id.
        run: String,
    },
    /// A worker is there.
    Engine {
        /// CPU variant: `zen4`.
        variant: String,
        /// llama.cpp's build number.
        build: u32,
        /// Devices that compute, the CPU first.
        devices: Vec<String>,
    },
    /// A test begins; again with the same position where a CPU variant died under it.
    TestStarted {
        /// Its place in the plan.
        position: u32,
        /// Its id in the history.
        test: String,
    },
    /// The running test does something else now.
    Doing {
        /// Its place in the plan.
        position: u32,
        /// What.
        what: Doing,
    },
    /// A sample was made and is stored.
    Sample {
        /// The test's place in the plan.
        position: u32,
        /// From 1.
        number: u32,
        /// Its main figure, in the unit of its row.
        value: f64,
        /// What else it found.
        found: Found,
        /// Its duration, seconds.
        seconds: f64,
        /// Half-width of the 95 % confidence interval of the mean so far, over the mean; `None`
        /// for less than two samples.
        within: Option<f64>,
        /// The machine right after it.
        around: Around,
    },
    /// A test ended and its end is stored.
    TestEnded {
        /// Its place in the plan.
        position: u32,
        /// How.
        end: TestEnd,
        /// Mean of its samples' main figures; `None` without samples.
        mean: Option<f64>,
        /// Standard deviation; `None` for less than two samples.
        deviation: Option<f64>,
        /// What else its samples found, on the average; `None` without samples.
        found: Option<Found>,
        /// Seconds from its start to its end.
        seconds: f64,
        /// What a reader of the result should know.
        warnings: Vec<Warning>,
        /// State of the machine after it.
        machine: MachineNow,
    },
    /// Settings are raced.
    Tuning {
        /// The test's place in the plan.
        position: u32,
        /// How far it is.
        what: TuneStep,
    },
    /// The read speed is measured, which ceilings need.
    ReadSpeed,
    /// The end; everything is stored.
    Ended {
        /// How.
        end: RunEnd,
        /// Results that Compare can show, in order.
        results: Vec<String>,
    },
}

/// What a test does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "doing", rename_all = "snake_case")]
pub enum Doing {
    /// Loads the model.
    Loading {
        /// From 0 to 1.
        fraction: f64,
    },
    /// Warms up, untimed and not counted.
    Warmup,
    /// Fills the cache to the depth, untimed.
    Depth {
        /// The state was kept from before, so nothing is computed.
        restored: bool,
    },
    /// Judges the model's predictions of a text.
    Text {
        /// Chunks that are done.
        done: u32,
        /// All chunks.
        chunks: u32,
    },
    /// A sample is about to be timed. The page paints, says `painted` with the ticket, and stands
    /// still until the next step.
    Timing {
        /// From 1.
        number: u32,
        /// For `painted`.
        ticket: u32,
    },
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum TestEnd {
    /// All repetitions are there.
    Done,
    /// It failed; the samples before stand.
    Failed {
        /// Kind of failure: `killed`, `out_of_memory`, `illegal_instruction`, ...
        code: String,
        /// One sentence.
        message: String,
        /// Last lines of the engine's log.
        log: Vec<String>,
    },
    /// The person stopped it; the samples before stand.
    Cancelled,
    /// Never started.
    Skipped {
        /// One sentence.
        reason: String,
    },
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum RunEnd {
    /// Every test was tried.
    Complete,
    /// The person stopped it.
    Stopped,
    /// It could not go on.
    Failed {
        /// Kind of failure.
        code: String,
        /// One sentence.
        message: String,
    },
}

/// What a sample found beside its main figure. Times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum Found {
    /// Nothing: its speed is all.
    Speed,
    /// The parts of the way to the first token, in order.
    FirstToken {
        /// Loading the model; `None` where it was loaded before.
        load: Option<f64>,
        /// Making the context; `None` where it was there before.
        context: Option<f64>,
        /// Share of the file that lay in memory when the load began; `None` = not known.
        resident: Option<f64>,
        /// Tokenizing.
        tokenize: f64,
        /// Reading the prompt.
        prefill: f64,
        /// Choosing the first token.
        sample: f64,
        /// Writing the second token; `None` when one was asked for.
        decode: Option<f64>,
    },
    /// Requests one after the other: the prompt cold, again, and with another end.
    PrefixCache {
        /// In order.
        requests: Vec<Served>,
    },
    /// People side by side.
    Users {
        /// Prefill of all together, tokens per second.
        prefill: f64,
        /// Decode of each, tokens per second.
        each: f64,
        /// Median of the times to the first token.
        median: f64,
        /// The longest of them.
        worst: f64,
    },
    /// The fastest settings, beside the usual ones.
    Tuned {
        /// In which they differ; none = the usual settings stand.
        choice: Vec<Setting>,
        /// Lower 95 % bound of the gain; `None` where nothing was faster.
        gain_low: Option<f64>,
        /// Speeds of the usual settings.
        usual: BothSpeeds,
        /// Speeds of what was found; `None` where the usual settings stand.
        speeds: Option<BothSpeeds>,
    },
    /// Predictions of a text.
    Quality {
        /// exp of the mean negative log-likelihood.
        perplexity: f64,
        /// Its standard error.
        error: f64,
        /// Against the base model.
        base: Option<AgainstBaseModel>,
    },
}

/// One request of several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct Served {
    /// Seconds to its first token.
    pub ttft: f64,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Of those, taken from the cache.
    pub reused: u32,
    /// Tokens that it shares with what the cache held: where fewer were reused, this model's
    /// memory cannot drop a tail.
    pub shared: u32,
}

/// How far predictions are from those of the base model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct AgainstBaseModel {
    /// Perplexity of the base model.
    pub perplexity: f64,
    /// Mean Kullback-Leibler divergence, nats.
    pub divergence: f64,
    /// Its standard error.
    pub error: f64,
    /// Share of tokens whose likeliest prediction is the same, 0 to 1.
    pub same_top: f64,
}

/// The machine right after a sample; unknown is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Around {
    /// Mean clock, Hz.
    pub clock_hz: Option<f64>,
    /// Highest temperature, degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Power of the processor while it was timed, watts.
    pub watts: Option<f64>,
}

/// The machine beside a test; unknown is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct MachineNow {
    /// Swap in use, bytes.
    pub swap_bytes: Option<u64>,
    /// Mean clock, Hz.
    pub clock_hz: Option<f64>,
    /// Highest temperature, degrees Celsius.
    pub temperature_c: Option<f64>,
    /// Cores' worth of work by other programs.
    pub other_load_cores: Option<f64>,
    /// Share of time the hypervisor took, 0 to 1.
    pub steal: Option<f64>,
    /// Memory that is free to use, bytes.
    pub memory_bytes: Option<u64>,
    /// It runs on battery.
    pub on_battery: Option<bool>,
    /// Power profile, in the system's word.
    pub power_profile: Option<String>,
    /// Times its clock was held down because of heat while the test ran.
    pub throttles: Option<u64>,
}

/// How to stop a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum StopHow {
    /// Now: what is measured is kept.
    Now,
    /// After the test that runs.
    AfterTest,
}
