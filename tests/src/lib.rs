//! What the end-to-end tests share: the built command line, the real models, a data folder each.
//!
//! The tests stand in `tests/tests`. They run the program that a person runs: build it first
//! (`npm test` does).

// What is only used by tests fails as tests do.
#![allow(clippy::panic)]

pub mod worker;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// The command line as it was built, beside the tests' own folder.
///
/// # Panics
/// When it was not built.
pub fn twospeed() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let release = test
        .parent()
        .and_then(Path::parent)
        .expect("BUG: cargo's folders");
    let program = release.join(format!("twospeed{}", std::env::consts::EXE_SUFFIX));
    assert!(
        program.exists(),
        "{} is missing: build it first (cargo build --release -p twospeed-cli, or npm test)",
        program.display()
    );
    program
}

/// A real model by its file name.
///
/// # Panics
/// When it was not fetched: `npm test` does that.
pub fn model(file: &str) -> PathBuf {
    let folder = std::env::var_os("TWOSPEED_MODELS").map_or_else(
        || {
            let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(
                || std::env::home_dir().expect("a home folder").join(".cache"),
                PathBuf::from,
            );
            cache.join("twospeed").join("models")
        },
        PathBuf::from,
    );
    let path = folder.join(file);
    assert!(
        path.exists(),
        "{} is missing: fetch it with npm test, or name its folder in TWOSPEED_MODELS",
        path.display()
    );
    path
}

/// SmolLM2 135M Instruct in Q4_1.
pub fn smollm2() -> PathBuf {
    model("SmolLM2-135M-Instruct.Q4_1.gguf")
}

/// A file of `tests/data`.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("data")
        .join(name)
}

/// A data folder of a test's own, with the command line to use it.
pub struct Desk {
    folder: TempDir,
}

impl Desk {
    /// An empty one.
    ///
    /// # Panics
    /// When there is no place for temporary files.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self {
            folder: TempDir::with_prefix("twospeed-test-").expect("a temporary folder"),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The command line with these arguments, not yet started.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(twospeed());
        command
            .args(arguments)
            .env("TWOSPEED_DATA_DIR", self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs the command line to its end.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ran {
        let output = self
            .command(arguments)
            .output()
            .expect("twospeed can be started");
        Ran::from(output)
    }
}

/// What a command said and how it ended.
#[derive(Debug)]
pub struct Ran {
    /// Exit code; `None` after a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let err = String::from_utf8_lossy(&output.stderr);
        // One measurement at a time on a machine: tests wait for each other, and that is no news.
        let news = err
            .split_inclusive('\n')
            .filter(|line| !line.starts_with("Another measurement runs on this machine"));
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: news.collect(),
        }
    }
}

impl Ran {
    /// Standard output, of a command that has to succeed.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    /// The one sentence of a command that has to fail with this exit code.
    ///
    /// # Panics
    /// When it did not fail so, said nothing, or said more than a sentence's line, or panicked.
    #[track_caller]
    pub fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(!self.err.contains("panicked"), "{}", self.err);
        let sentence = self.err.trim().to_owned();
        assert!(!sentence.is_empty(), "it failed without a word");
        assert!(
            !sentence.contains('\n') || code == 2,
            "more than one line: {sentence}"
        );
        sentence
    }
}

/// Parses JSON that a command printed.
///
/// # Panics
/// When it is none.
#[track_caller]
pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// A command that runs beside the test and does not outlive it.
#[derive(Debug)]
pub struct Running(Option<Child>);

impl Running {
    /// Starts it, its output caught.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> Self {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self(Some(child.expect("twospeed can be started")))
    }

    /// Its process id.
    ///
    /// # Panics
    /// Never while it runs.
    pub fn pid(&self) -> u32 {
        self.0
            .as_ref()
            .expect("BUG: it runs until it is waited for")
            .id()
    }

    /// Ends it at once, as `kill -9` does.
    ///
    /// # Panics
    /// When the system refuses.
    pub fn kill(mut self) {
        if let Some(mut child) = self.0.take() {
            child
                .kill()
                .and_then(|()| child.wait())
                .expect("a child can be killed");
        }
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When the system refuses.
    pub fn end(mut self) -> Ran {
        let child = self.0.take().expect("BUG: it is waited for once");
        Ran::from(child.wait_with_output().expect("a child can be waited for"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
