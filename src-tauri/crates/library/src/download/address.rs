//! Where things are: the server, the repository, the file.

use std::ffi::OsString;
use std::fmt;

use url::{Host, Url};

use super::error::{DownloadError, quoted};

/// Where models come from unless `HF_ENDPOINT` names another place.
const ENDPOINT: &str = "https://huggingface.co";

/// A server that speaks as Hugging Face does, with the right to use it.
#[derive(Clone)]
pub struct Hub {
    endpoint: Url,
    token: Option<String>,
}

/// The token is nobody's business.
impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("endpoint", &self.endpoint.as_str())
            .field("token", &self.token.as_ref().map(|_| ".."))
            .finish()
    }
}

impl Hub {
    /// The server that `HF_ENDPOINT` names, or Hugging Face's own, with the token of `HF_TOKEN`.
    ///
    /// Errors: an endpoint that is no address, and a token for one that would carry it unencrypted
    /// over a network.
    pub fn from_environment(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, DownloadError> {
        let text = |name: &str| {
            let value = variable(name)?.to_string_lossy().trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        Self::new(
            &text("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned()),
            text("HF_TOKEN"),
        )
    }

    /// The server at this address.
    ///
    /// Errors: as [`Hub::from_environment`].
    pub fn new(endpoint: &str, token: Option<String>) -> Result<Self, DownloadError> {
        let bad = |fault| DownloadError::BadEndpoint {
            address: quoted(endpoint),
            fault,
        };
        let url = Url::parse(endpoint).map_err(|_| bad("write it as https://example.org"))?;
        if !matches!(url.scheme(), "https" | "http") || url.host().is_none() {
            return Err(bad("it has to begin with https:// or http://"));
        }
        if token.is_some() && url.scheme() == "http" && !is_this_machine(&url) {
            return Err(bad(
                "HF_TOKEN would travel there unencrypted; write https:// or unset HF_TOKEN",
            ));
        }
        if token
            .as_ref()
            .is_some_and(|token| !token.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err(bad("HF_TOKEN holds characters that no token has"));
        }
        Ok(Self {
            endpoint: url,
            token,
        })
    }

    /// The server of this address: this one with its token where it is the same, else one that is
    /// told nothing.
    pub(super) fn of(&self, url: &Url) -> Self {
        let mut endpoint = url.clone();
        endpoint.set_path("");
        endpoint.set_query(None);
        Self {
            token: self.token_for(url).map(str::to_owned),
            endpoint,
        }
    }

    /// Its name, for sentences.
    pub(super) fn host(&self) -> String {
        self.endpoint.host_str().unwrap_or_default().to_owned()
    }

    /// The token, if `url` is on this very server.
    pub(super) fn token_for(&self, url: &Url) -> Option<&str> {
        (url.origin() == self.endpoint.origin())
            .then_some(self.token.as_deref())
            .flatten()
    }

    /// Whether a token is known.
    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The list of a repository's files.
    pub(super) fn tree(&self, repo: &str) -> Url {
        let mut url = self.below(&["api", "models"], repo, &["tree", "main"]);
        url.set_query(Some("recursive=true"));
        url
    }

    /// A file of a repository.
    pub(super) fn file(&self, repo: &str, path: &str) -> Url {
        let parts: Vec<_> = ["resolve", "main"]
            .into_iter()
            .chain(path.split('/'))
            .collect();
        self.below(&[], repo, &parts)
    }

    fn below(&self, before: &[&str], repo: &str, after: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        url.set_query(None);
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty()
                .extend(before)
                .extend(repo.split('/'))
                .extend(after);
        }
        url
    }
}

/// Whether an address never leaves this machine.
pub(super) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// A repository and what of it: `OWNER/NAME`, `OWNER/NAME:Q4_K_M`, `OWNER/NAME:file.gguf`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// `OWNER/NAME`.
    pub repo: String,
    /// A file name or a quantization.
    pub file: Option<String>,
}

impl std::str::FromStr for Wanted {
    type Err = DownloadError;

