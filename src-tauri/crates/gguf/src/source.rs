//! A bounded reader: knows how many bytes the file has left, and never holds many of them.

use std::io::{self, Read};

use crate::error::Fault;
use crate::metadata::Text;

/// Bytes held at a time.
const BUFFER: usize = 128 * 1024;

/// The longest header that is read. The largest tokenizers in use need some 20 MB.
const HEADER_LIMIT: u64 = 256 << 20;

/// Why reading a header stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The header cannot be right.
    Fault(Fault),
    /// The system failed to read.
    Io(io::Error),
    /// No more bytes although the file should go on.
    Dry {
        /// How many there were.
        have: u64,
    },
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        Stop::Fault(fault)
    }
}

/// Reads forward only, from the first byte of a file whose length is known.
pub(crate) struct Source<R> {
    inner: R,
    buffer: Box<[u8]>,
    /// The unread part of `buffer`.
    start: usize,
    end: usize,
    /// Bytes of the file before `start`.
    offset: u64,
    total: u64,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(inner: R, total: u64) -> Source<R> {
        Source {
            inner,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            offset: 0,
            total,
        }
    }

    /// Bytes of the file.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes of the file that were not read yet.
    pub(crate) fn left(&self) -> u64 {
        self.total.saturating_sub(self.offset)
    }

    /// The next bytes without reading past them: up to `wanted`, fewer at the end of the file.
    pub(crate) fn peek(&mut self, wanted: usize) -> Result<&[u8], Stop> {
        let wanted = wanted.min(usize::try_from(self.left()).unwrap_or(usize::MAX));
        self.fill(wanted)?;
        Ok(&self.buffer[self.start..self.end.min(self.start + wanted)])
    }

