//! A server that answers as Hugging Face does, or as told.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

/// How a file is answered instead of as it should be.
#[derive(Debug, Clone)]
pub enum Answer {
    /// As many bytes of the body, then nothing: the connection closes.
    CutAfter(usize),
    /// Everything with code 200, whatever range was asked for.
    WholeDespiteRange,
    /// The last byte is another.
    Spoilt,
    /// This code and no file.
    Status(u16),
    /// A web page with code 200.
    Page,
    /// As many bytes as listed that are no GGUF file.
    NoGguf,
    /// Go there.
    SendOnTo(String),
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    headers: Vec<(String, String)>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone())
    }
}

struct State {
    repo: String,
    files: Vec<(String, Vec<u8>)>,
    checksums: bool,
    answers: Mutex<VecDeque<Answer>>,
    asked: Mutex<Vec<Asked>>,
}

/// It listens until the test's process ends.
pub struct Server {
    address: String,
    state: Arc<State>,
}

/// The beginning of a GGUF file and bytes that differ from place to place.
pub fn gguf(bytes: usize) -> Vec<u8> {
    let rest = (4..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8);
    b"GGUF".iter().copied().chain(rest).collect()
}

impl Server {
    pub fn with(repo: &str, files: &[(&str, &[u8])]) -> Self {
        Self::start(repo, files, true)
    }

    pub fn without_checksums(repo: &str, files: &[(&str, &[u8])]) -> Self {
        Self::start(repo, files, false)
    }

    fn start(repo: &str, files: &[(&str, &[u8])], checksums: bool) -> Self {
        let state = Arc::new(State {
            repo: repo.to_owned(),
            files: files
                .iter()
                .map(|(path, content)| ((*path).to_owned(), content.to_vec()))
                .collect(),
            checksums,
            answers: Mutex::default(),
            asked: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let there = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = there.clone();
                // Who hangs up early is no fault of the server's.
                std::thread::spawn(move || state.serve(stream).ok());
            }
        });
        Self { address, state }
    }

    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// The next requests for a file are answered so; after that as they should be.
    pub fn answer_files_with(&self, answers: impl IntoIterator<Item = Answer>) {
        self.state.answers.lock().unwrap().extend(answers);
    }

    pub fn requests(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }
}

impl State {
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(&stream).lines();
        let first = lines.next().unwrap()?;
        let path = first.split(' ').nth(1).unwrap().to_owned();
        let mut headers = Vec::new();
        for line in lines {
            let line = line?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let asked = Asked { path, headers };
        self.asked.lock().unwrap().push(asked.clone());
        self.answer(&asked, &stream)
    }

    fn answer(&self, asked: &Asked, mut out: &TcpStream) -> std::io::Result<()> {
        let path = asked.path.split('?').next().unwrap();
        if path == format!("/api/models/{}/tree/main", self.repo) {
            let list = self.list();
            return write!(
                out,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{list}",
                list.len()
            );
        }
        let start = format!("/{}/resolve/main/", self.repo);
        let file = path
            .strip_prefix(&start)
            .and_then(|name| self.files.iter().find(|(file, _)| file == name));
        let Some((_, content)) = file else {
            return empty(out, 404);
        };
        let mut content = content.clone();
        let whole = content.len();
        let from = asked.header("range").and_then(|range| {
            range
                .strip_prefix("bytes=")?
                .strip_suffix('-')?
                .parse()
                .ok()
        });
        let mut from: usize = from.unwrap_or(0);
        let mut cut = whole;
        match self.answers.lock().unwrap().pop_front() {
            None => {}
            Some(Answer::CutAfter(bytes)) => cut = from + bytes,
            Some(Answer::WholeDespiteRange) => from = 0,
            Some(Answer::Spoilt) => *content.last_mut().unwrap() ^= 1,
            Some(Answer::Status(code)) => return empty(out, code),
            Some(Answer::Page) => {
                return write!(
                    out,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<html></html>"
                );
            }
            Some(Answer::NoGguf) => content.fill(b'x'),
            Some(Answer::SendOnTo(address)) => {
                return write!(
                    out,
                    "HTTP/1.1 302 Found\r\nLocation: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
            }
        }
        let partial = asked.header("range").is_some() && from > 0;
        if partial {
            write!(
                out,
                "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-{}/{whole}\r\n",
                whole - 1
            )?;
        } else {
            write!(out, "HTTP/1.1 200 OK\r\n")?;
        }
        write!(
            out,
            "Content-Type: application/octet-stream\r\nETag: \"1\"\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            whole - from
        )?;
        out.write_all(&content[from..cut.min(whole)])
    }

    fn list(&self) -> String {
        let files = self.files.iter().map(|(path, content)| {
            let mut file = serde_json::json!({
                "type": "file", "oid": "0123", "size": content.len(), "path": path,
            });
            if self.checksums {
                let sha: String = Sha256::digest(content)
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                file["lfs"] =
                    serde_json::json!({"oid": sha, "size": content.len(), "pointerSize": 130});
            }
            file
        });
        serde_json::Value::Array(files.collect()).to_string()
    }
}

fn empty(mut out: &TcpStream, code: u16) -> std::io::Result<()> {
    write!(
        out,
        "HTTP/1.1 {code} So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}
