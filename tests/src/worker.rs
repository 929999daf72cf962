//! The worker alone, driven line by line as the app does it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use twospeed_engine::protocol::{
    Event, Failure, FailureCode, Hello, Load, Loaded, Measure, Measured, PageCache, Phase, Request,
    Sample,
};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{Settings, TestSpec};

use crate::{data, twospeed};

/// A worker of this test's own; it ends with the test.
pub struct Worker {
    /// The process.
    pub child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// What it said first.
    pub hello: Hello,
}

impl Worker {
    /// Starts one with these arguments and reads its hello.
    ///
    /// # Panics
    /// When it does not say hello.
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(twospeed())
            .arg("worker")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test can do this");
        let input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().expect("the test can do this"));
        let Some(Event::Hello(hello)) = read(&mut output) else {
            panic!("a worker says hello first");
        };
        Self {
            child,
            input,
            output,
            hello,
        }
    }

    /// Sends a request.
    ///
    /// # Panics
    /// When the worker is gone.
    pub fn ask(&mut self, request: &Request) {
        self.say(&serde_json::to_string(request).expect("a request is JSON"));
    }

    /// Sends a line.
    ///
    /// # Panics
    /// When the worker is gone.
    pub fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("its input is open");
        writeln!(input, "{line}").expect("the worker reads");
    }

    /// The next event; every line of a worker is one.
    ///
    /// # Panics
    /// When it has ended or said something else.
    #[track_caller]
    pub fn hear(&mut self) -> Event {
        read(&mut self.output).expect("the worker lives")
    }

    /// The next event, or `None` when the worker has ended.
    pub fn hear_or_end(&mut self) -> Option<Event> {
        read(&mut self.output)
    }

    /// Asks, answers each repetition with "go", and returns everything said to the closing event.
    ///
    /// # Panics
    /// When the worker ends before.
    #[track_caller]
    pub fn serve(&mut self, request: &Request) -> Vec<Event> {
        self.ask(request);
        let mut said = Vec::new();
        loop {
            let event = self.hear();
            if matches!(event, Event::Phase(Phase::Repetition { .. })) {
                self.ask(&Request::Go);
            }
            let closes = event.is_closing();
            said.push(event);
            if closes {
                return said;
            }
        }
    }

    /// Loads a model.
    ///
    /// # Panics
    /// When it is refused.
    #[track_caller]
    pub fn load(&mut self, path: &Path) -> Loaded {
        match self.serve(&load(path, PageCache::AsIs)).pop() {
            Some(Event::Loaded(loaded)) => loaded,
            other => panic!("{other:?}"),
        }
    }

    /// The failure of a request that has to fail.
    ///
    /// # Panics
    /// When it does not.
    #[track_caller]
    pub fn failure(&mut self, request: &Request) -> Failure {
        match self.serve(request).pop() {
            Some(Event::Failed(failure)) => failure,
            other => panic!("{other:?}"),
        }
    }

    /// Asks for something that has to be refused, with this code and in a sentence that names this.
    ///
    /// # Panics
    /// When it is not.
    #[track_caller]
    pub fn refuses(&mut self, request: &Request, code: FailureCode, names: &str) {
        let failure = self.failure(request);
        assert_eq!(failure.code, code, "{}", failure.message);
        assert!(failure.message.contains(names), "{}", failure.message);
        assert!(failure.message.ends_with('.'), "{}", failure.message);
    }

    /// Asks and starts the first repetition.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn begin(&mut self, request: &Request) {
        self.ask(request);
        while self.hear() != Event::Phase(Phase::Repetition { number: 1 }) {}
        self.ask(&Request::Go);
    }

    /// What closes the request that is served.
    ///
    /// # Panics
    /// When the worker ends before.
    #[track_caller]
    pub fn closing(&mut self) -> Event {
        loop {
            let event = self.hear();
            if event.is_closing() {
                return event;
            }
        }
    }

    /// Asks for several repetitions, and has enough after the first.
    ///
    /// # Panics
    /// When the test does not end so.
    #[track_caller]
    pub fn ends_after_one(&mut self, request: &Request) -> Measured {
        self.begin(request);
        let sample = self.hear();
        assert!(
            matches!(sample, Event::Sample(Sample { index: 0, .. })),
            "{sample:?}"
        );
        assert_eq!(self.hear(), Event::Phase(Phase::Repetition { number: 2 }));
        self.ask(&Request::Enough);
        match self.hear() {
            Event::Measured(measured) => {
                assert_eq!(measured.repetitions, 1);
                measured
            }
            other => panic!("{other:?}"),
        }
    }

    /// Sends nothing more and waits for the end; gives the exit code.
    ///
    /// # Panics
    /// When it does not end within that time.
    pub fn end(mut self, within: Duration) -> Option<i32> {
        drop(self.input.take());
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the test can do this") {
                return status.code();
            }
            assert!(
                begun.elapsed() < within,
                "it outlives its input by {within:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(output: &mut impl BufRead) -> Option<Event> {
    let mut line = String::new();
    output.read_line(&mut line).expect("the test can do this");
    (!line.is_empty())
        .then(|| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
}

/// llama-bench's settings with one thread: tests run side by side, and engine threads that wait
/// for each other busily crawl where they share a core.
#[must_use]
pub fn settings() -> Settings {
    Settings {
        n_threads: 1,
        ..Settings::default()
    }
}

/// Asks for a model.
#[must_use]
pub fn load(path: &Path, page_cache: PageCache) -> Request {
    Request::Load(Load {
        model: ModelPath(path.to_owned()),
        settings: settings(),
        page_cache,
    })
}

/// A test of two repetitions.
#[must_use]
pub fn test(n_prompt: u32, n_gen: u32, n_depth: u32) -> Measure {
    Measure {
        spec: TestSpec {
            n_prompt,
            n_gen,
            n_depth,
        },
        settings: settings(),
        repetitions: 2,
        warmup: true,
        seed: 1,
    }
}

/// The samples among events.
#[must_use]
pub fn samples(said: &[Event]) -> Vec<Sample> {
    said.iter()
        .filter_map(|event| match event {
            Event::Sample(sample) => Some(sample.clone()),
            _ => None,
        })
        .collect()
}

/// The phases among events.
#[must_use]
pub fn phases(said: &[Event]) -> Vec<Phase> {
    said.iter()
        .filter_map(|event| match event {
            Event::Phase(phase) => Some(*phase),
            _ => None,
        })
        .collect()
}

/// A tiny model of a real architecture: the header is among the test data, the weights are zeros.
///
/// # Panics
/// When it cannot be written.
pub fn tiny(folder: &Path, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let header = data(&format!("gguf/archs/{name}.header.gguf"));
    let size = twospeed_gguf::read(&header)
        .expect("the test can do this")
        .bytes_expected;
    let mut bytes = fs::read(header).expect("the test can do this");
    change(&mut bytes);
    bytes.resize(usize::try_from(size).expect("the test can do this"), 0);
    let path = folder.join(format!("{name}.gguf"));
    fs::write(&path, bytes).expect("the test can do this");
    path
}

/// Where a value of a header begins: right behind its key and type.
///
/// # Panics
/// When the header has no such key.
#[must_use]
pub fn after(header: &[u8], key: &[u8]) -> usize {
    let mut windows = header.windows(key.len());
    windows
        .position(|window| window == key)
        .expect("the header has this key")
        + key.len()
}
