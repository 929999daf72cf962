//! A model fetched from Hugging Face beside everything else: off the runtime's own threads, and
//! standing back while something is measured on this machine.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::mpsc;
use twospeed_library::download::{self, Downloaded, GoOn, Progress, Request};
use twospeed_measure::lease::{Attempt, Holder};
use twospeed_measure::{Lease, Stop};

use crate::Problem;

/// Between two looks at whether something is being measured.
const LOOK: Duration = Duration::from_secs(1);

/// Fetches a model. While another program or another part of this one holds the lease at `lease`
/// ([`crate::lease_place`]), it pauses and says so ([`download::Doing::Paused`]).
///
/// Errors: those of [`download::download`], with their codes.
pub async fn download(
    request: Request,
    lease: PathBuf,
    stop: &Stop,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Downloaded, Problem> {
    let (sender, mut steps) = mpsc::unbounded_channel();
    let stop = stop.clone();
    let work = tokio::task::spawn_blocking(move || {
        let measuring = Measuring::new(lease);
        let go_on = || match (stop.is_asked(), measuring.now()) {
            (true, _) => GoOn::No,
            (false, true) => GoOn::Pause,
            (false, false) => GoOn::Yes,
        };
        let mut tell = |step| {
            let _ = sender.send(step);
        };
        download::download(&request, &mut tell, &go_on)
    });
    while let Some(step) = steps.recv().await {
        progress(step);
    }
    match work.await {
        Ok(Ok(downloaded)) => Ok(downloaded),
        Ok(Err(error)) => Err(Problem::new(error.code(), &error)),
        Err(_) => Err(Problem::new(
            "download_broken",
            "The download ended by a fault of its own. Try again, and please report this.",
        )),
    }
}

/// Who measures on this machine now; `None` when nobody does, or nobody can say.
///
/// A file that nobody has signed is not even locked to look: a look must not make others wait.
#[must_use]
pub fn measuring_now(lease: &Path) -> Option<Holder> {
    let signed = std::fs::metadata(lease).is_ok_and(|facts| facts.len() > 0);
    if !signed {
        return None;
    }
    match Lease::try_acquire(lease, "look", Timestamp::now()) {
        Ok(Attempt::Busy(holder)) => holder,
        Ok(Attempt::Held(_)) | Err(_) => None,
    }
}

/// [`measuring_now`], looked at once a second.
struct Measuring {
    lease: PathBuf,
    last: Mutex<Option<(Instant, bool)>>,
}

impl Measuring {
    fn new(lease: PathBuf) -> Self {
        Self {
            lease,
            last: Mutex::new(None),
        }
    }

    fn now(&self) -> bool {
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match *last {
            Some((at, measuring)) if at.elapsed() < LOOK => measuring,
            _ => {
                let measuring = measuring_now(&self.lease).is_some();
                *last = Some((Instant::now(), measuring));
                measuring
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_is_held_is_seen_and_one_that_was_left_behind_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("lease");
        assert_eq!(measuring_now(&place), None, "never measured");
        let Ok(Attempt::Held(lease)) = Lease::try_acquire(&place, "bench", Timestamp::now()) else {
            panic!("nobody else has it");
        };
        assert_eq!(measuring_now(&place).unwrap().what, "bench");
        drop(lease);
        assert_eq!(measuring_now(&place), None);
        // Of a holder that was killed the signature stays and the lock goes.
        std::fs::write(
            &place,
            r#"{"pid":1,"what":"bench","since":"2026-01-01T00:00:00Z"}"#,
        )
        .unwrap();
        assert_eq!(measuring_now(&place), None);
    }
}
