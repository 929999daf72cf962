//! How a worker ended, and what to tell the person about it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::protocol::Request;

/// A worker that is no more: how it ended, what it was doing, its last words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerEnd {
    /// How it ended.
    pub how: How,
    /// What it was doing then.
    pub doing: Doing,
    /// The CPU variant it ran, where it lived long enough to say so or was told which.
    pub variant: Option<String>,
    /// Its last lines, oldest first: what the engine printed, and lines that were no message.
    pub log: Vec<String>,
}

/// Ways for a worker to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum How {
    /// It left by itself; 0 is what a worker answers to the end of its input.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// A signal ended it that we did not send. Windows' exceptions are named like the signals.
    Signal {
        /// The signal's number on this system.
        number: i32,
        /// The signal's name: `SIGSEGV`.
        name: String,
    },
    /// Memory ran out: the kernel counted a kill, or the worker said so before it aborted.
    OutOfMemory,
    /// We ended it: it did not answer a cancel or leave in time, or nobody needed it any more.
    Killed,
    /// We ended it because it could not be talked to any more.
    Protocol {
        /// What was wrong.
        fault: ProtocolFault,
    },
    /// It is gone and the system does not say how (another part of the process collects all children).
    Unknown,
}

/// What is printed before an abort for want of memory: by C++, by Rust, by ggml's allocator.
const OUT_OF_MEMORY_WORDS: [&str; 4] = [
    "std::bad_alloc",
    "memory allocation of",
    "insufficient memory",
    "failed to allocate",
];

/// Such words count when they are among this many last lines.
const LAST_WORDS: usize = 8;

impl How {
    /// Death by the instruction that this CPU refuses, the one death that speaks against a CPU variant.
    pub fn is_illegal_instruction(&self) -> bool {
        matches!(self, Self::Signal { name, .. } if name == "SIGILL")
    }

    /// An abort whose last words name memory is a lack of memory, not a failed check.
    pub(crate) fn with_last_words(self, log: &[String]) -> Self {
        let aborted = matches!(&self, Self::Signal { name, .. } if name == "SIGABRT");
        let last = &log[log.len().saturating_sub(LAST_WORDS)..];
        let names_memory = |line: &String| OUT_OF_MEMORY_WORDS.iter().any(|w| line.contains(w));
        if aborted && last.iter().any(names_memory) {
            return Self::OutOfMemory;
        }
        self
    }
}

/// Why a living worker could not be talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProtocolFault {
    /// It closed its output and went on running.
    OutputClosed,
    /// It closed its input and went on running.
    InputClosed,
}

/// What a worker was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// Starting: it had not said hello.
    Starting,
    /// Waiting for a request.
    Waiting,
    /// Loading a model.
    Loading,
    /// Running a test.
    Measuring,
    /// Answering a prompt.
    Generating,
    /// Measuring how fast memory is read.
    ReadingMemory,
    /// Asking what contexts would take.
    Foreseeing,
    /// Timing single operations.
    Calibrating,
    /// Running the drift anchor.
    Anchoring,
    /// Quantizing a model file.
    Quantizing,
}

impl Doing {
    /// What a request makes a worker do; `None` for those that only steer what it does already.
    pub fn after(request: &Request) -> Option<Self> {
        match request {
            Request::Load(_) => Some(Self::Loading),
            Request::Measure(_) | Request::Serve(_) | Request::Users(_) | Request::Quality(_) => {
                Some(Self::Measuring)
            }
            Request::Generate(_) => Some(Self::Generating),
            Request::ReadBandwidth(_) => Some(Self::ReadingMemory),
            Request::Foresee(_) => Some(Self::Foreseeing),
            Request::Calibrate(_) => Some(Self::Calibrating),
            Request::Anchor(_) => Some(Self::Anchoring),
            Request::Quantize(_) => Some(Self::Quantizing),
            Request::Go | Request::Enough | Request::Cancel => None,
        }
    }
}

