//! What a second start hands to the first.

use std::path::PathBuf;

/// The first line of a message; another version of Twospeed that says something else is not understood.
const GREETING: &[u8] = b"twospeed-window 1";
/// Messages beyond this are no messages.
pub const LONGEST: u64 = 4 << 20;

/// What the program was started with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handover {
    /// Absolute paths to open; may be none: then the window only comes to the front.
    pub files: Vec<PathBuf>,
    /// The desktop's permission to come to the front, where it gave one.
    pub activation: Option<String>,
}

impl Handover {
    /// As it goes through the socket: fields that end with a zero byte, which no path can hold.
    #[cfg(unix)]
    pub fn to_bytes(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt;
        let mut bytes = Vec::new();
        let mut field = |content: &[u8]| {
            bytes.extend_from_slice(content);
            bytes.push(0);
        };
        field(GREETING);
        field(self.activation.as_deref().unwrap_or_default().as_bytes());
        for file in &self.files {
            field(file.as_os_str().as_bytes());
        }
        bytes
    }

    /// Back from its bytes; `None` where they are no message or the end is missing.
    #[cfg(unix)]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let mut fields = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0);
        if fields.next()? != GREETING {
            return None;
        }
        let activation = std::str::from_utf8(fields.next()?).ok()?;
        Some(Self {
            activation: (!activation.is_empty()).then(|| activation.to_owned()),
            files: fields
                .filter(|field| !field.is_empty())
                .map(|field| PathBuf::from(OsStr::from_bytes(field)))
                .collect(),
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn any_path_arrives_as_it_was_sent() {
        let sent = Handover {
            files: vec![
                PathBuf::from("/models/a\nb \"c\".gguf"),
                PathBuf::from(OsStr::from_bytes(b"/models/\xff\xfe.gguf")),
            ],
            activation: Some("token-1".to_owned()),
        };
        assert_eq!(Handover::from_bytes(&sent.to_bytes()), Some(sent));
    }

    #[test]
    fn nothing_to_open_is_a_message_too() {
        let sent = Handover::default();
        assert_eq!(Handover::from_bytes(&sent.to_bytes()), Some(sent));
    }

    #[test]
    fn a_cut_or_foreign_message_is_none() {
        let whole = Handover {
            files: vec![PathBuf::from("/models/a.gguf")],
            activation: None,
        }
        .to_bytes();
        assert_eq!(Handover::from_bytes(&whole[..whole.len() - 1]), None);
        assert_eq!(Handover::from_bytes(b"GET / HTTP/1.1\r\n\r\n"), None);
        assert_eq!(Handover::from_bytes(b""), None);
    }
}