    fn from_str(text: &str) -> Result<Self, DownloadError> {
        let (repo, file) = match text.split_once(':') {
            Some((repo, file)) => (repo, Some(file)),
            None => (text, None),
        };
        let is_name = |part: &str| {
            part.contains(|c: char| c.is_ascii_alphanumeric())
                && part.len() <= 96
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        let parts: Vec<_> = repo.split('/').collect();
        if parts.len() != 2 || !parts.iter().all(|part| is_name(part)) {
            return Err(DownloadError::BadRepo(quoted(text)));
        }
        if let Some(file) = file.filter(|file| !is_safe_name(file)) {
            return Err(DownloadError::BadName(quoted(file)));
        }
        Ok(Self {
            repo: repo.to_owned(),
            file: file.map(str::to_owned),
        })
    }
}

/// Whether a name stays in its folder and is one that every system takes.
pub(super) fn is_safe_name(name: &str) -> bool {
    const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_port = (stem.starts_with("com") || stem.starts_with("lpt"))
        && stem.len() == 4
        && stem.ends_with(|c: char| c.is_ascii_digit());
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with(['.', ' ', '-'])
        && !name.ends_with(['.', ' '])
        && crate::display::shown(name) == name
        && !name.contains(['/', '\\', ':', '<', '>', '"', '|', '?', '*'])
        && !DEVICES.contains(&stem.as_str())
        && !is_port
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_an_owner_and_a_name_with_a_file_after_a_colon() {
        let wanted: Wanted = "Qwen/Qwen3-8B-GGUF:Q4_K_M".parse().unwrap();
        assert_eq!(wanted.repo, "Qwen/Qwen3-8B-GGUF");
        assert_eq!(wanted.file.as_deref(), Some("Q4_K_M"));
        for text in [
            "Qwen",
            "a/b/c",
            "../b",
            "a/..",
            "/a/b",
            "a b/c",
            "",
            "https://x/y",
        ] {
            let error = text.parse::<Wanted>().unwrap_err();
            assert!(
                matches!(error, DownloadError::BadRepo(_)),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_file_name_that_leads_anywhere_else_is_refused() {
        for name in [
            "../evil.gguf",
            "/etc/x.gguf",
            "a/b.gguf",
            r"..\evil.gguf",
            r"C:\x.gguf",
            "..",
            ".x",
            "nul.gguf",
            "com1.gguf",
            "a\nb.gguf",
            "-rf.gguf",
            "x.gguf ",
            "",
        ] {
            assert!(!is_safe_name(name), "{name}");
            assert!(format!("a/b:{name}").parse::<Wanted>().is_err(), "{name}");
        }
        for name in ["model.Q4_K_M.gguf", "模型-Q8_0.gguf", "common.gguf"] {
            assert!(is_safe_name(name), "{name}");
        }
    }

    #[test]
    fn the_token_goes_to_its_own_server_alone_and_never_unencrypted_over_a_network() {
        let hub = Hub::new("https://huggingface.co", Some("secret".into())).unwrap();
        let token = |url: &str| hub.token_for(&Url::parse(url).unwrap());
        assert_eq!(token("https://huggingface.co/a"), Some("secret"));
        for other in [
            "https://cdn.huggingface.co/a",
            "http://huggingface.co/a",
            "https://huggingface.co:8443/a",
            "https://huggingface.co.evil.example/a",
        ] {
            assert_eq!(token(other), None, "{other}");
        }
        assert!(!format!("{hub:?}").contains("secret"));
        assert!(Hub::new("http://example.org", Some("secret".into())).is_err());
        assert!(Hub::new("http://127.0.0.1:8080", Some("secret".into())).is_ok());
        assert!(Hub::new("ftp://example.org", None).is_err());
    }

    #[test]
    fn addresses_are_those_of_hugging_face_below_any_endpoint() {
        let hub = Hub::new("http://localhost:1/mirror/", None).unwrap();
        assert_eq!(
            hub.tree("a/b").as_str(),
            "http://localhost:1/mirror/api/models/a/b/tree/main?recursive=true"
        );
        assert_eq!(
            hub.file("a/b", "sub dir/x#1?.gguf").as_str(),
            "http://localhost:1/mirror/a/b/resolve/main/sub%20dir/x%231%3F.gguf"
        );
    }
}
