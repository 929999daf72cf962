//! The header of a model that is not here: its first megabytes, and nothing of its weights.
//!
//! What can go wrong, and what then happens:
//! - the server does not give parts of a file: the whole is listened to as far as the header goes,
//!   and the connection closed;
//! - the connection breaks or the server is busy: tried again a few times;
//! - something else than a model comes, or a header that does not end: one sentence.

use std::path::Path;
use std::time::Duration;

use twospeed_gguf::{Error, Model, SetName, WriteError, Writer, read_from};
use url::Url;

use super::address::{Hub, Wanted, is_safe_name};
use super::error::{DownloadError, quoted};
use super::tries::patiently;
use super::wire::{Exchange, Fault, Head, Rest, Said};
use super::{GoOn, choose, listing};
use crate::header::ModelHeader;

/// Bytes asked for first; headers of small vocabularies fit, and each further request doubles
/// what is there.
const FIRST: u64 = 512 << 10;

/// A header that goes on for longer is taken for a fault: the largest of real models have some
/// twenty MB.
const MOST: u64 = 64 << 20;

/// A length that stands for one that no server says: more than any file has.
const UNKNOWN_LENGTH: u64 = 1 << 52;

/// Longest address that is taken.
const MOST_ADDRESS: usize = 4096;

/// Where a model is that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// An address.
    Address(Url),
    /// A repository and what of it.
    Repository(Wanted),
}

/// Why the header of a model elsewhere is not known.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It is no address of a model.
    #[error("{0} is no address of a model: write https://HOST/PATH/FILE.gguf, or OWNER/NAME:FILE.")]
    BadAddress(String),
    /// The server cannot be reached or does not give it.
    #[error("{}", without_promise(.0))]
    Download(#[from] DownloadError),
    /// What came is no model that can be used.
    #[error(transparent)]
    Header(#[from] Error),
    /// The parts of a set do not fit together.
    #[error("The parts of {name} do not fit together: {fault} Look for the model elsewhere.")]
    Parts {
        /// The set.
        name: String,
        /// What does not fit.
        fault: WriteError,
    },
}

/// What is said of a broken download holds where something is kept; of a header nothing is.
fn without_promise(error: &DownloadError) -> String {
    match error {
        DownloadError::Broken { what, fault } => {
            format!("The header of {what} did not come through: {fault}. Try again later.")
        }
        DownloadError::Cancelled => "Cancelled: nothing was read.".to_owned(),
        other => other.to_string(),
    }
}

impl RemoteError {
    /// The key of this error for those who branch on it.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadAddress(_) => "bad_address",
            Self::Download(error) => error.code(),
            Self::Header(_) | Self::Parts { .. } => "file_unusable",
        }
    }

    /// Whether the fault lies in what was asked for, and asking otherwise helps.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::BadAddress(_) => true,
            Self::Download(error) => error.is_usage(),
            Self::Header(_) | Self::Parts { .. } => false,
        }
    }
}

impl Place {
    /// The place that a text names: `https://..`, `http://..`, or `OWNER/NAME:FILE` (a file or a
    /// quantization); `None` where it names none, and is a path for all we know.
    ///
    /// Errors: an address that cannot be one.
    pub fn named(text: &str) -> Result<Option<Self>, RemoteError> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        match scheme.map(str::to_ascii_lowercase).as_deref() {
            Some("http" | "https") => {
                let bad = || RemoteError::BadAddress(quoted(text));
                if text.len() > MOST_ADDRESS {
                    return Err(bad());
                }
                let url = Url::parse(text).map_err(|_| bad())?;
                if url.host_str().is_none_or(str::is_empty) {
                    return Err(bad());
                }
                Ok(Some(Self::Address(url)))
            }
            Some(_) => Ok(None),
            None => Ok(text
                .parse()
                .ok()
                .filter(|wanted: &Wanted| wanted.file.is_some())
                .map(Self::Repository)),
        }
    }
}

