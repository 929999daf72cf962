//! One file fetched, from wherever an earlier try left off.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::error::DownloadError;
use super::listing::Entry;
use super::part::{self, Part};
use super::tries::{Tries, stand_by};
use super::wire::{Exchange, Fault, Head, Rest, Said};
use super::{Doing, GoOn, Request};

/// What every GGUF file begins with.
const MAGIC: &[u8] = b"GGUF";

/// Between two words on progress.
const TELL: Duration = Duration::from_millis(100);

/// A file in its place.
pub(super) struct Landed {
    pub path: PathBuf,
    pub bytes: u64,
    pub was_there: bool,
}

/// Fetches a file into the request's folder. `told` hears the bytes of it that are here.
pub(super) fn fetch(
    request: &Request,
    entry: &Entry,
    told: &mut dyn FnMut(u64, Doing),
    go_on: &dyn Fn() -> GoOn,
) -> Result<Landed, DownloadError> {
    let path = request.folder.join(entry.name());
    let landed = |was_there| Landed {
        path: path.clone(),
        bytes: entry.size,
        was_there,
    };
    let mut last_told = None;
    let mut checked = |bytes| {
        if is_due(&mut last_told) {
            told(bytes, Doing::Checking);
        }
        stand_by(go_on, &mut || told(bytes, Doing::Paused)).is_ok()
    };
    if std::fs::symlink_metadata(&path).is_ok() {
        let there = part::is_there(&path, entry, &mut checked);
        match there {
            Ok(true) => return Ok(landed(true)),
            Ok(false) if request.overwrite => {}
            Ok(false) => return Err(DownloadError::Exists(path)),
            Err(_) if go_on() == GoOn::No => return Err(DownloadError::Cancelled),
            Err(error) => return Err(DownloadError::writing(&path, &error)),
        }
    }
    let part = Part::open(&path, entry, &mut checked)?;
    if go_on() == GoOn::No {
        return Err(DownloadError::Cancelled);
    }
    let mut transfer = Transfer {
        request,
        entry,
        part,
        told,
        go_on,
        last_told: None,
    };
    if let Err(error) = transfer.complete() {
        if transfer.part.bytes == 0 || matches!(error, DownloadError::NotAsListed { .. }) {
            transfer.part.remove();
        }
        return Err(error);
    }
    transfer.tell(Doing::Fetching, true);
    transfer.part.land(entry, request.overwrite)?;
    Ok(landed(false))
}

struct Transfer<'a> {
    request: &'a Request,
    entry: &'a Entry,
    part: Part,
    told: &'a mut dyn FnMut(u64, Doing),
    go_on: &'a dyn Fn() -> GoOn,
    last_told: Option<Instant>,
}

