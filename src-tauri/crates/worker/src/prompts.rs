//! Prompts of a real text with a given number of tokens.

use llama_cpp_sys_2 as sys;

use crate::vocabulary::Vocabulary;

/// Bytes of a token in most texts, for the first guess at how much text a prompt takes.
const BYTES: usize = 4;

/// No tokenizer makes longer tokens of prose on the average.
const MOST_BYTES: usize = 64;

/// One token in so many may be tokenized beyond the prompt: finding the exact end of a long one takes
/// as long as computing it.
const CLOSE: usize = 256;

/// How far is looked for a token that differs.
const SEARCH: usize = 256;

/// A text whose tokens are a prompt, and other tokens for its tail.
#[derive(Debug, Clone)]
pub struct Prompts {
    text: String,
    n_prompt: usize,
    /// For each tail that was asked for, its length and the tokens.
    tails: Vec<(usize, Vec<sys::llama_token>)>,
}

impl Prompts {
    /// Prompts of `n_prompt` tokens from the beginning of `text`, which is repeated where it is too
    /// short; and for each of `changed` a tail of that many tokens, from what follows in the text,
    /// whose first token differs from the prompt's at that place.
    ///
    /// `None` when this vocabulary makes no such tokens of the text.
    pub fn new(
        vocabulary: Vocabulary<'_>,
        text: &str,
        n_prompt: usize,
        changed: impl IntoIterator<Item = usize>,
    ) -> Option<Self> {
        let mut changed: Vec<usize> = changed.into_iter().filter(|count| *count > 0).collect();
        changed.sort_unstable();
        changed.dedup();
        let prompt = beginning(vocabulary, text, n_prompt)?;
        let mut tails = Vec::new();
        if let Some(longest) = changed.last() {
            let long = beginning(vocabulary, text, n_prompt + longest + SEARCH)?;
            let tokens = vocabulary.tokenize(&prompt)?;
            let others = &vocabulary.tokenize(&long)?[n_prompt..];
            for count in changed {
                let differs = tokens[n_prompt - count];
                let start = others[..SEARCH]
                    .iter()
                    .position(|token| *token != differs)?;
                tails.push((count, others[start..start + count].to_vec()));
            }
        }
        Some(Self {
            text: prompt,
            n_prompt,
            tails,
        })
    }

    /// Turns the text into the tokens of a prompt; the last `changed` are those of the other tail.
    ///
    /// The whole text is tokenized, whatever the tail: so a prompt with another tail takes the time
    /// of a text of its length. The other tokens are put in its place after, since another *text*
    /// there could be cut into tokens in another way before that place too.
    pub fn tokenize(&self, vocabulary: Vocabulary<'_>, changed: usize) -> Vec<sys::llama_token> {
        let mut tokens = vocabulary
            .tokenize(&self.text)
            .expect("BUG: the text was tokenized before");
        tokens.truncate(self.n_prompt);
        if let Some((count, tail)) = self.tails.iter().find(|(count, _)| *count == changed) {
            tokens.truncate(self.n_prompt - count);
            tokens.extend_from_slice(tail);
        }
        tokens
    }
}

/// A beginning of a text, repeated as often as needed, that has `count` tokens or hardly more.
fn beginning(vocabulary: Vocabulary<'_>, text: &str, count: usize) -> Option<String> {
    let mut bytes = count.checked_mul(BYTES)?;
    let (long, mut tokens) = loop {
        let long = repeated(text, bytes)?;
        let tokens = vocabulary.tokenize(&long)?.len();
        if tokens >= count {
            break (long, tokens);
        }
        bytes = bytes
            .checked_mul(2)
            .filter(|bytes| *bytes < count.saturating_mul(MOST_BYTES))?;
    };
    let (mut too_short, mut enough) = (0, long.len());
    while tokens - count > count / CLOSE {
        let middle = long.floor_char_boundary(usize::midpoint(too_short, enough));
        if middle <= too_short {
            break;
        }
        let halved = vocabulary.tokenize(&long[..middle])?.len();
        if halved >= count {
            (enough, tokens) = (middle, halved);
        } else {
            too_short = middle;
        }
    }
    Some(long[..enough].to_owned())
}

/// The text over and over, about `bytes` of it.
fn repeated(text: &str, bytes: usize) -> Option<String> {
    let times = bytes.checked_div(text.len())? + 1;
    let mut long = text.repeat(times);
    long.truncate(long.floor_char_boundary(bytes));
    Some(long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tiny_model;

    /// The tiny models' tokenizer makes a token of 5 bytes, the last one of what is left.
    fn prompts(text: &str, n_prompt: usize, changed: &[usize]) -> Option<Prompts> {
        let model = tiny_model("llama-dense-Q8_0", 1_299_360);
        Prompts::new(model.vocabulary(), text, n_prompt, changed.iter().copied())
    }

    fn tokens(prompts: &Prompts, changed: usize) -> Vec<i32> {
        let model = tiny_model("llama-dense-Q8_0", 1_299_360);
        prompts.tokenize(model.vocabulary(), changed)
    }

    #[test]
    fn a_prompt_is_a_beginning_that_has_its_tokens() {
        // h = 31 h + byte over "abcde" is 92,599,395, and 99 in a vocabulary of 128; over "fgh" it is
        // 101,319, and 71.
        let short = prompts("abcdefghijklmnop", 2, &[]).unwrap();
        assert_eq!(short.text, "abcdefgh");
        assert_eq!(tokens(&short, 0), [99, 71]);
        // Five bytes a token: 4 bytes a token are too few, and twice as many far too many.
        let text: String = (0..2000).map(|number| format!("{number} and ")).collect();
        let long = prompts(&text, 1000, &[]).unwrap();
        assert!(text.starts_with(&long.text));
        assert!(
            (4996..=5015).contains(&long.text.len()),
            "1,000 tokens and 3 more at most: {} bytes",
            long.text.len()
        );
        assert_eq!(tokens(&long, 0).len(), 1000);
    }

    #[test]
    fn a_text_too_short_is_repeated() {
        let prompts = prompts("ab ", 7, &[]).unwrap();
        assert!(prompts.text.starts_with("ab ab ab ab ab ab ab ab ab ab "));
        assert_eq!(tokens(&prompts, 0).len(), 7);
    }

    #[test]
    fn characters_of_several_bytes_stay_whole() {
        let prompts = prompts("€€€€€€€€", 3, &[]).unwrap();
        assert_eq!(
            prompts.text, "€€€€",
            "12 bytes: two tokens and the third begun"
        );
    }

    #[test]
    fn a_changed_tail_differs_from_its_first_token_on() {
        let text: String = (0..400).map(|number| format!("{number} and ")).collect();
        let prompts = prompts(&text, 40, &[0, 12, 40, 1]).unwrap();
        let whole = tokens(&prompts, 0);
        for changed in [1, 12, 40] {
            let other = tokens(&prompts, changed);
            assert_eq!(other.len(), 40);
            assert_eq!(other[..40 - changed], whole[..40 - changed]);
            assert_ne!(other[40 - changed], whole[40 - changed]);
        }
    }

    #[test]
    fn a_text_of_one_token_has_no_other_and_an_empty_one_no_prompt() {
        assert!(prompts("aaaaa", 8, &[]).is_some());
        assert!(prompts("aaaaa", 8, &[3]).is_none());
        assert!(prompts("", 8, &[]).is_none());
    }
}