/// Reads the header of a model elsewhere; of a split set those of all its parts, as one.
///
/// Only the beginning of each file is asked for. `hub` is the server that repositories are on; its
/// token goes to it alone. Blocks until the header is there; `go_on` is asked about ten times a
/// second.
///
/// Errors: one sentence each.
pub fn remote_header(
    hub: &Hub,
    place: &Place,
    pause: Duration,
    go_on: &dyn Fn() -> GoOn,
) -> Result<ModelHeader, RemoteError> {
    let addresses = match place {
        Place::Address(url) => set_of(url),
        Place::Repository(wanted) => {
            let entries = listing::fetch(hub, &wanted.repo, pause, go_on)?;
            let choices = choose::choices(&wanted.repo, entries)?;
            let choice = choose::choose(wanted, choices)?;
            let entries = choice.entries.iter();
            entries
                .map(|entry| hub.file(&wanted.repo, &entry.path))
                .collect()
        }
    };
    let mut headers = Vec::new();
    for url in &addresses {
        let header = patiently(pause, go_on, |go_on| {
            let reading = Reading {
                hub: &hub.of(url),
                url,
                name: &name_of(url),
            };
            match reading.header(go_on) {
                Ok(header) => Ok(Ok(header)),
                Err(Stop::Header(error)) => Ok(Err(error)),
                Err(Stop::Fault(fault)) => Err(fault),
            }
        })??;
        headers.push(header);
    }
    let header = match headers.len() {
        1 => headers.swap_remove(0),
        _ => joined(&headers)?,
    };
    header.model.check()?;
    Ok(header)
}

/// The file's own name.
fn name_of(url: &Url) -> String {
    let last = url.path_segments().and_then(|mut parts| parts.next_back());
    match last.filter(|name| is_safe_name(name)) {
        Some(name) => name.to_owned(),
        None => quoted(url.as_str()),
    }
}

/// The addresses of all parts of the set that an address is a part of.
fn set_of(url: &Url) -> Vec<Url> {
    let name = name_of(url);
    let Some(set) = SetName::of(Path::new(&name)) else {
        return vec![url.clone()];
    };
    let part = |number| {
        let mut url = url.clone();
        let name = set.path(number).to_string_lossy().into_owned();
        if let Ok(mut parts) = url.path_segments_mut() {
            parts.pop().push(&name);
        }
        url
    };
    (1..=set.parts).map(part).collect()
}

/// The headers of a set's parts as that of one file.
fn joined(headers: &[ModelHeader]) -> Result<ModelHeader, RemoteError> {
    let name = headers
        .first()
        .map(|header| header.model.path.to_string_lossy().into_owned())
        .unwrap_or_default();
    let unfit = |fault| RemoteError::Parts {
        name: name.clone(),
        fault,
    };
    let mut writer = Writer::new();
    for field in headers
        .first()
        .and_then(ModelHeader::fields)
        .unwrap_or_default()
    {
        let key = String::from_utf8_lossy(field.key);
        if !key.starts_with("split.") && key != "general.alignment" {
            writer.set(field.key, field.field());
        }
    }
    for tensor in headers.iter().flat_map(|header| &header.model.tensors) {
        writer
            .tensor(&tensor.name, tensor.tensor_type, &tensor.dimensions)
            .map_err(unfit)?;
    }
    let bytes = writer.header();
    let model = read_from(&bytes[..], &name, writer.file_bytes())?;
    let read = headers.iter().map(|header| header.bytes_read).sum();
    Ok(ModelHeader::new(model, bytes, read))
}

/// A file whose header is being read.
struct Reading<'a> {
    hub: &'a Hub,
    url: &'a Url,
    name: &'a str,
}

