//! A text as the pieces that are judged, cut as llama-perplexity cuts it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::FailureCode;

use crate::failure::Stopped;
use crate::vocabulary::Vocabulary;

/// Longest text that is read, in bytes: tokenizing cannot be stopped, and takes a second for each
/// one to five million of them.
const MOST_BYTES: u64 = 16 << 20;

/// Chunks of one length, one after the other; what is left at the end of the text is no chunk.
#[derive(Debug, Clone)]
pub struct Chunks {
    tokens: Vec<sys::llama_token>,
    n_ctx: usize,
}

impl Chunks {
    /// The first `wanted` chunks of `n_ctx` tokens (0 = all there are). Each begins with the token
    /// that begins every text, where the model has one, in the place of its first.
    pub fn new(
        vocabulary: Vocabulary<'_>,
        text: &str,
        n_ctx: u32,
        wanted: u32,
    ) -> Result<Self, Stopped> {
        let n_ctx = n_ctx as usize;
        // llama-perplexity takes a text file without the line end that closes it.
        let text = text.strip_suffix('\n').unwrap_or(text);
        let mut tokens = vocabulary.tokenize_plain(text).unwrap_or_default();
        if tokens.len() < 2 * n_ctx {
            return Err(Stopped::bad_setting(format!(
                "The text has {} tokens and chunks of {n_ctx} need at least {}: give a longer text or shorter chunks.",
                tokens.len(),
                2 * n_ctx
            )));
        }
        let there_are = tokens.len() / n_ctx;
        let count = match wanted as usize {
            0 => there_are,
            wanted => wanted.min(there_are),
        };
        tokens.truncate(count * n_ctx);
        if let Some(first) = vocabulary.first_token() {
            tokens
                .iter_mut()
                .step_by(n_ctx)
                .for_each(|token| *token = first);
        }
        Ok(Self { tokens, n_ctx })
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        (self.tokens.len() / self.n_ctx) as u32
    }

    /// Each with its tokens.
    pub fn iter(&self) -> impl Iterator<Item = &[sys::llama_token]> {
        self.tokens.chunks_exact(self.n_ctx)
    }
}

/// Whether the prediction made at this place of a chunk is judged: from its middle on, so that there
/// is something to predict from; the last one would be of the next chunk's first token.
pub fn is_scored(place: usize, n_ctx: usize) -> bool {
    (n_ctx / 2..n_ctx - 1).contains(&place)
}

/// A person's text.
pub fn read(path: &Path) -> Result<String, Stopped> {
    let name = path.display();
    let unreadable = |message: String| Stopped::because(FailureCode::FileUnreadable, message);
    let failed = |error| unreadable(format!("{name} cannot be read: {error}."));
    let kind = std::fs::metadata(path).map_err(failed)?;
    if !kind.is_file() {
        return Err(unreadable(format!(
            "{name} is no regular file: name a text file."
        )));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(unreadable(format!(
            "{name} is longer than {} MiB: give a shorter text.",
            MOST_BYTES >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        unreadable(format!(
            "{name} is no UTF-8 text (its byte {} is not): save it as UTF-8 or name another file.",
            error.utf8_error().valid_up_to() + 1
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_half_is_scored_but_for_its_last_token() {
        let scored = |n_ctx| (0..n_ctx).filter(|place| is_scored(*place, n_ctx)).count();
        assert_eq!([512, 511, 8].map(scored), [255, 255, 3]);
        assert!(!is_scored(255, 512) && is_scored(256, 512));
        assert!(is_scored(510, 512) && !is_scored(511, 512));
    }

    #[test]
    fn a_text_that_cannot_be_read_is_named_with_its_fault() {
        let folder = std::env::temp_dir().join(format!("twospeed-text-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let latin = folder.join("latin.txt");
        std::fs::write(&latin, b"caf\xe9").unwrap();
        let long = folder.join("long.txt");
        File::create(&long)
            .unwrap()
            .set_len(MOST_BYTES + 1)
            .unwrap();
        let good = folder.join("good.txt");
        std::fs::write(&good, "café\n").unwrap();
        let message = |path: &Path| match read(path) {
            Err(Stopped::Failed(failure)) => {
                assert_eq!(failure.code, FailureCode::FileUnreadable);
                failure.message
            }
            other => panic!("{other:?}"),
        };
        let messages = [
            message(&latin),
            message(&long),
            message(&folder),
            message(&folder.join("missing.txt")),
        ];
        let text = read(&good);
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(text, Ok("café\n".to_owned()));
        let faults = [
            "its byte 4",
            "longer than 16 MiB",
            "no regular file",
            "cannot be read",
        ];
        for (message, fault) in messages.iter().zip(faults) {
            assert!(message.contains(fault), "{message}");
        }
    }
}
