//! The tokens of a model.

use std::ffi::CStr;

use llama_cpp_sys_2 as sys;

use crate::model::Model;

/// The vocabulary of a model.
#[derive(Debug, Clone, Copy)]
pub struct Vocabulary<'a> {
    raw: *const sys::llama_vocab,
    _model: &'a Model,
}

impl<'a> Vocabulary<'a> {
    /// The vocabulary of this model.
    pub fn of(model: &'a Model) -> Self {
        Self {
            // SAFETY: a live model.
            raw: unsafe { sys::llama_model_get_vocab(model.raw()) },
            _model: model,
        }
    }

    /// Entries.
    pub fn len(self) -> u32 {
        // SAFETY: the vocabulary of a live model, here and below.
        unsafe { sys::llama_vocab_n_tokens(self.raw) }.unsigned_abs()
    }

    /// Whether text can be turned into tokens at all.
    pub fn has_tokenizer(self) -> bool {
        // SAFETY: as above.
        unsafe { sys::llama_vocab_type(self.raw) != sys::LLAMA_VOCAB_TYPE_NONE }
    }

    /// The token every text of this model begins with, where it has one.
    pub fn first_token(self) -> Option<sys::llama_token> {
        // SAFETY: as above.
        let (adds, token) = unsafe {
            (
                sys::llama_vocab_get_add_bos(self.raw),
                sys::llama_vocab_bos(self.raw),
            )
        };
        (adds && token >= 0).then_some(token)
    }

    /// Whether the token ends an answer.
    pub fn ends(self, token: sys::llama_token) -> bool {
        // SAFETY: as above.
        unsafe { sys::llama_vocab_is_eog(self.raw, token) }
    }

    /// The text of an entry; it need not be UTF-8.
    pub fn entry(self, token: sys::llama_token) -> Option<&'a CStr> {
        // SAFETY: as above, of a vocabulary that is one; the engine throws at a number that is no
        // entry. The C string lives as long as the model.
        unsafe {
            let known =
                self.has_tokenizer() && u32::try_from(token).is_ok_and(|token| token < self.len());
            let text = known.then(|| sys::llama_vocab_get_text(self.raw, token))?;
            (!text.is_null()).then(|| CStr::from_ptr(text))
        }
    }

    /// Tokens of a text, with what the model wants around it; `None` when there are too many. The
    /// names of special tokens stand for them.
    pub fn tokenize(self, text: &str) -> Option<Vec<sys::llama_token>> {
        self.tokenize_with(text, true)
    }

    /// The same, but the names of special tokens are text like any other.
    pub fn tokenize_plain(self, text: &str) -> Option<Vec<sys::llama_token>> {
        self.tokenize_with(text, false)
    }

    fn tokenize_with(self, text: &str, special: bool) -> Option<Vec<sys::llama_token>> {
        let length = i32::try_from(text.len()).ok()?;
        // A token is at least a byte, and a few may be added.
        let mut tokens = vec![0; text.len() + 8];
        for _ in 0..2 {
            let room = i32::try_from(tokens.len()).ok()?;
            // SAFETY: the text and the buffer are given with their own sizes.
            let count = unsafe {
                sys::llama_tokenize(
                    self.raw,
                    text.as_ptr().cast(),
                    length,
                    tokens.as_mut_ptr(),
                    room,
                    true,
                    special,
                )
            };
            if count == i32::MIN {
                return None;
            }
            tokens.resize(count.unsigned_abs() as usize, 0);
            if count >= 0 {
                return Some(tokens);
            }
        }
        None
    }

    /// Bytes a token stands for; they need not be whole characters.
    pub fn bytes(self, token: sys::llama_token) -> Vec<u8> {
        let mut bytes = vec![0_u8; 32];
        for _ in 0..2 {
            let room = bytes.len() as i32;
            // SAFETY: the buffer is given with its own size.
            let length = unsafe {
                sys::llama_token_to_piece(
                    self.raw,
                    token,
                    bytes.as_mut_ptr().cast(),
                    room,
                    0,
                    false,
                )
            };
            bytes.resize(length.unsigned_abs() as usize, 0);
            if length >= 0 {
                return bytes;
            }
        }
        Vec::new()
    }
}