impl WorkerEnd {
    /// The key of this end for those who branch on it; the sentence may change, this may not.
    ///
    /// One of `engine_illegal_instruction`, `engine_crashed`, `engine_file_fault`,
    /// `engine_check_failed`, `engine_out_of_memory`, `engine_killed`, `engine_ended_by_signal`,
    /// `engine_exited`, `engine_failed`, `engine_stopped`, `engine_protocol`, `engine_ended`.
    pub fn code(&self) -> &'static str {
        match &self.how {
            How::Exited { code: 0 } => "engine_exited",
            How::Exited { .. } => "engine_failed",
            How::Signal { name, .. } => match name.as_str() {
                "SIGILL" => "engine_illegal_instruction",
                "SIGSEGV" | "SIGFPE" => "engine_crashed",
                "SIGBUS" => "engine_file_fault",
                "SIGABRT" => "engine_check_failed",
                "SIGKILL" => "engine_killed",
                _ => "engine_ended_by_signal",
            },
            How::OutOfMemory => "engine_out_of_memory",
            How::Killed => "engine_stopped",
            How::Protocol { .. } => "engine_protocol",
            How::Unknown => "engine_ended",
        }
    }

    /// What happened and what to do, for the person; `model` is the name they know it by.
    pub fn sentence(&self, model: Option<&str>) -> String {
        let scene = Scene {
            doing: self.doing,
            model,
        };
        match &self.how {
            How::Exited { code: 0 } => {
                format!("The engine left by itself {scene}, without an error. Try again.")
            }
            How::Exited { code } => match self.last_words() {
                Some(words) => {
                    format!("The engine failed {scene} (exit code {code}). Its last words: {words}")
                }
                None => format!(
                    "The engine failed {scene} (exit code {code}) and said nothing. Try again; \
                     if it fails again, reinstall Twospeed."
                ),
            },
            How::Signal { number, name } => self.signal_sentence(*number, name, &scene),
            How::OutOfMemory => format!(
                "Memory ran out {scene} and the engine was ended. Close other programs, or try a \
                 smaller quantization or a shorter context."
            ),
            How::Killed => format!(
                "The engine was stopped {scene}; it did not stop by itself in time. What was \
                 measured before is kept."
            ),
            How::Protocol { fault } => format!(
                "The engine {fault} {scene} and was ended. Try again; if it happens again, \
                 reinstall Twospeed."
            ),
            How::Unknown => {
                format!("The engine ended {scene}, and the system does not say how. Try again.")
            }
        }
    }

    fn signal_sentence(&self, number: i32, name: &str, scene: &Scene<'_>) -> String {
        match name {
            "SIGILL" => {
                let build = match &self.variant {
                    Some(variant) => format!("The engine's build for {variant} CPUs"),
                    None => "The engine".to_owned(),
                };
                format!(
                    "{build} used an instruction that this CPU refuses (SIGILL) {scene}. Leave this \
                     build aside on this machine and use the next best."
                )
            }
            "SIGABRT" => {
                let check = match self.failed_check() {
                    Some(line) => format!(": {line}"),
                    None => " (SIGABRT)".to_owned(),
                };
                format!(
                    "The engine's own check failed {scene}{check}. It cannot run this; try other \
                     settings or another file."
                )
            }
            "SIGSEGV" | "SIGFPE" => format!(
                "The engine crashed {scene} ({name}). The file may be damaged or of a kind that \
                 this engine cannot run: try another file or other settings."
            ),
            "SIGBUS" => format!(
                "The model file could not be read {scene} (SIGBUS): it became shorter, or the disk \
                 failed. Check the file and the disk, then try again."
            ),
            "SIGKILL" => format!(
                "The engine was killed {scene} (perhaps out of memory). If nobody ended it, try a \
                 smaller quantization or a shorter context."
            ),
            _ => {
                format!("The engine was ended {scene} by {name} (signal {number}). Try again.")
            }
        }
    }

    /// The engine's check that failed, without the build machine's folders before the file's name.
    pub fn failed_check(&self) -> Option<String> {
        let lines = || self.log.iter().rev().map(|line| line.trim());
        let check = lines()
            .find(|line| line.contains("GGML_ASSERT"))
            .map(|line| from_source(line).unwrap_or(line))
            .or_else(|| lines().find_map(from_source))?;
        Some(check.trim_end_matches('.').to_owned())
    }

    /// The last line that says anything, ready to stand in a sentence.
    fn last_words(&self) -> Option<&str> {
        self.log
            .iter()
            .rev()
            .map(|line| line.trim())
            .find(|line| !line.is_empty())
    }
}

/// `while loading Qwen3-8B`.
struct Scene<'a> {
    doing: Doing,
    model: Option<&'a str>,
}

impl fmt::Display for Scene<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.doing, self.model) {
            (Doing::Starting, _) => f.write_str("while starting"),
            (Doing::Waiting, Some(model)) => write!(f, "while {model} waited to be used"),
            (Doing::Waiting, None) => f.write_str("while waiting"),
            (Doing::Loading, model) => write!(f, "while loading {}", model.unwrap_or("the model")),
            (Doing::Measuring, model) => {
                write!(f, "while measuring {}", model.unwrap_or("the model"))
            }
            (Doing::Generating, Some(model)) => write!(f, "while {model} answered"),
            (Doing::Generating, None) => f.write_str("while answering"),
            (Doing::ReadingMemory, _) => f.write_str("while measuring the memory's speed"),
            (Doing::Foreseeing, Some(model)) => write!(f, "while working out what {model} takes"),
            (Doing::Foreseeing, None) => f.write_str("while working out what a model takes"),
            (Doing::Calibrating, _) => f.write_str("while calibrating"),
            (Doing::Anchoring, _) => f.write_str("while checking the machine's speed"),
            (Doing::Quantizing, model) => {
                write!(f, "while quantizing {}", model.unwrap_or("the model"))
            }
        }
    }
}

