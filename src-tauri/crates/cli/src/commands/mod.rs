//! One file a command.

pub mod calibrate;
pub mod chart;
pub mod download;
pub mod estimate;
pub mod export;
pub mod generate;
pub mod import;
pub mod inspect;
pub mod models;
pub mod quantize;
pub mod runs;

use std::path::Path;

use crate::Failure;

/// Writes a file whole or not at all: a failure leaves what was there before.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        // Of a temporary file that could not be made the name says nothing to anybody.
        let error = error.to_string();
        let why = error.split(" at path ").next().unwrap_or(&error);
        Failure::Failed(format!(
            "{} cannot be written: {why}. Name another file or folder.",
            twospeed_library::display::shown_path(path)
        ))
    };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".twospeed-")
        .tempfile_in(folder)
        .map_err(failed)?;
    std::io::Write::write_all(&mut file, bytes).map_err(failed)?;
    let file = file.persist(path).map_err(|error| failed(error.error))?;
    set_usual_permissions(&file);
    Ok(())
}

/// Temporary files are the owner's alone; a result is a file like any other.
#[cfg(unix)]
fn set_usual_permissions(file: &std::fs::File) {
    use std::os::unix::fs::PermissionsExt;
    // Reading the mask means setting it, and this is a single-threaded moment of the program.
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    let _ = file.set_permissions(std::fs::Permissions::from_mode(0o666 & !mask.bits()));
}

#[cfg(not(unix))]
fn set_usual_permissions(_: &std::fs::File) {}