    /// Makes at least `wanted` bytes (at most a buffer) lie in the buffer.
    fn fill(&mut self, wanted: usize) -> Result<(), Stop> {
        debug_assert!(wanted <= BUFFER);
        if self.end - self.start >= wanted {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < wanted {
            match self.inner.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    return Err(Stop::Dry {
                        have: self.offset + self.end as u64,
                    });
                }
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Io(error)),
            }
        }
        Ok(())
    }

    /// Refuses to go past the end of the file, or on for longer than any header.
    fn allow(&self, bytes: u64) -> Result<(), Stop> {
        if bytes > self.left() {
            return Err(Fault::Ends(self.total).into());
        }
        if self.offset.saturating_add(bytes) > HEADER_LIMIT {
            return Err(Fault::HeaderTooLong(HEADER_LIMIT >> 20).into());
        }
        Ok(())
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// The next `N` bytes.
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        self.allow(N as u64)?;
        self.fill(N)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.buffer[self.start..self.start + N]);
        self.consume(N);
        Ok(bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Stop> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Stop> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    /// Reads a length and refuses it when `unit` bytes for each do not follow.
    pub(crate) fn count(&mut self, unit: u64, what: impl FnOnce() -> String) -> Result<u64, Stop> {
        let claimed = self.u64()?;
        self.check_claim(claimed, unit, what)?;
        Ok(claimed)
    }

    /// Refuses a claim of `claimed` things of at least `unit` bytes that the file cannot hold.
    pub(crate) fn check_claim(
        &self,
        claimed: u64,
        unit: u64,
        what: impl FnOnce() -> String,
    ) -> Result<(), Stop> {
        let left = self.left();
        match claimed.checked_mul(unit) {
            Some(bytes) if bytes <= left => Ok(()),
            _ => Err(Fault::Claim {
                what: what(),
                claimed,
                left,
            }
            .into()),
        }
    }

    /// Reads past `bytes` bytes.
    pub(crate) fn skip(&mut self, mut bytes: u64) -> Result<(), Stop> {
        self.allow(bytes)?;
        while bytes > 0 {
            let step = bytes.min(BUFFER as u64) as usize;
            self.fill(step.min(1.max(self.end - self.start)))?;
            let held = (self.end - self.start).min(step);
            self.consume(held);
            bytes -= held as u64;
        }
        Ok(())
    }

    /// Reads `length` bytes whose number was checked, and keeps the first `keep` of them.
    pub(crate) fn text(&mut self, length: u64, keep: u64) -> Result<Text, Stop> {
        self.allow(length)?;
        let mut bytes = Vec::new();
        let kept = length.min(keep);
        while (bytes.len() as u64) < kept {
            let missing = (kept - bytes.len() as u64).min(BUFFER as u64) as usize;
            self.fill(missing)?;
            bytes.extend_from_slice(&self.buffer[self.start..self.start + missing]);
            self.consume(missing);
        }
        self.skip(length - kept)?;
        Ok(Text { bytes, length })
    }

    /// Reads past `count` texts, each with its length before it.
    pub(crate) fn skip_texts(&mut self, count: u64, what: impl Fn() -> String) -> Result<(), Stop> {
        for _ in 0..count {
            let length = match self.buffer[self.start..self.end].first_chunk::<8>() {
                Some(length) if self.left() >= 8 => {
                    let length = u64::from_le_bytes(*length);
                    self.consume(8);
                    length
                }
                _ => self.u64()?,
            };
            if length <= (self.end - self.start) as u64 && length <= self.left() {
                self.consume(length as usize);
            } else {
                self.check_claim(length, 1, &what)?;
                self.skip(length)?;
            }
        }
        self.allow(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what() -> String {
        "bytes of a word".to_owned()
    }

    /// Hands out one byte at a time.
    struct Trickle<'a>(&'a [u8]);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match (self.0.split_first(), buffer.first_mut()) {
                (Some((byte, rest)), Some(slot)) => {
                    *slot = *byte;
                    self.0 = rest;
                    Ok(1)
                }
                _ => Ok(0),
            }
        }
    }

    #[test]
    fn texts_are_passed_over_whatever_the_reader_hands_out() {
        let mut bytes = Vec::new();
        for word in ["", "a", "long word"] {
            bytes.extend_from_slice(&(word.len() as u64).to_le_bytes());
            bytes.extend_from_slice(word.as_bytes());
        }
        bytes.push(7);
        let mut source = Source::new(Trickle(&bytes), bytes.len() as u64);
        source.skip_texts(3, what).unwrap();
        assert_eq!(source.left(), 1);
        assert_eq!(source.take::<1>().unwrap(), [7]);
    }

    #[test]
    fn a_claim_is_held_against_the_bytes_that_follow() {
        let bytes = u64::MAX.to_le_bytes();
        let mut source = Source::new(&bytes[..], 8);
        let stop = source.count(8, what).unwrap_err();
        let Stop::Fault(Fault::Claim { claimed, left, .. }) = stop else {
            panic!("{stop:?}")
        };
        assert_eq!((claimed, left), (u64::MAX, 0));
    }

    #[test]
    fn the_end_of_the_file_and_the_end_of_what_was_handed_over_differ() {
        let mut whole = Source::new(&[1, 2][..], 2);
        assert!(matches!(whole.u32(), Err(Stop::Fault(Fault::Ends(2)))));
        let mut beginning = Source::new(&[1, 2][..], 1000);
        assert!(matches!(beginning.u32(), Err(Stop::Dry { have: 2 })));
    }

    #[test]
    fn a_header_without_end_is_given_up() {
        let mut source = Source::new(io::repeat(0), u64::MAX);
        let stop = source.skip(HEADER_LIMIT + 1).unwrap_err();
        assert!(matches!(stop, Stop::Fault(Fault::HeaderTooLong(256))));
        let stop = source.skip_texts(u64::MAX, what).unwrap_err();
        assert!(matches!(stop, Stop::Fault(Fault::HeaderTooLong(256))));
    }

    #[test]
    fn of_a_long_text_only_the_beginning_is_kept() {
        let bytes = vec![b'x'; 3 * BUFFER];
        let mut source = Source::new(&bytes[..], bytes.len() as u64);
        let text = source.text(bytes.len() as u64, 100).unwrap();
        assert_eq!(
            (text.bytes.len(), text.length, source.left()),
            (100, 3 * BUFFER as u64, 0)
        );
    }
}
