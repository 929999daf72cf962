//! Text from tokens: a character may be spread over several of them.

/// Bytes that complete no character yet.
#[derive(Debug, Default)]
pub struct Pieces {
    open: Vec<u8>,
}

impl Pieces {
    /// Takes the bytes of a token and returns the text that is complete now. Bytes that can belong
    /// to no character become U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.open.extend_from_slice(bytes);
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.open) {
                Ok(rest) => {
                    text.push_str(rest);
                    self.open.clear();
                    return text;
                }
                Err(error) => {
                    let valid = error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&self.open[..valid]));
                    let Some(wrong) = error.error_len() else {
                        // A character that only lacks its end.
                        self.open.drain(..valid);
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.open.drain(..valid + wrong);
                }
            }
        }
    }

    /// What is left when no more comes.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.open)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_in_three_tokens_comes_once_it_is_whole() {
        let mut pieces = Pieces::default();
        let euro = "€".as_bytes();
        assert_eq!(pieces.push(&[b'a', euro[0]]), "a");
        assert_eq!(pieces.push(&euro[1..2]), "");
        assert_eq!(pieces.push(&[euro[2], b'b']), "€b");
        assert_eq!(pieces.finish(), "");
    }

    #[test]
    fn bytes_of_no_character_are_replaced_and_the_rest_goes_on() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.push(b"x\xff\xc3(y"), "x\u{fffd}\u{fffd}(y");
    }

    #[test]
    fn a_character_cut_off_at_the_end_is_shown_as_broken() {
        let mut pieces = Pieces::default();
        assert_eq!(pieces.push(&"€".as_bytes()[..2]), "");
        assert_eq!(pieces.finish(), "\u{fffd}");
    }
}
