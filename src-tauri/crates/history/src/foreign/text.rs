//! Bytes into text.

/// Stands for a byte that was lost.
pub(super) const LOST: char = char::REPLACEMENT_CHARACTER;

/// The text of a file and what is to be said of how it was read.
///
/// PowerShell writes UTF-16, old editors Latin-1. A file that is no valid text keeps what is.
pub(super) fn decode(file: &[u8]) -> (String, Vec<String>) {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units)
            .map(|decoded| decoded.unwrap_or(LOST))
            .collect::<String>()
    };
    let said = |name: &str| vec![format!("The file is {name}.")];
    match file {
        [0xff, 0xfe, rest @ ..] => return (utf16(rest, u16::from_le_bytes), said("UTF-16")),
        [0xfe, 0xff, rest @ ..] => return (utf16(rest, u16::from_be_bytes), said("UTF-16")),
        _ => {}
    }
    match unmarked_utf16(file) {
        Some(Order::Little) => return (utf16(file, u16::from_le_bytes), said("UTF-16")),
        Some(Order::Big) => return (utf16(file, u16::from_be_bytes), said("UTF-16")),
        None => {}
    }
    let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    if let Ok(text) = std::str::from_utf8(file) {
        return (text.to_owned(), Vec::new());
    }
    let text = String::from_utf8_lossy(file);
    if text.chars().all(|c| c.is_ascii() || c == LOST) {
        let text = file.iter().map(|byte| char::from(*byte)).collect();
        return (text, said("not UTF-8 and was read as Latin-1"));
    }
    (
        text.into_owned(),
        said("not UTF-8 throughout; what is not, is lost"),
    )
}

#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

/// Text of these programs is nearly all ASCII, of which UTF-16 makes every other byte zero.
fn unmarked_utf16(file: &[u8]) -> Option<Order> {
    let start = &file[..file.len().min(512)];
    let pairs = start.len() / 2;
    let zeros = |offset: usize| {
        start
            .iter()
            .skip(offset)
            .step_by(2)
            .filter(|b| **b == 0)
            .count()
    };
    if pairs < 8 {
        return None;
    }
    if zeros(1) * 10 > pairs * 8 {
        return Some(Order::Little);
    }
    (zeros(0) * 10 > pairs * 8).then_some(Order::Big)
}

/// Text as llama-bench's JSON meant it: on x86 it writes each byte beyond ASCII as U+FFFF and an f.
/// U+FFFF stands in no text and no XML may hold it.
pub(super) fn without_lost_bytes(text: &str) -> String {
    text.replace("\u{ffff}f", "\u{fffd}")
        .replace('\u{ffff}', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_encoding_gives_the_same_text() {
        let text = "| t/s |\n| 228.70 ± 12.09 |\n";
        let units =
            |bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<_>>();
        let marked = |mark: &[u8], bytes: Vec<u8>| [mark, &bytes].concat();
        let latin: Vec<u8> = text
            .chars()
            .map(|c| u8::try_from(u32::from(c)).unwrap())
            .collect();
        for file in [
            text.as_bytes().to_vec(),
            marked(b"\xef\xbb\xbf", text.as_bytes().to_vec()),
            marked(b"\xff\xfe", units(u16::to_le_bytes)),
            marked(b"\xfe\xff", units(u16::to_be_bytes)),
            units(u16::to_le_bytes),
            units(u16::to_be_bytes),
            latin,
        ] {
            assert_eq!(decode(&file).0, text);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_marked_and_said() {
        let (text, notes) = decode(b"\xc2\xb1 \xff.gguf");
        assert_eq!(text, "± \u{fffd}.gguf");
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn bytes_that_llama_bench_lost_are_marked_one_by_one() {
        // The two bytes of an e with an accent.
        let lost = "caf\u{ffff}f\u{ffff}f.gguf";
        assert_eq!(without_lost_bytes(lost), "caf\u{fffd}\u{fffd}.gguf");
    }
}
