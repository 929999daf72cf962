//! The files of a model: one, or all parts of a split set.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use twospeed_engine::protocol::FailureCode;

use crate::failure::Stopped;

/// `-00002-of-00005.gguf` at the end of a file's name.
const SUFFIX: usize = "-00002-of-00005.gguf".len();

/// Files of a model in order, the first part first; a single file is a set of one.
pub fn parts(path: &Path) -> Vec<PathBuf> {
    let whole = || vec![path.to_path_buf()];
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return whole();
    };
    let Some((stem, suffix)) = name
        .len()
        .checked_sub(SUFFIX)
        .and_then(|at| name.split_at_checked(at))
    else {
        return whole();
    };
    let Some(parts) = parts_of(suffix) else {
        return whole();
    };
    (1..=parts)
        .map(|part| path.with_file_name(format!("{stem}-{part:05}-of-{parts:05}.gguf")))
        .collect()
}

fn parts_of(suffix: &str) -> Option<u32> {
    let (part, parts) = suffix
        .strip_prefix('-')?
        .strip_suffix(".gguf")?
        .split_once("-of-")?;
    let number = |digits: &str| {
        let whole = digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if whole {
            digits.parse::<u32>().ok()
        } else {
            None
        }
    };
    let (part, parts) = (number(part)?, number(parts)?);
    (part >= 1 && part <= parts).then_some(parts)
}

/// Says in one sentence why a file cannot be a model before the engine is asked.
pub fn check(files: &[PathBuf]) -> Result<(), Stopped> {
    for path in files {
        let name = path.display();
        let unreadable = |message: String| Stopped::because(FailureCode::FileUnreadable, message);
        let meta = fs::metadata(path).map_err(|error| {
            unreadable(match error.kind() {
                ErrorKind::NotFound if files.len() > 1 => {
                    format!(
                        "{name} is missing: a split model needs all of its {} parts in one folder.",
                        files.len()
                    )
                }
                ErrorKind::NotFound => format!("{name} does not exist: check the path."),
                _ => format!("{name} cannot be read: {error}."),
            })
        })?;
        if meta.is_dir() {
            return Err(unreadable(format!(
                "{name} is a folder: name a .gguf file in it."
            )));
        }
        if !meta.is_file() {
            return Err(unreadable(format!(
                "{name} is no regular file: name a .gguf file."
            )));
        }
        if meta.len() == 0 {
            return Err(unreadable(format!("{name} is empty: fetch it again.")));
        }
        File::open(path).map_err(|error| unreadable(format!("{name} cannot be read: {error}.")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_leads_to_the_whole_set_in_order() {
        let names = |path: &str| -> Vec<String> {
            let parts = parts(Path::new(path));
            parts
                .iter()
                .map(|part| part.to_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(
            names("/m/q-00002-of-00003.gguf"),
            [
                "/m/q-00001-of-00003.gguf",
                "/m/q-00002-of-00003.gguf",
                "/m/q-00003-of-00003.gguf",
            ]
        );
        assert_eq!(names("/m/q.gguf"), ["/m/q.gguf"]);
        // The folder's name is no part of the pattern, and a part beyond the last is none.
        assert_eq!(
            names("/m-00001-of-00013/q.gguf"),
            ["/m-00001-of-00013/q.gguf"]
        );
        assert_eq!(
            names("/m/q-00004-of-00003.gguf"),
            ["/m/q-00004-of-00003.gguf"]
        );
        assert_eq!(
            names("/m/q-0001-of-00003.gguf"),
            ["/m/q-0001-of-00003.gguf"]
        );
    }

    #[test]
    fn what_is_no_model_file_is_named_with_its_fault() {
        let folder = std::env::temp_dir().join(format!("twospeed-files-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let empty = folder.join("empty.gguf");
        fs::write(&empty, "").unwrap();
        let missing = folder.join("missing.gguf");
        let message = |path: &Path| match check(&[path.to_path_buf()]) {
            Err(Stopped::Failed(failure)) => {
                assert_eq!(failure.code, FailureCode::FileUnreadable);
                failure.message
            }
            other => panic!("{other:?}"),
        };
        let messages = [message(&folder), message(&empty), message(&missing)];
        fs::remove_dir_all(&folder).unwrap();
        assert!(messages[0].contains("is a folder"), "{}", messages[0]);
        assert!(messages[1].contains("is empty"), "{}", messages[1]);
        assert!(messages[2].contains("does not exist"), "{}", messages[2]);
    }
}
