//! One request and its answer, on a thread of its own, so that waiting for a server never keeps
//! anybody from cancelling.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use url::Url;

use super::GoOn;
use super::address::{Hub, is_this_machine};
use super::error::{DownloadError, quoted};
use super::tries::stand_by;

/// Bytes that are handed over at once.
const PIECE: usize = 256 << 10;

/// Pieces that may wait to be written; after that the server has to wait.
const AHEAD: usize = 4;

const MOST_REDIRECTS: usize = 10;

/// A server that says nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(30);

/// Between two looks at whether to go on.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// What is asked for from the middle of a file.
pub(super) struct Rest {
    /// First byte.
    pub at: u64,
    /// Last byte; `None` = to the end.
    pub last: Option<u64>,
    /// Only if the file is still the one with this mark.
    pub if_still: Option<String>,
}

/// The beginning of an answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Head {
    pub status: u16,
    pub length: Option<u64>,
    /// First byte and whole size, of a partial answer.
    pub range: Option<(u64, Option<u64>)>,
    pub etag: Option<String>,
    pub is_page: bool,
    pub next_page: Option<String>,
    pub retry_after: Option<Duration>,
}

/// What comes of a request, in order.
pub(super) enum Said {
    Head(Head),
    Piece(Vec<u8>),
    End,
    Failed(Fault),
}

/// Why an exchange ended early.
#[derive(Debug)]
pub(super) enum Fault {
    /// Worth another try, after this pause at least.
    Passing {
        error: DownloadError,
        after: Option<Duration>,
    },
    /// Not worth one.
    Final(DownloadError),
}

impl Fault {
    fn passing(error: DownloadError) -> Self {
        Self::Passing { error, after: None }
    }
}

impl From<DownloadError> for Fault {
    fn from(error: DownloadError) -> Self {
        Self::Final(error)
    }
}

/// A request on its way.
pub(super) struct Exchange {
    said: Receiver<Said>,
    host: String,
}

impl Exchange {
    /// Sends it. The thread ends when nobody listens any more.
    pub(super) fn begin(hub: &Hub, url: &Url, from: Option<Rest>) -> Self {
        let (sender, said) = mpsc::sync_channel(AHEAD);
        let (hub_there, url) = (hub.clone(), url.clone());
        let run = move || {
            let end = match run(&hub_there, url, from.as_ref(), &sender) {
                Ok(()) => Said::End,
                Err(fault) => Said::Failed(fault),
            };
            let _ = sender.send(end);
        };
        let started = std::thread::Builder::new()
            .name("download".into())
            .spawn(run);
        // Without a thread nothing is said, and that is told as a broken connection.
        drop(started);
        Self {
            said,
            host: hub.host(),
        }
    }

    /// The beginning of the answer.
    pub(super) fn head(&self, go_on: &dyn Fn() -> GoOn) -> Result<Head, Fault> {
        match self.hear(go_on, &mut || {})? {
            Said::Head(head) => Ok(head),
            Said::Failed(fault) => Err(fault),
            Said::Piece(_) | Said::End => Err(self.silent()),
        }
    }

    /// What comes next; `paused` is told again and again while it is not to go on now.
    pub(super) fn hear(
        &self,
        go_on: &dyn Fn() -> GoOn,
        paused: &mut dyn FnMut(),
    ) -> Result<Said, Fault> {
        loop {
            stand_by(go_on, paused)?;
            match self.said.recv_timeout(LOOK) {
                Ok(said) => return Ok(said),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.silent()),
            }
        }
    }

    fn silent(&self) -> Fault {
        Fault::passing(DownloadError::Offline {
            host: self.host.clone(),
            fault: "the connection ended".to_owned(),
        })
    }
}

impl Head {
    /// Whether the answer is what was asked for; `what` is the file or the repository.
    pub(super) fn check(&self, hub: &Hub, repo: &str, what: &str) -> Result<(), Fault> {
        let host = hub.host();
        let (repo, what) = (repo.to_owned(), what.to_owned());
        Err(match self.status {
            200 | 206 if !self.is_page => return Ok(()),
            200 | 206 => Fault::Final(DownloadError::NotTheFile {
                host,
                what,
                got: "a web page".to_owned(),
            }),
            401 | 403 if hub.has_token() => Fault::Final(DownloadError::Refused { host, repo }),
            401 | 403 => Fault::Final(DownloadError::NeedsToken { host, repo }),
            404 | 410 => Fault::Final(DownloadError::NotFound { host, what }),
            408 | 425 | 429 | 500.. => Fault::Passing {
                error: DownloadError::Broken {
                    what,
                    fault: format!("{host} answers {}", status(self.status)),
                },
                after: self.retry_after,
            },
            code => Fault::Final(DownloadError::NotTheFile {
                host,
                what,
                got: status(code),
            }),
        })
    }
}

fn status(code: u16) -> String {
    match code {
        429 => "that it was asked too often (429)".to_owned(),
        502..=504 => format!("that it is overloaded or being repaired ({code})"),
        _ => format!("with code {code}"),
    }
}

