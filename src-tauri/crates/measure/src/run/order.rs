//! In which order the repetitions of a plan's tests follow each other.

use std::time::Duration;

use tokio::time::Instant;

use super::test::Open;
use super::{After, RunEnd, Running, failed};
use crate::plan::{Order, PlannedTest};
use crate::record::{RecorderError, TestStatus};
use crate::resume::NOT_STORED;

/// A test of a plan whose tests take turns.
struct Place<'a> {
    position: u32,
    test: &'a PlannedTest,
    at: At<'a>,
}

/// How far it is.
enum At<'a> {
    /// It has not begun, or is to begin again.
    Waiting,
    /// Some of its repetitions are made.
    Open(Box<Open<'a>>),
    /// Its end is stored.
    Over,
}

impl<'a> Running<'a> {
    /// Measures what is to be measured.
    pub(super) async fn in_order(&mut self) -> Result<RunEnd, RecorderError> {
        match self.plan.order {
            Order::OneByOne => self.one_by_one().await,
            Order::Interleaved => self.in_turn(None).await,
            Order::Sustained { seconds } => {
                let until = Instant::now() + Duration::from_secs(seconds.into());
                self.in_turn(Some(until)).await
            }
        }
    }

    async fn one_by_one(&mut self) -> Result<RunEnd, RecorderError> {
        let mut end = RunEnd::Complete;
        for (position, test) in self.todo.clone() {
            if end == RunEnd::Complete && self.stop.is_asked() {
                end = RunEnd::Stopped;
            }
            if let Some(reason) = not_tried(&end) {
                self.skip(position, test, reason).await?;
                continue;
            }
            let repetitions = self.plan.most(test).unwrap_or(1);
            while let Some(mut open) = self.open(position, test).await? {
                let measured = self.make(&mut open, repetitions).await;
                match self.close(open, measured).await? {
                    After::Again => {}
                    After::Next => break,
                    After::Nothing(why) => {
                        end = why;
                        break;
                    }
                }
            }
        }
        Ok(end)
    }

    /// One repetition of each test in turn, until each has all of its own or the time is up; each
    /// has at least one.
    ///
    /// A worker holds one model, so tests of different models load anew at each turn.
    async fn in_turn(&mut self, until: Option<Instant>) -> Result<RunEnd, RecorderError> {
        let mut places: Vec<Place<'a>> = self
            .todo
            .iter()
            .map(|&(position, test)| Place {
                position,
                test,
                at: At::Waiting,
            })
            .collect();
        let end = match self.rounds(&mut places, until).await {
            Ok(end) => self.leave(&mut places, &end).await.map(|()| end),
            Err(error) => Err(error),
        };
        if let Err(error) = &end {
            // What cannot be stored once may still take the ends of the tests.
            for place in &mut places {
                if let At::Open(open) = std::mem::replace(&mut place.at, At::Over) {
                    let status = failed(NOT_STORED, error.to_string(), &[]);
                    let _ = self.finish(*open, status).await;
                }
            }
        }
        end
    }

    async fn rounds(
        &mut self,
        places: &mut [Place<'a>],
        until: Option<Instant>,
    ) -> Result<RunEnd, RecorderError> {
        let is_due = |place: &Place<'_>| match place.at {
            At::Waiting => true,
            At::Open(_) => until.is_none_or(|until| Instant::now() < until),
            At::Over => false,
        };
        while places.iter().any(is_due) {
            if self.stop.is_asked() {
                return Ok(RunEnd::Stopped);
            }
            for place in places.iter_mut() {
                while is_due(place) {
                    match self.turn(place).await? {
                        After::Again => {}
                        After::Next => break,
                        After::Nothing(end) => return Ok(end),
                    }
                }
            }
        }
        Ok(RunEnd::Complete)
    }

    /// One repetition of one test.
    async fn turn(&mut self, place: &mut Place<'a>) -> Result<After, RecorderError> {
        let mut open = match std::mem::replace(&mut place.at, At::Over) {
            At::Open(open) => open,
            At::Waiting => match self.open(place.position, place.test).await? {
                Some(open) => Box::new(open),
                None => return Ok(After::Next),
            },
            At::Over => return Ok(After::Next),
        };
        let measured = self.make(&mut open, 1).await;
        let goes_on = measured.is_ok() && !open.is_complete(self.plan);
        if goes_on {
            place.at = At::Open(open);
            return Ok(After::Next);
        }
        let after = self.close(*open, measured).await?;
        if matches!(after, After::Again) {
            place.at = At::Waiting;
        }
        Ok(after)
    }

    /// Ends what is still open when the rounds are over: by the time, or by what ended the run.
    async fn leave(&mut self, places: &mut [Place<'a>], end: &RunEnd) -> Result<(), RecorderError> {
        for place in places {
            match std::mem::replace(&mut place.at, At::Over) {
                At::Over => {}
                At::Waiting => {
                    if let Some(reason) = not_tried(end) {
                        self.skip(place.position, place.test, reason).await?;
                    }
                }
                At::Open(open) => match end {
                    RunEnd::Complete => {
                        self.close(*open, Ok(())).await?;
                    }
                    RunEnd::NoEngine { code, message } => {
                        let status = failed(code, message.clone(), &[]);
                        self.finish(*open, status).await?;
                    }
                    RunEnd::Stopped | RunEnd::NotKept(_) => {
                        self.finish(*open, TestStatus::Cancelled).await?;
                    }
                },
            }
        }
        Ok(())
    }
}

/// Why a test is not tried when the run has come to this end.
fn not_tried(end: &RunEnd) -> Option<String> {
    match end {
        RunEnd::Complete => None,
        RunEnd::NoEngine { message, .. } => {
            Some(format!("Not tried, since there is no engine. {message}"))
        }
        RunEnd::Stopped | RunEnd::NotKept(_) => {
            Some("Not tried, since the run was stopped before.".to_owned())
        }
    }
}
