//! Plays scripts over a wire.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::time::{Instant, sleep_until};

use super::model::Memory;
use super::script::{Script, Step};
use super::{Asked, Cast};
use crate::end::{Doing, How};
use crate::engine::Start;
use crate::protocol::{Event, Measured, Phase, Request};

/// A worker's side of a session.
pub(super) struct Player {
    cast: Arc<Cast>,
    session: usize,
    input: Lines<BufReader<DuplexStream>>,
    output: Option<DuplexStream>,
    log: DuplexStream,
    memory: Memory,
}

/// Why a script is not played to its end.
enum Cut {
    Cancelled,
    Over(How),
}

const LEFT: Cut = Cut::Over(How::Exited { code: 0 });

impl Player {
    pub(super) fn new(
        cast: Arc<Cast>,
        session: usize,
        input: DuplexStream,
        output: DuplexStream,
        log: DuplexStream,
    ) -> Self {
        Self {
            cast,
            session,
            input: BufReader::new(input).lines(),
            output: Some(output),
            log,
            memory: Memory::default(),
        }
    }

    /// Says hello and serves requests until it dies, one way or another.
    pub(super) async fn perform(mut self, start: Start) -> How {
        let cast = self.cast.clone();
        let instead = cast
            .start_rules
            .iter()
            .rev()
            .find_map(|rule| rule(&start, self.session));
        let Some(variant) = cast.variant(&start) else {
            let line = "every CPU variant that fits this machine is set aside or unknown";
            self.print(line).await;
            return How::Exited { code: 1 };
        };
        let greeting = instead.unwrap_or_else(|| {
            Script::new().say(Event::Hello(crate::protocol::Hello {
                variant: variant.clone(),
                ..cast.hello.clone()
            }))
        });
        if let Err(Cut::Over(how)) = self.play(greeting).await {
            return how;
        }
        loop {
            let request = match self.hear().await {
                Some(request) if Doing::after(&request).is_some() => request,
                Some(_) => continue,
                None => return How::Exited { code: 0 },
            };
            let script = self.answer(&request, &variant.name);
            match self.play(script).await {
                Ok(()) => {}
                Err(Cut::Cancelled) => self.say(&Event::Cancelled).await,
                Err(Cut::Over(how)) => return how,
            }
        }
    }

    fn answer(&mut self, request: &Request, variant: &str) -> Script {
        let cast = self.cast.clone();
        let number = cast.seen(|seen| {
            seen.served += 1;
            seen.served - 1
        });
        let usual = self.memory.answer(request, &cast);
        let asked = Asked {
            request,
            number,
            session: self.session,
            variant,
            usual: &usual,
        };
        let ruled = cast.rules.iter().rev().find_map(|rule| rule(&asked));
        ruled.unwrap_or(usual)
    }

    async fn play(&mut self, script: Script) -> Result<(), Cut> {
        let mut made = 0;
        let mut enough = false;
        for step in script.steps {
            match step {
                Step::Say(event) => self.say(&event).await,
                Step::Repetition(..) if enough => {}
                Step::Repetition(sample, takes) => {
                    let number = sample.index + 1;
                    self.say(&Event::Phase(Phase::Repetition { number })).await;
                    enough = !self.told_to_go().await?;
                    if !enough {
                        self.wait(takes).await?;
                        self.say(&Event::Sample(sample)).await;
                        made += 1;
                        if let Some(how) = self.cast.count_sample() {
                            return Err(Cut::Over(how));
                        }
                    }
                }
                Step::Measured(peak_rss_bytes) => {
                    self.say(&Event::Measured(Measured {
                        repetitions: made,
                        peak_rss_bytes,
                    }))
                    .await;
                }
                Step::Line(bytes) => self.write(&bytes).await,
                Step::Log(line) => self.print(&line).await,
                Step::Wait(duration) => self.wait(duration).await?,
                Step::Busy(duration) => tokio::time::sleep(duration).await,
                Step::CloseOutput => self.output = None,
                Step::Hang => std::future::pending().await,
                Step::Die(how) => return Err(Cut::Over(how)),
            }
        }
        Ok(())
    }

    /// Whether the next repetition is to be made.
    async fn told_to_go(&mut self) -> Result<bool, Cut> {
        loop {
            match self.hear().await {
                Some(Request::Go) => return Ok(true),
                Some(Request::Enough) => return Ok(false),
                Some(Request::Cancel) if !self.cast.deaf => return Err(Cut::Cancelled),
                Some(_) => {}
                None => return Err(LEFT),
            }
        }
    }

    async fn wait(&mut self, duration: Duration) -> Result<(), Cut> {
        let until = Instant::now() + duration;
        loop {
            let deaf = self.cast.deaf;
            tokio::select! {
                () = sleep_until(until) => return Ok(()),
                heard = self.hear() => match heard {
                    Some(Request::Cancel) if !deaf => return Err(Cut::Cancelled),
                    Some(_) => {}
                    None => return Err(LEFT),
                }
            }
        }
    }

    /// The next request; `None` when the input has ended, which the deaf never notice.
    async fn hear(&mut self) -> Option<Request> {
        loop {
            match self.input.next_line().await {
                Ok(Some(line)) => {
                    if let Ok(request) = serde_json::from_str::<Request>(&line) {
                        self.cast.seen(|seen| seen.requests.push(request.clone()));
                        return Some(request);
                    }
                }
                _ if self.cast.deaf => std::future::pending().await,
                _ => return None,
            }
        }
    }

    async fn say(&mut self, event: &Event) {
        let line = serde_json::to_vec(event).expect("BUG: an event has no map keys");
        self.write(&line).await;
    }

    async fn write(&mut self, line: &[u8]) {
        if let Some(output) = &mut self.output {
            write_line(output, line).await;
        }
    }

    async fn print(&mut self, line: &str) {
        write_line(&mut self.log, line.as_bytes()).await;
    }
}

/// Writes a line; nobody may listen any more, and a worker does not mind.
async fn write_line(to: &mut (impl AsyncWrite + Unpin), line: &[u8]) {
    let _ = to.write_all(line).await;
    let _ = to.write_all(b"\n").await;
}
