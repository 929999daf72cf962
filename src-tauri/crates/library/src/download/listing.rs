//! What a repository has.

use std::time::Duration;

use serde::Deserialize;
use url::Url;

use super::address::Hub;
use super::error::DownloadError;
use super::tries::patiently;
use super::wire::{Exchange, Said};
use super::{GoOn, wire};

/// A list of files may have so many bytes.
const MOST_BYTES: usize = 16 << 20;

/// Pages of a list; each has a thousand files.
const MOST_PAGES: usize = 20;

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it lies in the repository.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// Its sha256, in small hexadecimal, where the repository lists it.
    pub sha256: Option<String>,
}

impl Entry {
    /// Its name without folders: the one it gets here.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// A line of the list as the server writes it.
#[derive(Deserialize)]
struct Listed {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    oid: String,
    size: Option<u64>,
}

/// Every file of a repository's main branch.
pub(super) fn fetch(
    hub: &Hub,
    repo: &str,
    pause: Duration,
    go_on: &dyn Fn() -> GoOn,
) -> Result<Vec<Entry>, DownloadError> {
    let mut url = Some(hub.tree(repo));
    let mut entries = Vec::new();
    for _ in 0..MOST_PAGES {
        let Some(page) = url.take() else {
            break;
        };
        let (text, next) = patiently(pause, go_on, |go_on| read(hub, repo, &page, go_on))?;
        let listed: Vec<Listed> =
            serde_json::from_slice(&text).map_err(|_| DownloadError::NotTheFile {
                host: hub.host(),
                what: format!("the list of {repo}"),
                got: "something else".to_owned(),
            })?;
        entries.extend(listed.into_iter().filter(|l| l.kind == "file").map(entry));
        url = next;
    }
    Ok(entries)
}

fn entry(listed: Listed) -> Entry {
    let is_sha = |oid: &String| oid.len() == 64 && oid.bytes().all(|b| b.is_ascii_hexdigit());
    Entry {
        size: listed
            .lfs
            .as_ref()
            .and_then(|lfs| lfs.size)
            .unwrap_or(listed.size),
        sha256: listed
            .lfs
            .map(|lfs| lfs.oid.trim_start_matches("sha256:").to_ascii_lowercase())
            .filter(is_sha),
        path: listed.path,
    }
}

/// One page of the list, and where the next is.
fn read(
    hub: &Hub,
    repo: &str,
    url: &Url,
    go_on: &dyn Fn() -> GoOn,
) -> Result<(Vec<u8>, Option<Url>), wire::Fault> {
    let exchange = Exchange::begin(hub, url, None);
    let head = exchange.head(go_on)?;
    head.check(hub, repo, repo)?;
    let next = head
        .next_page
        .as_deref()
        .and_then(|next| url.join(next).ok())
        .filter(|next| next.origin() == url.origin());
    let mut text = Vec::new();
    loop {
        match exchange.hear(go_on, &mut || {})? {
            Said::Piece(piece) if text.len() + piece.len() <= MOST_BYTES => {
                text.extend_from_slice(&piece);
            }
            Said::Piece(_) => {
                return Err(wire::Fault::Final(DownloadError::NotTheFile {
                    host: hub.host(),
                    what: format!("the list of {repo}"),
                    got: "far too many bytes".to_owned(),
                }));
            }
            Said::End => return Ok((text, next)),
            Said::Head(_) => {}
            Said::Failed(fault) => return Err(fault),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_the_one_of_the_content_and_never_gits() {
        let text = r#"[
            {"type":"file","oid":"aa","size":130,"path":"m.gguf","lfs":{"oid":"B179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53","size":98,"pointerSize":130}},
            {"type":"file","oid":"3e2a","size":12,"path":"README.md"}
        ]"#;
        let listed: Vec<Listed> = serde_json::from_str(text).unwrap();
        let entries: Vec<_> = listed.into_iter().map(entry).collect();
        assert_eq!(entries[0].size, 98);
        assert!(entries[0].sha256.as_ref().unwrap().starts_with("b179"));
        assert_eq!(entries[1].sha256, None);
        assert_eq!(entries[1].size, 12);
    }
}
