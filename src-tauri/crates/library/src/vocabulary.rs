//! A tokenizer made from rules: any text goes in and comes back, and what a model with random
//! weights writes can at least be read aloud.
//!
//! The pieces are what speech is made of, an onset, a vowel and a coda, so that a random choice
//! among them looks like words. The form is SentencePiece's as llama.cpp reads it
//! (`tokenizer.ggml.model = "llama"`): merging goes by score, a text that no piece covers falls
//! back to the 256 byte tokens.

use std::collections::HashSet;

/// Types of tokens as GGUF counts them (`tokenizer.ggml.token_type`).
mod kind {
    pub const NORMAL: i32 = 1;
    pub const UNKNOWN: i32 = 2;
    pub const CONTROL: i32 = 3;
    pub const BYTE: i32 = 6;
}

/// The three lists of a tokenizer, token by token.
#[derive(Debug, Clone, PartialEq)]
pub struct Vocabulary {
    /// Text of each token; a space is `▁`.
    pub pieces: Vec<String>,
    /// The higher, the earlier two neighbours are merged into this piece.
    pub scores: Vec<f32>,
    /// `tokenizer.ggml.token_type`.
    pub kinds: Vec<i32>,
}

/// Stands for what cannot be tokenized; with byte tokens nothing is.
pub const UNKNOWN: u32 = 0;
/// Marks the beginning of a text.
pub const BEGIN: u32 = 1;
/// Marks its end.
pub const END: u32 = 2;
/// Tokens before the first that is text: unknown, begin, end and the 256 bytes.
pub const SPECIAL: usize = 3 + 256;

const ONSETS: [&str; 32] = [
    "t", "s", "n", "r", "l", "d", "h", "c", "m", "f", "p", "g", "w", "b", "th", "st", "v", "y",
    "k", "sh", "ch", "pr", "tr", "pl", "gr", "br", "cl", "fr", "qu", "sp", "j", "z",
];
const VOWELS: [&str; 10] = ["e", "a", "i", "o", "u", "ea", "ou", "ee", "io", "ai"];
const CODAS: [&str; 14] = [
    "", "n", "r", "s", "t", "l", "d", "m", "ng", "st", "nt", "nd", "ll", "ck",
];
/// Single characters beyond ASCII that texts in the languages around us need.
const LETTERS: &str = "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿ\
                       ąćęłńśźżĄĆĘŁŃŚŹŻčďěňřšťůžČĎĚŇŘŠŤŮŽăâîșțğışİőűĂȘȚĞŞŐŰ\
                       ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρςστυφχψωάέήίόύώ\
                       АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюяЁёІіЇїЄє\
                       “”‘’„«»–—…•·°€£§©®×÷±²³µ¿¡←→↑↓≈≠≤≥";

impl Vocabulary {
    /// A vocabulary of `size` tokens.
    ///
    /// # Panics
    /// Where `size` is below [`SPECIAL`] or beyond what the rules make (some 70,000).
    pub fn of_syllables(size: usize) -> Self {
        let mut vocabulary = Self {
            pieces: Vec::with_capacity(size),
            scores: Vec::with_capacity(size),
            kinds: Vec::with_capacity(size),
        };
        vocabulary.push("<unk>".into(), 0.0, kind::UNKNOWN);
        vocabulary.push("<s>".into(), 0.0, kind::CONTROL);
        vocabulary.push("</s>".into(), 0.0, kind::CONTROL);
        for byte in 0..=u8::MAX {
            vocabulary.push(format!("<0x{byte:02X}>"), 0.0, kind::BYTE);
        }
        let mut known: HashSet<String> = vocabulary.pieces.iter().cloned().collect();
        let mut score = 0.0;
        for piece in pieces() {
            if vocabulary.pieces.len() == size {
                break;
            }
            if known.insert(piece.clone()) {
                vocabulary.push(piece, score, kind::NORMAL);
                score -= 1.0;
            }
        }
        assert_eq!(
            vocabulary.pieces.len(),
            size,
            "BUG: the rules do not make a vocabulary of this size"
        );
        vocabulary
    }

    fn push(&mut self, piece: String, score: f32, kind: i32) {
        self.pieces.push(piece);
        self.scores.push(score);
        self.kinds.push(kind);
    }
}

/// Every piece that the rules make, most useful first.
///
/// Each of more than one letter is two others in a row, since merging only ever joins two.
fn pieces() -> impl Iterator<Item = String> {
    let characters = std::iter::once('▁')
        .chain('!'..='~')
        .chain(LETTERS.chars())
        .map(String::from);
    let pairs = letters()
        .flat_map(|a| letters().map(move |b| format!("{a}{b}")))
        .chain(letters().map(|a| format!("▁{a}")))
        .chain(letters().map(|a| format!("▁{}", a.to_ascii_uppercase())))
        .chain(
            letters()
                .flat_map(|a| letters().map(move |b| format!("{}{b}", a.to_ascii_uppercase()))),
        );
    characters
        .chain(pairs)
        .chain(syllables())
        .chain(syllables().map(|s| format!("▁{s}")))
        .chain(syllables().map(|s| format!("▁{}", capital(&s))))
        .chain(syllables().map(|s| capital(&s)))
        .chain(words())
}

