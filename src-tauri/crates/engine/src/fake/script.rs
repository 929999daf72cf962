//! What a fake worker does, step by step.

use std::time::Duration;

use crate::end::How;
use crate::protocol::{Event, Sample};

/// Steps that answer one request, or stand in for a hello.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Script {
    pub(super) steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Say(Event),
    Repetition(Sample, Duration),
    Measured(Option<u64>),
    Line(Vec<u8>),
    Log(String),
    Wait(Duration),
    Busy(Duration),
    CloseOutput,
    Hang,
    Die(How),
}

impl Script {
    /// Does nothing: a request that is never closed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says an event.
    pub fn say(self, event: Event) -> Self {
        self.step(Step::Say(event))
    }

    /// Announces a repetition, waits to be told to go, takes its time and says the sample. When told
    /// that it is enough, it goes on behind the last repetition.
    pub fn repetition(self, sample: Sample, takes: Duration) -> Self {
        self.step(Step::Repetition(sample, takes))
    }

    /// Closes a test with the number of repetitions that were made.
    pub fn measured(self, peak_rss_bytes: Option<u64>) -> Self {
        self.step(Step::Measured(peak_rss_bytes))
    }

    /// Writes bytes and a line's end where messages are expected.
    pub fn line(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(Step::Line(bytes.into()))
    }

    /// Prints a line of the engine's log.
    pub fn log(self, line: impl Into<String>) -> Self {
        self.step(Step::Log(line.into()))
    }

    /// Takes time, and can be cancelled meanwhile.
    pub fn wait(self, duration: Duration) -> Self {
        self.step(Step::Wait(duration))
    }

    /// Takes time and hears nothing meanwhile; what it was told comes too late.
    pub fn busy(self, duration: Duration) -> Self {
        self.step(Step::Busy(duration))
    }

    /// Closes its output and goes on.
    pub fn close_output(self) -> Self {
        self.step(Step::CloseOutput)
    }

    /// Does nothing any more and hears nothing: only a kill ends it.
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// Dies.
    pub fn die(self, how: How) -> Self {
        self.step(Step::Die(how))
    }

    /// Goes on with another script.
    pub fn then(mut self, script: Self) -> Self {
        self.steps.extend(script.steps);
        self
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}
