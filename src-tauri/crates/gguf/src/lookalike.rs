//! What a file is that is no GGUF.

use std::fmt;

use crate::text::quoted;

/// What the first bytes of a file look like when they are not GGUF's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookalike {
    /// HTML.
    WebPage,
    /// A pointer of Git large file storage.
    LfsPointer,
    /// JSON: a server's error message, or an index.
    Json,
    /// Safetensors.
    Safetensors,
    /// Zip: PyTorch checkpoints are such.
    Zip,
    /// A Python pickle: older PyTorch checkpoints.
    Pickle,
    /// gzip, zstd, xz, bzip2, 7z, rar, tar.
    Archive(&'static str),
    /// GGML's formats before GGUF.
    OldGgml,
    /// Zeros: room that a download reserved.
    Zeros,
    /// None of these.
    Unknown {
        /// The first four bytes, for the sentence.
        starts: String,
    },
}

impl Lookalike {
    /// Bytes that [`Lookalike::of`] wants to see.
    pub(crate) const WINDOW: usize = 512;

    /// Guesses from a file's first bytes.
    pub(crate) fn of(start: &[u8]) -> Lookalike {
        let trimmed = start
            .strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(start)
            .trim_ascii_start();
        let begins = |word: &[u8]| {
            trimmed
                .get(..word.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(word))
        };
        let text = |word: &str| {
            start
                .windows(word.len())
                .any(|window| window == word.as_bytes())
        };

        if [&b"<!doctype"[..], b"<html", b"<head", b"<body", b"<?xml"]
            .iter()
            .any(|word| begins(word))
        {
            return Lookalike::WebPage;
        }
        if begins(b"version https://git-lfs") || (begins(b"version http") && text("oid sha256:")) {
            return Lookalike::LfsPointer;
        }
        match start {
            [_, _, _, _, _, 0, 0, 0, b'{', ..] => Lookalike::Safetensors,
            [b'P', b'K', 3..=8, 4..=9, ..] => Lookalike::Zip,
            [0x80, 2..=5, ..] => Lookalike::Pickle,
            [0x1f, 0x8b, ..] => Lookalike::Archive("gzip"),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Lookalike::Archive("zstd"),
            [0xfd, b'7', b'z', b'X', b'Z', ..] => Lookalike::Archive("xz"),
            [b'B', b'Z', b'h', ..] => Lookalike::Archive("bzip2"),
            [b'7', b'z', 0xbc, 0xaf, ..] => Lookalike::Archive("7z"),
            [b'R', b'a', b'r', b'!', ..] => Lookalike::Archive("rar"),
            _ if start.get(257..262) == Some(b"ustar") => Lookalike::Archive("tar"),
            // The old magics are numbers: read as text they stand backwards.
            [b'l' | b'f', b'm', b'g', b'g', ..]
            | [b't', b'j', b'g', b'g', ..]
            | [b'a', b'l', b'g', b'g', ..] => Lookalike::OldGgml,
            _ if begins(b"{") || begins(b"[") => Lookalike::Json,
            _ if start.iter().all(|byte| *byte == 0) => Lookalike::Zeros,
            _ => Lookalike::Unknown {
                starts: quoted(start.get(..4).unwrap_or(start)),
            },
        }
    }

    /// What to do about it; follows a semicolon.
    pub(crate) fn advice(&self) -> &'static str {
        match self {
            Lookalike::WebPage => {
                "download the file itself, not the page that shows it (the link with \"resolve\", not \"blob\")"
            }
            Lookalike::LfsPointer => "fetch the real file with `git lfs pull`, or download it",
            Lookalike::Json => "read it in a text editor: it may say why the download was refused",
            Lookalike::Safetensors | Lookalike::Zip | Lookalike::Pickle => {
                "get the GGUF file of this model, or convert it with llama.cpp's convert_hf_to_gguf.py"
            }
            Lookalike::Archive(_) => "unpack it and name the .gguf file inside",
            Lookalike::OldGgml => "get a current GGUF file of this model",
            Lookalike::Zeros => {
                "the download reserved the room and never filled it, so download it again"
            }
            Lookalike::Unknown { .. } => "name a .gguf file, or download it again",
        }
    }
}

impl fmt::Display for Lookalike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lookalike::WebPage => f.write_str("a web page saved under this name"),
            Lookalike::LfsPointer => f.write_str("a Git LFS pointer that stands for the real file"),
            Lookalike::Json => f.write_str("a JSON text (an index, or a server's error message)"),
            Lookalike::Safetensors => f.write_str("a safetensors file"),
            Lookalike::Zip => f.write_str("a zip archive (perhaps a PyTorch checkpoint)"),
            Lookalike::Pickle => f.write_str("a Python pickle (an older PyTorch checkpoint)"),
            Lookalike::Archive(format) => write!(f, "a {format} archive"),
            Lookalike::OldGgml => f.write_str("a GGML file from before GGUF"),
            Lookalike::Zeros => f.write_str("filled with zeros"),
            Lookalike::Unknown { starts } => {
                write!(f, "of an unknown format (it starts with {starts})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_formats_are_called_by_their_name() {
        let tar = [vec![b'a'; 257], b"ustar\0".to_vec()].concat();
        let cases: &[(&[u8], &str)] = &[
            (b"\n  <!DOCTYPE HTML><title>Model</title>", "a web page"),
            (b"\xef\xbb\xbf<html lang=en>", "a web page"),
            (
                b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 9\n",
                "a Git LFS pointer",
            ),
            (
                b"\x40\x02\0\0\0\0\0\0{\"__metadata__\"",
                "a safetensors file",
            ),
            (b"PK\x03\x04\0\0\x08\x08", "a zip archive"),
            (b"\x80\x02\x8a\x0al\xfc", "a Python pickle"),
            (b"\x1f\x8b\x08\0", "a gzip archive"),
            (&tar, "a tar archive"),
            (b"tjgg\x03\0\0\0", "a GGML file from before GGUF"),
            (b"lmgg\0\0\0\0", "a GGML file from before GGUF"),
            (b"{\"error\":\"Repository not found\"}", "a JSON text"),
            (&[0; 64], "filled with zeros"),
            (
                b"FUGG\x03\0\0\0",
                "of an unknown format (it starts with \"FUGG\")",
            ),
            (
                b"\x1b[",
                "of an unknown format (it starts with \"\u{fffd}[\")",
            ),
        ];
        for (bytes, words) in cases {
            let what = Lookalike::of(bytes).to_string();
            assert!(what.starts_with(words), "{words}: {what}");
        }
    }
}
