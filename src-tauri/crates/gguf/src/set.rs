//! The names of split sets: `model-00001-of-00003.gguf`.

use std::path::{Path, PathBuf};

use crate::os;

/// The most parts of a set. The largest models, split small, have some hundred.
pub(crate) const MAX_PARTS: u32 = 4096;

/// Bytes after the stem: `-00001-of-00003.gguf`.
const SUFFIX: usize = 20;

/// A file name that follows the pattern of llama.cpp's `llama_split_path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetName {
    folder: PathBuf,
    /// As bytes: names need not be Unicode.
    stem: Vec<u8>,
    /// This part, from 1.
    pub part: u32,
    /// Parts of the set.
    pub parts: u32,
}

impl SetName {
    /// Reads the pattern off a path's file name; folders that look like it mean nothing.
    #[must_use]
    pub fn of(path: &Path) -> Option<SetName> {
        let name = path.file_name()?.as_encoded_bytes();
        let (stem, suffix) = name.split_at_checked(name.len().checked_sub(SUFFIX)?)?;
        let suffix = std::str::from_utf8(suffix).ok()?;
        let (part, parts) = suffix
            .strip_prefix('-')?
            .strip_suffix(".gguf")?
            .split_once("-of-")?;
        let number = |digits: &str| match digits.len() {
            5 if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse::<u32>().ok(),
            _ => None,
        };
        let (part, parts) = (number(part)?, number(parts)?);
        if stem.is_empty() || part == 0 || part > parts || parts > MAX_PARTS {
            return None;
        }
        Some(SetName {
            folder: path.parent()?.to_owned(),
            stem: stem.to_owned(),
            part,
            parts,
        })
    }

    /// What the names of the set's parts have in common.
    #[must_use]
    pub fn stem(&self) -> String {
        String::from_utf8_lossy(&self.stem).into_owned()
    }

    /// The path of part `part`, from 1.
    #[must_use]
    pub fn path(&self, part: u32) -> PathBuf {
        let mut name = self.stem.clone();
        name.extend_from_slice(format!("-{part:05}-of-{:05}.gguf", self.parts).as_bytes());
        self.folder.join(os::file_name(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_knows_the_path_of_every_other() {
        let set = SetName::of(Path::new("/models/big-00002-of-00003.gguf")).unwrap();
        assert_eq!((set.part, set.parts, set.stem().as_str()), (2, 3, "big"));
        assert_eq!(set.path(1), Path::new("/models/big-00001-of-00003.gguf"));
    }

    #[test]
    fn only_the_exact_pattern_in_the_file_name_counts() {
        for name in [
            "big.gguf",
            "big-00001-of-00003.bin",
            "big-1-of-3.gguf",
            "big-00004-of-00003.gguf",
            "big-00000-of-00003.gguf",
            "big-+0001-of-00003.gguf",
            "big-00001-of-99999.gguf",
            "-00001-of-00003.gguf",
            "x-00001-of-00013/plain.gguf",
            "x-00001-of-00013.gguf/plain.gguf",
            "é-0001-of-00003.gguf",
            "..",
        ] {
            assert_eq!(SetName::of(Path::new(name)), None, "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_no_unicode_keeps_its_bytes() {
        let path = Path::new("/m").join(os::file_name(b"caf\xe9-00002-of-00002.gguf".to_vec()));
        let set = SetName::of(&path).unwrap();
        assert_eq!(set.path(2), path);
    }
}