impl Transfer<'_> {
    /// Fetches until everything is here, with a few tries after each break.
    fn complete(&mut self) -> Result<(), DownloadError> {
        let mut tries = Tries::new(self.request.pause);
        let mut restarted = false;
        while self.part.bytes < self.entry.size {
            let before = self.part.bytes;
            match self.attempt() {
                Ok(Attempt::Whole) => {}
                // The server has no such range: once from the beginning.
                Ok(Attempt::NoRange) if !restarted => {
                    restarted = true;
                    self.part.restart()?;
                }
                Ok(Attempt::NoRange) => {
                    return Err(self.not_as_listed("another size than the repository lists"));
                }
                Err(Fault::Final(error)) => return Err(error),
                Err(Fault::Passing { error, after }) => {
                    if self.part.bytes > before {
                        tries.reset();
                    }
                    self.tell(Doing::Retrying, true);
                    tries
                        .wait(error, after, self.go_on)
                        .map_err(|error| self.broken(error))?;
                }
            }
        }
        Ok(())
    }

    fn attempt(&mut self) -> Result<Attempt, Fault> {
        let Request { hub, wanted, .. } = self.request;
        let url = hub.file(&wanted.repo, &self.entry.path);
        let from = (self.part.bytes > 0).then(|| Rest {
            at: self.part.bytes,
            last: None,
            if_still: self.part.mark(),
        });
        let exchange = Exchange::begin(hub, &url, from);
        let head = exchange.head(self.go_on)?;
        if head.status == 416 {
            return Ok(Attempt::NoRange);
        }
        head.check(hub, &wanted.repo, self.entry.name())?;
        self.take_head(&head)?;
        loop {
            let paused = &mut || (self.told)(self.part.bytes, Doing::Paused);
            match exchange.hear(self.go_on, paused)? {
                Said::Piece(piece) => self.take(&piece)?,
                Said::End if self.part.bytes < self.entry.size => {
                    return Err(Fault::Passing {
                        error: DownloadError::Offline {
                            host: hub.host(),
                            fault: "the connection ended in the middle".to_owned(),
                        },
                        after: None,
                    });
                }
                Said::End => return Ok(Attempt::Whole),
                Said::Head(_) => {}
                Said::Failed(fault) => return Err(fault),
            }
        }
    }

    /// Where the answer begins, and whether it is the file that is listed.
    fn take_head(&mut self, head: &Head) -> Result<(), Fault> {
        let here = self.part.bytes;
        let (first, whole) = match (head.status, head.range) {
            (206, Some((first, whole))) => (first, whole),
            (206, None) => (u64::MAX, None),
            // The whole file, though a part of it may have been asked for.
            _ => (0, head.length),
        };
        if let Some(whole) = whole.filter(|whole| *whole != self.entry.size) {
            let error = self.not_as_listed(&format!(
                "{whole} bytes instead of the {} that the repository lists",
                self.entry.size
            ));
            return Err(Fault::Final(error));
        }
        if first != here {
            self.part.restart()?;
            if first != 0 {
                return Err(Fault::Passing {
                    error: DownloadError::Offline {
                        host: self.request.hub.host(),
                        fault: "it sent another part than the one asked for".to_owned(),
                    },
                    after: None,
                });
            }
        }
        self.part.set_mark(head.etag.clone())?;
        Ok(())
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), Fault> {
        if self.part.bytes == 0 && !piece.starts_with(&MAGIC[..MAGIC.len().min(piece.len())]) {
            return Err(Fault::Final(DownloadError::NotTheFile {
                host: self.request.hub.host(),
                what: self.entry.name().to_owned(),
                got: "something that is no GGUF file".to_owned(),
            }));
        }
        if self.part.bytes + piece.len() as u64 > self.entry.size {
            let error = self.not_as_listed("more bytes than the repository lists");
            return Err(Fault::Final(error));
        }
        self.part.append(piece)?;
        self.tell(Doing::Fetching, false);
        Ok(())
    }

    /// Tells how far it is, about ten times a second; what is urgent at once.
    fn tell(&mut self, doing: Doing, urgent: bool) {
        if urgent || is_due(&mut self.last_told) {
            (self.told)(self.part.bytes, doing);
        }
    }

    fn not_as_listed(&self, fault: &str) -> DownloadError {
        DownloadError::NotAsListed {
            what: self.entry.name().to_owned(),
            fault: fault.to_owned(),
        }
    }

    /// After some bytes came, a lost connection is a broken download and not a missing network.
    fn broken(&self, error: DownloadError) -> DownloadError {
        match error {
            DownloadError::Offline { host, fault } if self.part.bytes > 0 => {
                DownloadError::Broken {
                    what: self.entry.name().to_owned(),
                    fault: format!("{host}: {fault}"),
                }
            }
            other => other,
        }
    }
}

/// Whether it is time for another word; the first is always due.
fn is_due(last: &mut Option<Instant>) -> bool {
    let due = last.is_none_or(|last| last.elapsed() >= TELL);
    if due {
        *last = Some(Instant::now());
    }
    due
}

/// What came of one try.
enum Attempt {
    /// Everything.
    Whole,
    /// The server has no such range.
    NoRange,
}