/// Sends the request, follows where it is sent on, and hands over what comes.
fn run(
    hub: &Hub,
    mut url: Url,
    from: Option<&Rest>,
    sender: &SyncSender<Said>,
) -> Result<(), Fault> {
    for _ in 0..MOST_REDIRECTS {
        let mut answer = send(hub, &url, from)?;
        let code = answer.status().as_u16();
        let header = |name: &str| {
            let value = answer.headers().get(name)?;
            Some(value.to_str().ok()?.to_owned())
        };
        if matches!(code, 301 | 302 | 303 | 307 | 308) {
            url = follow(&url, header("location"))?;
            continue;
        }
        let head = Head {
            status: code,
            length: header("content-length").and_then(|text| text.parse().ok()),
            range: header("content-range").and_then(|text| range(&text)),
            etag: header("etag"),
            is_page: header("content-type").is_some_and(|kind| kind.starts_with("text/html")),
            next_page: header("link").and_then(|text| next_page(&text)),
            retry_after: header("retry-after")
                .and_then(|text| text.parse().ok())
                .map(Duration::from_secs),
        };
        if sender.send(Said::Head(head)).is_err() {
            return Ok(());
        }
        let mut body = answer.body_mut().as_reader();
        loop {
            let mut piece = vec![0; PIECE];
            let read = fill(&mut body, &mut piece).map_err(|error| cut(&url, &error))?;
            piece.truncate(read);
            if read == 0 || sender.send(Said::Piece(piece)).is_err() {
                return Ok(());
            }
        }
    }
    Err(Fault::Final(bad_redirect(&url, "in a circle")))
}

/// Reads at least something, and as much as comes within a moment, so that pieces are not tiny.
fn fill(body: &mut impl Read, piece: &mut [u8]) -> io::Result<usize> {
    let begun = Instant::now();
    let mut filled = 0;
    while filled < piece.len() {
        match body.read(&mut piece[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // What came before the break is handed over; the break comes again.
            Err(_) if filled > 0 => break,
            Err(error) => return Err(error),
        }
        if begun.elapsed() > LOOK {
            break;
        }
    }
    Ok(filled)
}

fn send(hub: &Hub, url: &Url, from: Option<&Rest>) -> Result<Answer, Fault> {
    let mut config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .user_agent(concat!("twospeed/", env!("CARGO_PKG_VERSION")))
        // A compressed answer has other ranges.
        .accept_encoding("identity")
        .timeout_connect(Some(Duration::from_secs(15)))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE));
    if is_this_machine(url) {
        config = config.proxy(None);
    }
    let agent: ureq::Agent = config.build().into();
    let mut request = agent.get(url.as_str());
    if let Some(token) = hub.token_for(url) {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    if let Some(from) = from {
        let last = from.last.map(|last| last.to_string()).unwrap_or_default();
        request = request.header("Range", format!("bytes={}-{last}", from.at));
        if let Some(mark) = &from.if_still {
            request = request.header("If-Range", mark);
        }
    }
    request.call().map_err(|error| not_sent(url, &error))
}

type Answer = ureq::http::Response<ureq::Body>;

fn not_sent(url: &Url, error: &ureq::Error) -> Fault {
    let fault = match error {
        ureq::Error::HostNotFound => "its address is not known".to_owned(),
        ureq::Error::Timeout(_) => "it does not answer".to_owned(),
        ureq::Error::Io(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
            io::ErrorKind::TimedOut => "it does not answer".to_owned(),
            _ => error.to_string(),
        },
        other => other.to_string(),
    };
    let error_for_person = DownloadError::Offline {
        host: host(url),
        fault: quoted(&fault),
    };
    match error {
        // A certificate does not get better by asking again.
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => Fault::Final(error_for_person),
        _ => Fault::passing(error_for_person),
    }
}

fn cut(url: &Url, error: &io::Error) -> Fault {
    Fault::passing(DownloadError::Offline {
        host: host(url),
        fault: quoted(&error.to_string()),
    })
}

fn follow(from: &Url, to: Option<String>) -> Result<Url, Fault> {
    let next = to.and_then(|to| from.join(&to).ok());
    match next {
        Some(next) if next.scheme() == from.scheme() || next.scheme() == "https" => Ok(next),
        Some(_) => Err(Fault::Final(bad_redirect(
            from,
            "to an unencrypted address",
        ))),
        None => Err(Fault::Final(bad_redirect(from, "to no address"))),
    }
}

fn bad_redirect(url: &Url, to: &str) -> DownloadError {
    DownloadError::NotTheFile {
        host: host(url),
        what: "the file".to_owned(),
        got: format!("a redirection {to}"),
    }
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// `bytes 100-199/200`.
fn range(text: &str) -> Option<(u64, Option<u64>)> {
    let (bytes, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = bytes.split_once('-')?;
    Some((first.trim().parse().ok()?, whole.trim().parse().ok()))
}

/// `<https://...>; rel="next"`.
fn next_page(text: &str) -> Option<String> {
    text.split(',').find_map(|link| {
        let (address, rest) = link.trim().strip_prefix('<')?.split_once('>')?;
        rest.contains("rel=\"next\"").then(|| address.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_the_standards_write_them() {
        assert_eq!(range("bytes 100-199/200"), Some((100, Some(200))));
        assert_eq!(range("bytes 5-9/*"), Some((5, None)));
        assert_eq!(range("bytes */200"), None);
        assert_eq!(
            next_page(r#"<https://h/a?cursor=1>; rel="next", <https://h/b>; rel="prev""#)
                .as_deref(),
            Some("https://h/a?cursor=1")
        );
        assert_eq!(next_page(r#"<https://h/b>; rel="prev""#), None);
    }

    #[test]
    fn a_redirection_may_be_relative_and_never_gives_encryption_up() {
        let url = |text: &str| Url::parse(text).unwrap();
        let to = |from: &str, to: &str| follow(&url(from), Some(to.to_owned())).ok();
        assert_eq!(to("https://a/b", "/c"), Some(url("https://a/c")));
        assert_eq!(to("https://a/b", "https://x/y"), Some(url("https://x/y")));
        assert_eq!(to("https://a/b", "http://x/y"), None);
        assert_eq!(to("https://a/b", "file:///etc/passwd"), None);
    }
}