/// Why reading ended without a header.
enum Stop {
    Fault(Fault),
    Header(Error),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Reading<'_> {
    /// Asks for more and more of the file until the header is whole.
    fn header(&self, go_on: &dyn Fn() -> GoOn) -> Result<ModelHeader, Stop> {
        let mut bytes = Vec::new();
        let mut read = 0;
        let mut wanted = FIRST;
        loop {
            let here = bytes.len() as u64;
            let rest = Rest {
                at: here,
                last: Some(wanted - 1),
                if_still: None,
            };
            let exchange = Exchange::begin(self.hub, self.url, Some(rest));
            let head = exchange.head(go_on)?;
            if head.status == 416 {
                return Err(self.not_whole(here).into());
            }
            head.check(self.hub, self.name, self.name)?;
            let total = self.place(&head, here)?;
            if head.status != 206 {
                // The whole file comes, from its beginning.
                bytes.clear();
            }
            loop {
                match exchange.hear(go_on, &mut || {})? {
                    Said::Piece(piece) => {
                        read += piece.len() as u64;
                        bytes.extend_from_slice(&piece);
                    }
                    Said::End => break,
                    Said::Head(_) => {}
                    Said::Failed(fault) => return Err(fault.into()),
                }
                if head.status != 206 && bytes.len() as u64 >= wanted {
                    if let Some(header) = self.parse(&bytes, total, read)? {
                        return Ok(header);
                    }
                    if wanted >= MOST {
                        return Err(self.not_whole(bytes.len() as u64).into());
                    }
                    wanted *= 2;
                }
            }
            if let Some(header) = self.parse(&bytes, total, read)? {
                return Ok(header);
            }
            // No more came than was there, and more should have been.
            if bytes.len() as u64 == here || head.status != 206 || wanted >= MOST {
                return Err(self.not_whole(bytes.len() as u64).into());
            }
            wanted = ((bytes.len() as u64).max(wanted) * 2).min(MOST);
        }
    }

    /// The file's size, where the answer says it.
    fn place(&self, head: &Head, here: u64) -> Result<Option<u64>, Fault> {
        match (head.status, head.range) {
            (206, Some((first, whole))) if first == here => Ok(whole),
            (206, _) => Err(Fault::Passing {
                error: DownloadError::Offline {
                    host: self.hub.host(),
                    fault: "it sent another part than the one asked for".to_owned(),
                },
                after: None,
            }),
            _ => Ok(head.length),
        }
    }

    /// The header, if it is whole; `None` where it goes on.
    fn parse(
        &self,
        bytes: &[u8],
        total: Option<u64>,
        read: u64,
    ) -> Result<Option<ModelHeader>, Stop> {
        let parsed = |total| match read_from(bytes, self.name, total) {
            Ok(model) => Ok(Some(model)),
            Err(Error::HeaderContinues { .. }) => Ok(None),
            Err(error) => Err(Stop::Header(error)),
        };
        let Some(model) = parsed(total.unwrap_or(UNKNOWN_LENGTH))? else {
            return Ok(None);
        };
        // Without a word of the server the file is taken to be as long as its header says.
        let model: Option<Model> = match total {
            Some(_) => Some(model),
            None => parsed(model.bytes_expected)?,
        };
        Ok(model.map(|model| ModelHeader::new(model, bytes.to_vec(), read)))
    }

    /// The file ends inside its header.
    fn not_whole(&self, bytes: u64) -> Fault {
        Fault::Final(DownloadError::NotTheFile {
            host: self.hub.host(),
            what: self.name.to_owned(),
            got: format!("{bytes} bytes that are no whole header"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_address_or_a_repository_with_a_file() {
        let named = |text: &str| Place::named(text).unwrap();
        assert!(matches!(named("https://h/a.gguf"), Some(Place::Address(_))));
        assert!(matches!(named("HTTP://h/a.gguf"), Some(Place::Address(_))));
        assert!(matches!(
            named("owner/name:Q4_K_M"),
            Some(Place::Repository(_))
        ));
        for path in [
            "owner/name",
            "a.gguf",
            r"C:\a.gguf",
            "/m/a:b.gguf",
            "file:///a",
        ] {
            assert_eq!(named(path), None, "{path}");
        }
        for bad in ["https://", "http://[", "https:///a.gguf x"] {
            let refused = Place::named(bad);
            if let Err(error) = refused {
                assert!(error.is_usage(), "{bad}");
            }
        }
    }

    #[test]
    fn a_part_leads_to_all_parts_of_its_set() {
        let url = Url::parse("https://h/m/big-00002-of-00003.gguf?download=true").unwrap();
        let all: Vec<_> = set_of(&url).iter().map(Url::to_string).collect();
        assert_eq!(
            all,
            [
                "https://h/m/big-00001-of-00003.gguf?download=true",
                "https://h/m/big-00002-of-00003.gguf?download=true",
                "https://h/m/big-00003-of-00003.gguf?download=true",
            ]
        );
    }
}