impl fmt::Display for ProtocolFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutputClosed => "fell silent for good (it closed its output)",
            Self::InputClosed => "no longer listened (it closed its input)",
        })
    }
}

/// The part of a line that names a place in a source file, as ggml does when it aborts:
/// `ggml.c:12: GGML_ASSERT(x) failed` of `/build/llama.cpp/ggml/src/ggml.c:12: GGML_ASSERT(x) failed`.
fn from_source(line: &str) -> Option<&str> {
    let ends = [".c:", ".cpp:", ".h:", ".hpp:", ".cu:", ".cuh:", ".m:"];
    ends.iter().find_map(|end| {
        let dot = line.find(end)?;
        let (number, _) = line[dot + end.len()..].split_once(':')?;
        number.parse::<u32>().ok()?;
        let before = line[..dot].rfind(['/', '\\', ' ']);
        Some(&line[before.map_or(0, |at| at + 1)..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(how: How, doing: Doing, log: &[&str]) -> WorkerEnd {
        WorkerEnd {
            how,
            doing,
            variant: Some("icelake".into()),
            log: log.iter().map(|line| (*line).to_owned()).collect(),
        }
    }

    fn signal(number: i32, name: &str) -> How {
        How::Signal {
            number,
            name: name.into(),
        }
    }

    #[test]
    fn a_sentence_says_what_happened_to_which_model_and_what_to_do() {
        let end = end(signal(11, "SIGSEGV"), Doing::Measuring, &[]);
        assert_eq!(
            end.sentence(Some("Qwen3 8B Q4_K_M")),
            "The engine crashed while measuring Qwen3 8B Q4_K_M (SIGSEGV). The file may be damaged \
             or of a kind that this engine cannot run: try another file or other settings."
        );
    }

    #[test]
    fn every_way_to_end_has_a_sentence_of_its_own() {
        let ways = [
            How::Exited { code: 0 },
            How::Exited { code: 3 },
            signal(4, "SIGILL"),
            signal(6, "SIGABRT"),
            signal(7, "SIGBUS"),
            signal(9, "SIGKILL"),
            signal(11, "SIGSEGV"),
            signal(15, "SIGTERM"),
            How::OutOfMemory,
            How::Killed,
            How::Protocol {
                fault: ProtocolFault::OutputClosed,
            },
            How::Unknown,
        ];
        let mut codes = std::collections::HashSet::new();
        for how in ways {
            for doing in [
                Doing::Starting,
                Doing::Waiting,
                Doing::Loading,
                Doing::Measuring,
                Doing::Generating,
                Doing::ReadingMemory,
                Doing::Anchoring,
                Doing::Quantizing,
            ] {
                let end = end(how.clone(), doing, &[]);
                codes.insert(end.code());
                for sentence in [end.sentence(None), end.sentence(Some("Qwen3"))] {
                    assert!(sentence.ends_with('.'), "{sentence}");
                    assert!(!sentence.contains("  "), "{sentence}");
                }
            }
        }
        assert_eq!(codes.len(), 12);
    }

    #[test]
    fn the_last_failed_check_is_quoted_without_the_build_machines_folders() {
        let quoted = |log: &[&str]| end(signal(6, "SIGABRT"), Doing::Loading, log).failed_check();
        assert_eq!(
            quoted(&[
                "/home/me/llama.cpp/ggml/src/ggml.c:3122: GGML_ASSERT(ggml_can_mul_mat(a, b)) failed",
                "load_tensors: loading",
            ]),
            Some("ggml.c:3122: GGML_ASSERT(ggml_can_mul_mat(a, b)) failed".into())
        );
        assert_eq!(
            quoted(&[r"C:\llama\ggml-cpu.cpp:12: fatal error"]),
            Some("ggml-cpu.cpp:12: fatal error".into())
        );
        assert_eq!(quoted(&["12:30: tea", "https://a.b:80: c"]), None);
    }

    #[test]
    fn an_abort_is_for_want_of_memory_only_when_its_last_words_say_so() {
        let abort = || signal(6, "SIGABRT");
        let log = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
        let thrown = log(&["terminate called after throwing 'std::bad_alloc'"]);
        assert_eq!(abort().with_last_words(&thrown), How::OutOfMemory);
        assert_eq!(abort().with_last_words(&log(&["GGML_ASSERT(x)"])), abort());
        let long_ago = [thrown.clone(), vec!["and then".into(); LAST_WORDS]].concat();
        assert_eq!(abort().with_last_words(&long_ago), abort());
        let crash = signal(11, "SIGSEGV");
        assert_eq!(crash.clone().with_last_words(&thrown), crash);
    }
}
