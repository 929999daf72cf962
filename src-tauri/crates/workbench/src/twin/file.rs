//! The file of the twins: the deeper one is written once, and the shallower is the same file under
//! another header where its data is the beginning of the deeper one's.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::PathBuf;

use twospeed_library::Synthetic;
use twospeed_library::display::{shown_path, size};
use twospeed_library::landing::{SPARE_BYTES, folder_of, free_bytes};
use twospeed_library::synthetic::SyntheticError;
use twospeed_library::twin::padded;

use crate::Problem;

/// A file that twins are written to, one after the other.
#[derive(Debug)]
pub(super) struct TwinFile {
    path: PathBuf,
    /// What its data was written for.
    written: Option<Synthetic>,
}

impl TwinFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            written: None,
        }
    }

    /// Makes the file this twin.
    ///
    /// `told` hears the bytes written and to write, and ends it by answering false; it hears
    /// nothing where the header alone changes.
    pub(super) fn become_twin(
        &mut self,
        twin: &Synthetic,
        told: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<(), Problem> {
        if let Some(written) = &self.written {
            let header = match twin.tensors == written.tensors {
                true => Some(twin.clone()),
                false => padded(twin, written),
            };
            if let Some(header) = header {
                let header = header.header().map_err(|error| self.problem(error))?;
                return self.head(&header).map_err(|error| self.failed(&error));
            }
        }
        self.written = None;
        let room = free_bytes(folder_of(&self.path));
        let need = twin.bytes().map_err(|error| self.problem(error))?;
        if let Some(free) = room.filter(|free| need.saturating_add(SPARE_BYTES) > *free) {
            return Err(Problem::new(
                "disk_too_small",
                format!(
                    "A twin of {} does not fit beside {}: {} are free. Free some space or choose another data folder (--data-dir).",
                    size(need),
                    shown_path(&self.path),
                    size(free)
                ),
            ));
        }
        let mut file = File::create(&self.path)
            .map(|file| BufWriter::with_capacity(1 << 16, file))
            .map_err(|error| self.failed(&error))?;
        twin.write_repeating(&mut file, told)
            .map_err(|error| self.problem(error))?;
        file.flush().map_err(|error| self.failed(&error))?;
        self.written = Some(twin.clone());
        Ok(())
    }

    fn head(&self, header: &[u8]) -> io::Result<()> {
        let mut file = File::options().write(true).open(&self.path)?;
        file.rewind()?;
        file.write_all(header)
    }

    fn problem(&self, error: SyntheticError) -> Problem {
        match error {
            SyntheticError::Stopped => super::cancelled(),
            SyntheticError::Write(twospeed_gguf::WriteError::Io(error)) => self.failed(&error),
            other => Problem::new(
                "twin_impossible",
                format!("A twin of this model cannot be written: {other}"),
            ),
        }
    }

    fn failed(&self, error: &io::Error) -> Problem {
        Problem::new(
            "twin_not_written",
            format!(
                "A twin cannot be written to {}: {error}. Choose another data folder (--data-dir).",
                shown_path(&self.path)
            ),
        )
    }
}
