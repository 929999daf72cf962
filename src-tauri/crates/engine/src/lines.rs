//! Lines out of bytes nobody vouches for: bounded, whatever comes.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Longest message. The longest honest one is the answer to a long `generate`: about 14 bytes for
/// each token it wrote, so this is room for a million.
const MESSAGE_LIMIT: usize = 16 << 20;

/// What is kept of a line that cannot be a message.
const TEXT_LIMIT: usize = 4 << 10;

/// Lines kept of what a worker printed.
const LOG_LINES: usize = 200;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its bytes, as far as they were kept.
    pub(crate) bytes: Vec<u8>,
    /// More came than is kept.
    pub(crate) cut: bool,
}

/// Cuts a stream of bytes into lines and never keeps more than the longest allowed one.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    begun: Vec<u8>,
    cut: bool,
}

impl Lines {
    /// Takes bytes off `input` until a line is complete; `None` when `input` is used up first.
    pub(crate) fn next(&mut self, input: &mut &[u8]) -> Option<Line> {
        let end = input.iter().position(|byte| *byte == b'\n');
        self.keep(&input[..end.unwrap_or(input.len())]);
        *input = match end {
            Some(end) => &input[end + 1..],
            None => &[],
        };
        end.map(|_| self.take())
    }

    /// The line that was begun and never ended, once the stream has ended.
    pub(crate) fn rest(&mut self) -> Option<Line> {
        (!self.begun.is_empty()).then(|| self.take())
    }

    fn keep(&mut self, bytes: &[u8]) {
        // Messages are JSON objects: whatever else a line is, it needs no room for one.
        let first = self.begun.first().or(bytes.first());
        let limit = match first {
            Some(b'{') => MESSAGE_LIMIT,
            _ => TEXT_LIMIT,
        };
        let room = limit - self.begun.len().min(limit);
        self.begun
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.cut |= bytes.len() > room;
    }

    fn take(&mut self) -> Line {
        let mut bytes = std::mem::take(&mut self.begun);
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        Line {
            bytes,
            cut: std::mem::take(&mut self.cut),
        }
    }
}

/// The last lines that a worker printed.
#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: Mutex<VecDeque<String>>,
    told: bool,
}

impl Log {
    /// With no lines yet; `told` repeats each on our standard error.
    pub(crate) fn new(told: bool) -> Self {
        Self {
            lines: Mutex::default(),
            told,
        }
    }

    /// Keeps a line, as text that can be shown anywhere: no bytes that are no text, no escapes that
    /// would paint a terminal.
    pub(crate) fn push(&self, line: &Line) {
        let kept = &line.bytes[..line.bytes.len().min(TEXT_LIMIT)];
        let mut text: String = String::from_utf8_lossy(kept)
            .chars()
            .map(|c| if c == '\t' { ' ' } else { c })
            .filter(|c| !c.is_control())
            .collect();
        if text.trim().is_empty() {
            return;
        }
        if line.cut || kept.len() < line.bytes.len() {
            text.push('…');
        }
        if self.told {
            // Where nobody listens any more the line is lost.
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LOG_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }

    /// All that is kept, oldest first.
    pub(crate) fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut all = Vec::new();
        for chunk in chunks {
            let mut rest = *chunk;
            while let Some(line) = lines.next(&mut rest) {
                all.push(line);
            }
        }
        all.extend(lines.rest());
        all.into_iter()
            .map(|line| String::from_utf8(line.bytes).unwrap())
            .collect()
    }

    #[test]
    fn a_line_is_the_same_however_it_arrives() {
        let whole = split(&[b"one\ntwo\r\n\nfour"]);
        assert_eq!(whole, ["one", "two", "", "four"]);
        assert_eq!(split(&[b"on", b"e\ntwo\r", b"\n\nfo", b"ur"]), whole);
    }

    #[test]
    fn a_line_without_end_is_kept_to_its_limit_only() {
        let mut lines = Lines::default();
        for _ in 0..1000 {
            assert_eq!(lines.next(&mut [b'x'; 64 << 10].as_slice()), None);
        }
        assert!(lines.begun.capacity() <= 2 * TEXT_LIMIT.max(64 << 10));
        let line = lines.next(&mut b"\n".as_slice()).unwrap();
        assert_eq!((line.bytes.len(), line.cut), (TEXT_LIMIT, true));
        let after = lines.next(&mut b"next\n".as_slice()).unwrap();
        assert_eq!(
            (after.bytes.as_slice(), after.cut),
            (b"next".as_slice(), false)
        );
    }

    #[test]
    fn a_message_longer_than_any_honest_one_is_cut() {
        let mut lines = Lines::default();
        lines.next(&mut b"{".as_slice());
        for _ in 0..MESSAGE_LIMIT / (64 << 10) {
            assert_eq!(lines.next(&mut [b'x'; 64 << 10].as_slice()), None);
        }
        let line = lines.next(&mut b"\n".as_slice()).unwrap();
        assert_eq!((line.bytes.len(), line.cut), (MESSAGE_LIMIT, true));
    }

    #[test]
    fn the_log_keeps_the_last_lines_as_plain_text() {
        let log = Log::default();
        let push = |text: &[u8]| {
            log.push(&Line {
                bytes: text.to_vec(),
                cut: false,
            });
        };
        for number in 0..LOG_LINES + 5 {
            push(format!("line {number}").as_bytes());
        }
        push(b"   ");
        push(b"\x1b[31mred\tand \xff\x07");
        let lines = log.lines();
        assert_eq!(lines.len(), LOG_LINES);
        assert_eq!(lines[0], "line 6");
        assert_eq!(lines[LOG_LINES - 1], "[31mred and \u{fffd}");
    }
}
