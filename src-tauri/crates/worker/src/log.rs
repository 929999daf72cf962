//! The engine's log: captured line by line, told to standard error, its tail kept for failures.
//!
//! A line that is written to standard error survives the process, so the parent can show it when the
//! engine aborts; nothing is written inside a timed section.

use std::collections::VecDeque;
use std::ffi::{CStr, c_char, c_void};
use std::io::Write;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard};

use llama_cpp_sys_2::{
    GGML_LOG_LEVEL_CONT, GGML_LOG_LEVEL_DEBUG, GGML_LOG_LEVEL_ERROR, GGML_LOG_LEVEL_NONE,
    ggml_log_level,
};

/// Lines kept for a failure.
const TAIL: usize = 40;

/// One line of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    level: ggml_log_level,
    /// As the engine wrote it, without the line break.
    pub text: String,
}

#[cfg(test)]
impl Line {
    /// A line as the engine logs most of them.
    pub fn info(text: &str) -> Self {
        Self {
            level: llama_cpp_sys_2::GGML_LOG_LEVEL_INFO,
            text: text.to_owned(),
        }
    }
}

struct Log {
    /// A line whose end has not come yet.
    open: Option<Line>,
    tail: VecDeque<Line>,
    capture: Option<Vec<Line>>,
    listener: Option<Sender<String>>,
    hush: bool,
}

static LOG: Mutex<Log> = Mutex::new(Log {
    open: None,
    tail: VecDeque::new(),
    capture: None,
    listener: None,
    hush: false,
});

fn log() -> MutexGuard<'static, Log> {
    // A panic while the lock was held leaves at worst a half-written line.
    LOG.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Log {
    /// Takes a piece of text as the engine hands it out: a whole line, a part of one, or several.
    fn take(&mut self, level: ggml_log_level, text: &str) {
        for piece in text.split_inclusive('\n') {
            let (piece, ends) = match piece.strip_suffix('\n') {
                Some(piece) => (piece, true),
                None => (piece, false),
            };
            let continues = level == GGML_LOG_LEVEL_CONT;
            match &mut self.open {
                Some(open) if continues => open.text.push_str(piece),
                _ => {
                    self.close();
                    self.open = Some(Line {
                        level: if continues {
                            GGML_LOG_LEVEL_NONE
                        } else {
                            level
                        },
                        text: piece.to_owned(),
                    });
                }
            }
            if ends {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        let Some(line) = self.open.take() else {
            return;
        };
        if line.level == GGML_LOG_LEVEL_DEBUG || line.text.trim().is_empty() {
            return;
        }
        if !self.hush || line.level == GGML_LOG_LEVEL_ERROR {
            // Nothing can be done about a parent that does not read.
            let _ = writeln!(std::io::stderr(), "{}", line.text);
        }
        if let Some(listener) = &self.listener {
            // Who listens no more needs no line.
            let _ = listener.send(line.text.clone());
        }
        if let Some(capture) = &mut self.capture {
            capture.push(line.clone());
        }
        if self.tail.len() == TAIL {
            self.tail.pop_front();
        }
        self.tail.push_back(line);
    }
}

unsafe extern "C" fn keep(level: ggml_log_level, text: *const c_char, _data: *mut c_void) {
    // No panic may cross into C++.
    let _ = std::panic::catch_unwind(|| {
        if text.is_null() {
            return;
        }
        // SAFETY: ggml hands out a C string that lives as long as this call.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        log().take(level, &text);
    });
}

/// Takes over the log of llama.cpp and ggml.
pub fn install() {
    // SAFETY: the callback is a function that never unwinds, and it needs no data.
    unsafe { llama_cpp_sys_2::llama_log_set(Some(keep), std::ptr::null_mut()) };
}

/// Runs `work` and returns the lines that were logged meanwhile.
pub fn capture<T>(work: impl FnOnce() -> T) -> (T, Vec<Line>) {
    log().capture = Some(Vec::new());
    let result = work();
    let mut log = log();
    log.close();
    let lines = log.capture.take().unwrap_or_default();
    drop(log);
    (result, lines)
}

/// [`capture`], whose lines `listener` hears as they come.
pub fn capture_aloud<T>(listener: Sender<String>, work: impl FnOnce() -> T) -> (T, Vec<Line>) {
    log().listener = Some(listener);
    let done = capture(work);
    log().listener = None;
    done
}

/// Keeps standard error still until [`release`]; errors are still told.
pub fn hush() {
    log().hush = true;
}

/// Ends [`hush`].
pub fn release() {
    log().hush = false;
}

/// The last lines, oldest first.
pub fn tail() -> Vec<String> {
    log().tail.iter().map(|line| line.text.clone()).collect()
}

/// What the engine said went wrong, without the names of the functions it passed: the first error is
/// the cause, later ones hand it on.
pub fn first_error(lines: &[Line]) -> Option<String> {
    let line = lines
        .iter()
        .find(|line| line.level == GGML_LOG_LEVEL_ERROR)?;
    Some(without_function(&line.text).to_owned())
}

/// `llama_model_load: error loading model: X` says `X` to a person.
fn without_function(line: &str) -> &str {
    let mut rest = line;
    while let Some((head, tail)) = rest.split_once(": ") {
        let is_function = !head.is_empty()
            && head
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_stage = head.starts_with("error loading model") || head == "error";
        if !is_function && !is_stage {
            break;
        }
        rest = tail;
    }
    rest.trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use llama_cpp_sys_2::{GGML_LOG_LEVEL_INFO, GGML_LOG_LEVEL_WARN};

    fn lines(pieces: &[(ggml_log_level, &str)]) -> Vec<String> {
        let mut log = Log {
            open: None,
            tail: VecDeque::new(),
            capture: Some(Vec::new()),
            listener: None,
            hush: true,
        };
        for (level, text) in pieces {
            log.take(*level, text);
        }
        log.close();
        let captured = log.capture.unwrap();
        captured.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_line_in_pieces_is_one_line() {
        let got = lines(&[
            (GGML_LOG_LEVEL_INFO, "loading"),
            (GGML_LOG_LEVEL_CONT, "."),
            (GGML_LOG_LEVEL_CONT, ".\n"),
            (GGML_LOG_LEVEL_INFO, "done\n"),
        ]);
        assert_eq!(got, ["loading..", "done"]);
    }

    #[test]
    fn several_lines_in_one_piece_are_several() {
        let got = lines(&[(GGML_LOG_LEVEL_WARN, "one\ntwo\n\nthree")]);
        assert_eq!(got, ["one", "two", "three"]);
    }

    #[test]
    fn details_for_developers_are_left_out() {
        let got = lines(&[
            (GGML_LOG_LEVEL_DEBUG, "layer 0\n"),
            (GGML_LOG_LEVEL_INFO, "x\n"),
        ]);
        assert_eq!(got, ["x"]);
    }

    #[test]
    fn the_reason_is_told_without_the_functions_it_passed() {
        assert_eq!(
            without_function(
                "llama_model_load: error loading model: missing tensor 'output_norm.weight'"
            ),
            "missing tensor 'output_norm.weight'"
        );
        assert_eq!(
            without_function(
                "llama_model_load: error loading model: error loading model hyperparameters: key not found in model: llama.context_length"
            ),
            "key not found in model: llama.context_length"
        );
        assert_eq!(without_function("out of memory"), "out of memory");
    }
}
