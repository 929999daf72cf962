//! The view Measure.

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use twospeed_measure::Warning;

/// What is to be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct PlanRequest {
    /// Rows of Models, in the order they are measured.
    pub models: Vec<String>,
    /// The tests of each.
    pub tests: Tests,
    /// Threads of the engine; `None` = as the settings say.
    pub threads: Option<u32>,
}

/// Which tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "preset", rename_all = "snake_case")]
pub enum Tests {
    /// pp512 and tg128, three repetitions.
    Quick,
    /// pp512 and tg128, five repetitions.
    Article,
    /// The person's own.
    Own {
        /// Prompt lengths, tokens.
        prompt: Vec<u32>,
        /// Answer lengths, tokens.
        generate: Vec<u32>,
        /// Tokens in the cache before, for each of the above.
        depth: Vec<u32>,
        /// Timed repetitions.
        repetitions: u32,
    },
}

/// A plan made ready, before it is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct PlanView {
    /// The tests in order.
    pub rows: Vec<PlannedRow>,
    /// Timed repetitions of each.
    pub repetitions: u32,
    /// Threads of the engine.
    pub threads: u32,
    /// Seconds it will take, from earlier results of these models here; `None` = not known yet.
    pub seconds: Option<f64>,
    /// Rows that cannot be measured, with why; the others can.
    pub hindrances: Vec<Hindrance>,
}

/// A model that cannot be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Hindrance {
    /// Row of Models.
    pub model: String,
    /// Its name.
    pub name: String,
    /// One sentence.
    pub sentence: String,
}

/// One test of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct PlannedRow {
    /// Its place in the plan, from 0.
    pub position: u32,
    /// Row of Models.
    pub model: String,
    /// Name of the base model.
    pub name: String,
    /// Quantization label.
    pub quantization: String,
    /// Which speed.
    pub phase: PhaseName,
    /// Tokens read or written.
    pub tokens: u32,
    /// Tokens in the cache before.
    pub depth: u32,
    /// Seconds it will take; `None` = not known yet.
    pub seconds: Option<f64>,
    /// What decode cannot exceed here; `None` for prefill and where it is not known.
    pub ceiling: Option<f64>,
}

/// The two speeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum PhaseName {
    /// Reading the prompt.
    Prefill,
    /// Writing the answer.
    Decode,
}

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
        /// Its speed.
        tokens_per_second: f64,
        /// Its duration, seconds.
        seconds: f64,
    },
    /// A test ended and its end is stored.
    TestEnded {
        /// Its place in the plan.
        position: u32,
        /// How.
        end: TestEnd,
        /// Mean of its samples, tokens per second; `None` without samples.
        mean: Option<f64>,
        /// Standard deviation; `None` for less than two samples.
        deviation: Option<f64>,
        /// Seconds from its start to its end.
        seconds: f64,
        /// What a reader of the result should know.
        warnings: Vec<Warning>,
        /// State of the machine after it.
        machine: MachineNow,
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

/// The machine beside a test; unknown is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
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
