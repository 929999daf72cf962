//! The builds of the CPU backend, one for each kind of processor.
//!
//! Each library scores itself for the processor it is loaded on: 0 when it cannot run there, else
//! the more features it uses the higher. The score tells what the processor announces, not what
//! it bears: a variant that dies is set aside by the app.

use std::path::{Path, PathBuf};

use libloading::Library;
use twospeed_engine::protocol::Variant;

/// A variant that claims to run here, and its library.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What is said of it.
    pub variant: Variant,
    /// Its library.
    pub path: PathBuf,
}

/// Every variant in `folder` that claims to run on this processor, best first.
pub fn candidates(folder: &Path) -> std::io::Result<Vec<Candidate>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(name) = name.and_then(variant_name) else {
            continue;
        };
        let Some(score) = score(&path).filter(|score| *score > 0) else {
            continue;
        };
        found.push(Candidate {
            variant: Variant {
                name: name.to_owned(),
                score,
            },
            path,
        });
    }
    // Variants of one score differ in nothing that counts here: the name decides, so that the
    // choice is the same every time.
    found.sort_by(|a, b| {
        (b.variant.score, &a.variant.name).cmp(&(a.variant.score, &b.variant.name))
    });
    Ok(found)
}

/// The one to load: the one asked for, or the best that is not set aside.
///
/// Errors: a sentence that names what is there.
pub fn choose<'a>(
    candidates: &'a [Candidate],
    wanted: Option<&str>,
    set_aside: &[String],
) -> Result<&'a Candidate, String> {
    let names = || {
        let names: Vec<&str> = candidates.iter().map(|c| c.variant.name.as_str()).collect();
        names.join(", ")
    };
    if candidates.is_empty() {
        return Err(
            "No CPU variant of the engine runs on this processor: reinstall Twospeed.".into(),
        );
    }
    match wanted {
        Some(wanted) => candidates
            .iter()
            .find(|candidate| candidate.variant.name == wanted)
            .ok_or_else(|| {
                format!("There is no CPU variant {wanted} for this processor: choose one of {}.", names())
            }),
        None => candidates
            .iter()
            .find(|candidate| !set_aside.contains(&candidate.variant.name))
            .ok_or_else(|| {
                format!("Every CPU variant for this processor is set aside ({}): name one with --variant.", names())
            }),
    }
}

/// `icelake` of `libggml-cpu-icelake.so`; `static` of `libggml-cpu.so`, where there is only one.
fn variant_name(file: &str) -> Option<&str> {
    let stem = file
        .strip_suffix(".so")
        .or_else(|| file.strip_suffix(".dll"))
        .or_else(|| file.strip_suffix(".dylib"))?;
    let rest = stem
        .strip_prefix("lib")
        .unwrap_or(stem)
        .strip_prefix("ggml-cpu")?;
    match rest {
        "" => Some("static"),
        rest => rest.strip_prefix('-'),
    }
}

/// What the library says of itself; 1 where it says nothing (it was built for this machine alone).
fn score(path: &Path) -> Option<i32> {
    // SAFETY: loading runs the library's initializers. It is one of the engine's own, found in the
    // engine's own folder, and llama.cpp's loader does the same with each of them.
    let library = unsafe { Library::new(path) }.ok()?;
    // SAFETY: ggml's backends declare `int ggml_backend_score(void)`.
    let score = unsafe { library.get::<unsafe extern "C" fn() -> i32>(b"ggml_backend_score\0") };
    match score {
        // SAFETY: as declared; it only asks the processor.
        Ok(score) => Some(unsafe { score() }),
        Err(_) => Some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(name: &str, score: i32) -> Candidate {
        Candidate {
            variant: Variant {
                name: name.into(),
                score,
            },
            path: PathBuf::from(name),
        }
    }

    #[test]
    fn the_best_that_is_not_set_aside_is_chosen() {
        let all = [
            candidate("sapphirerapids", 4),
            candidate("zen4", 3),
            candidate("x64", 1),
        ];
        let name = |wanted, aside: &[&str]| {
            let aside: Vec<String> = aside.iter().map(|name| (*name).to_owned()).collect();
            choose(&all, wanted, &aside).map(|c| c.variant.name.clone())
        };
        assert_eq!(name(None, &[]).unwrap(), "sapphirerapids");
        assert_eq!(name(None, &["sapphirerapids"]).unwrap(), "zen4");
        assert_eq!(name(Some("x64"), &[]).unwrap(), "x64");
        // Who names a variant means it, also one that died before.
        assert_eq!(name(Some("zen4"), &["zen4"]).unwrap(), "zen4");
        assert!(
            name(Some("m68k"), &[])
                .unwrap_err()
                .contains("sapphirerapids, zen4, x64")
        );
        assert!(
            name(None, &["sapphirerapids", "zen4", "x64"])
                .unwrap_err()
                .contains("--variant")
        );
    }

    #[test]
    fn a_variant_is_named_after_its_library() {
        assert_eq!(variant_name("libggml-cpu-icelake.so"), Some("icelake"));
        assert_eq!(variant_name("ggml-cpu-zen4.dll"), Some("zen4"));
        assert_eq!(variant_name("libggml-cpu-apple_m1.so"), Some("apple_m1"));
        assert_eq!(variant_name("libggml-cpu.so"), Some("static"));
        assert_eq!(variant_name("libggml-base.so.0"), None);
        assert_eq!(variant_name("libggml-vulkan.so"), None);
    }
}
