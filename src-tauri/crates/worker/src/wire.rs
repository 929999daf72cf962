//! The worker's side of the protocol: a private handle to write to, a thread that reads.

use std::fs::File;
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use twospeed_engine::protocol::{Event, Request};

use crate::os;

/// Number of the request that was cancelled last. Requests are counted from 1 in the order they are
/// read, so a cancel that comes too late for its request never hits the next one.
static CANCELLED: AtomicU64 = AtomicU64::new(0);

/// Whether request `number` was cancelled: one relaxed load, cheap enough for every graph node.
pub fn is_cancelled(number: u64) -> bool {
    CANCELLED.load(Ordering::Relaxed) == number
}

/// What arrives from the app.
#[derive(Debug)]
pub enum Message {
    /// A request to serve, and its number.
    Serve(u64, Box<Request>),
    /// Start the timed section.
    Go,
    /// No more repetitions.
    Enough,
    /// Stop what is being served; [`is_cancelled`] says so already.
    Cancel,
    /// A line that is no request.
    Unreadable(String),
}

/// Both directions.
pub struct Wire {
    out: File,
    messages: Receiver<Message>,
    last_progress: Option<Instant>,
}

impl Wire {
    /// Starts the thread that reads standard input; it ends the process when input ends, whatever
    /// the engine is doing.
    pub fn open(out: File) -> std::io::Result<Self> {
        let (sender, messages) = mpsc::channel();
        std::thread::Builder::new()
            .name("requests".into())
            .spawn(move || read(&sender))?;
        Ok(Self {
            out,
            messages,
            last_progress: None,
        })
    }

    /// Says an event; nobody listening means nobody to work for.
    pub fn say(&mut self, event: &Event) {
        let mut line = serde_json::to_vec(event).expect("BUG: an event is plain data");
        line.push(b'\n');
        if self.out.write_all(&line).is_err() {
            os::exit_now(0);
        }
    }

    /// Says how far loading is, at most ten times a second; the first and the whole always.
    pub fn say_progress(&mut self, fraction: f32) {
        self.say_at_times(&Event::LoadProgress { fraction }, fraction >= 1.0);
    }

    /// Says how far something is, at most ten times a second; the first and the last always.
    pub fn say_at_times(&mut self, progress: &Event, is_last: bool) {
        let due = self
            .last_progress
            .is_none_or(|last| last.elapsed() >= Duration::from_millis(100));
        if due || is_last {
            self.last_progress = (!is_last).then(Instant::now);
            self.say(progress);
        }
    }

    /// Waits for the next message.
    pub fn wait(&self) -> Message {
        match self.messages.recv() {
            Ok(message) => message,
            // The reading thread ends the process before it ends itself; this cannot be reached
            // unless it panicked, and then there is nobody to serve.
            Err(_) => os::exit_now(1),
        }
    }
}

fn read(sender: &Sender<Message>) {
    let mut lines = std::io::stdin().lock();
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => os::exit_now(0),
            Ok(_) => {}
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let message = match serde_json::from_slice(&line) {
            Ok(Request::Cancel) => {
                CANCELLED.store(number, Ordering::Relaxed);
                Message::Cancel
            }
            Ok(Request::Go) => Message::Go,
            Ok(Request::Enough) => Message::Enough,
            Ok(request) => {
                number += 1;
                Message::Serve(number, Box::new(request))
            }
            Err(error) => Message::Unreadable(error.to_string()),
        };
        if sender.send(message).is_err() {
            os::exit_now(1);
        }
    }
}