fn letters() -> impl Iterator<Item = char> + Clone {
    'a'..='z'
}

/// Onset, vowel and coda, each list in order of use: the short and common ones come first.
fn syllables() -> impl Iterator<Item = String> {
    CODAS.iter().flat_map(|coda| {
        VOWELS.iter().flat_map(move |vowel| {
            std::iter::once("")
                .chain(ONSETS)
                .map(move |onset| format!("{onset}{vowel}{coda}"))
        })
    })
}

/// Words of two syllables, the first without a coda.
fn words() -> impl Iterator<Item = String> {
    syllables().flat_map(|second| {
        ONSETS.iter().flat_map(move |onset| {
            let second = second.clone();
            VOWELS[..5]
                .iter()
                .map(move |vowel| format!("▁{onset}{vowel}{second}"))
        })
    })
}

fn capital(syllable: &str) -> String {
    let (first, rest) = syllable.split_at(1);
    first.to_ascii_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// SentencePiece's merging as llama.cpp does it, slow and plain: of all neighbours that make
    /// a piece the highest score is joined, the leftmost first, until none is left.
    struct Tokenizer {
        vocabulary: Vocabulary,
        ids: HashMap<String, usize>,
    }

    impl Tokenizer {
        fn new() -> Self {
            let vocabulary = Vocabulary::of_syllables(32_000);
            let ids = vocabulary.pieces.iter().cloned().zip(0..).collect();
            Self { vocabulary, ids }
        }

        fn tokens(&self, text: &str) -> Vec<usize> {
            let mut symbols: Vec<String> = format!(" {text}")
                .chars()
                .map(|c| if c == ' ' { '▁' } else { c }.to_string())
                .collect();
            loop {
                let best = symbols
                    .windows(2)
                    .enumerate()
                    .filter_map(|(at, pair)| {
                        let id = self.ids.get(&pair.concat())?;
                        Some((at, self.vocabulary.scores[*id]))
                    })
                    .reduce(|best, next| if next.1 > best.1 { next } else { best });
                let Some((at, _)) = best else { break };
                let right = symbols.remove(at + 1);
                symbols[at].push_str(&right);
            }
            symbols
                .iter()
                .flat_map(|symbol| match self.ids.get(symbol) {
                    Some(id) => vec![*id],
                    None => symbol.bytes().map(|b| usize::from(b) + 3).collect(),
                })
                .collect()
        }

        fn text(&self, tokens: &[usize]) -> String {
            let mut bytes = Vec::new();
            for id in tokens {
                match self.vocabulary.kinds[*id] {
                    kind::BYTE => bytes.push(u8::try_from(id - 3).unwrap()),
                    _ => bytes.extend(self.vocabulary.pieces[*id].replace('▁', " ").bytes()),
                }
            }
            String::from_utf8(bytes).unwrap()[1..].to_owned()
        }
    }

    #[test]
    fn every_token_is_there_once() {
        let vocabulary = Vocabulary::of_syllables(32_000);
        let once: HashSet<&String> = vocabulary.pieces.iter().collect();
        assert_eq!(once.len(), 32_000);
        assert_eq!(vocabulary.scores.len(), 32_000);
        assert_eq!(vocabulary.kinds.len(), 32_000);
        let bytes = vocabulary
            .kinds
            .iter()
            .filter(|k| **k == kind::BYTE)
            .count();
        assert_eq!(bytes, 256);
        assert_eq!(vocabulary.pieces[3 + 0x0a], "<0x0A>");
    }

    #[test]
    fn any_text_goes_in_and_comes_back() {
        let tokenizer = Tokenizer::new();
        for text in [
            "The quick brown fox jumps over the lazy dog.",
            "fn main() {\n\tprintln!(\"{}\", 1_000);\n}",
            "Größe: 1,5 m² — naïve café; Ελληνικά; Привет",
            "模型 🦙 \u{1f469}\u{200d}\u{1f4bb} \0\u{7f}",
            "  two  spaces  ",
            "",
        ] {
            let tokens = tokenizer.tokens(text);
            assert_eq!(tokenizer.text(&tokens), text);
        }
    }

    #[test]
    fn plain_english_takes_far_fewer_tokens_than_letters() {
        let text = "Prefill reads the whole prompt at once and is bound by arithmetic; decode \
                    writes one token after another and is bound by how fast memory can be read.";
        let tokens = Tokenizer::new().tokens(text).len();
        assert!(
            tokens * 2 < text.len(),
            "{tokens} tokens for {} letters",
            text.len()
        );
    }

    #[test]
    fn every_piece_can_be_reached_by_joining_two_others() {
        let vocabulary = Vocabulary::of_syllables(32_000);
        let known: HashSet<&str> = vocabulary.pieces.iter().map(String::as_str).collect();
        for piece in vocabulary.pieces.iter().skip(SPECIAL) {
            let mut cuts = piece
                .char_indices()
                .skip(1)
                .map(|(at, _)| piece.split_at(at));
            assert!(
                piece.chars().count() == 1
                    || cuts.any(|(a, b)| known.contains(a) && known.contains(b)),
                "{piece} is out of reach"
            );
        }
    }
}
