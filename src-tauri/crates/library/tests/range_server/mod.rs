//! A server of one large file of which only the beginning exists: the rest are zeros, made as they
//! are sent. It counts what it sends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How requests are answered.
#[derive(Debug, Clone)]
pub enum Manner {
    /// Parts as they are asked for.
    Parts,
    /// Everything from the beginning, whatever is asked for.
    Whole,
    /// Everything from the beginning, without a word on how long that is, and without an end.
    Endless,
    /// This code and no file.
    Status(u16),
    /// This code the first time, then parts.
    StatusOnce(u16),
    /// A web page.
    Page,
    /// Another place.
    SendOnTo(String),
    /// Nothing at all for some time.
    Silence(Duration),
}

struct State {
    beginning: Vec<u8>,
    total: u64,
    manner: Mutex<Manner>,
    sent: AtomicU64,
    /// A part of a path, and where such paths are.
    others: Mutex<Option<(String, String)>>,
    asked: Mutex<Vec<(String, Vec<String>)>>,
}

/// It listens until the test's process ends.
pub struct RangeServer {
    address: String,
    state: Arc<State>,
}

impl RangeServer {
    pub fn start(beginning: Vec<u8>, total: u64, manner: Manner) -> Self {
        let state = Arc::new(State {
            beginning,
            total,
            manner: Mutex::new(manner),
            sent: AtomicU64::new(0),
            others: Mutex::default(),
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

    /// One that has one file, and sends on who asks for a path with this in it.
    pub fn of_two((beginning, total): (Vec<u8>, u64), (part, there): (&str, String)) -> Self {
        let server = Self::start(beginning, total, Manner::Parts);
        *server.state.others.lock().unwrap() = Some((part.to_owned(), there));
        server
    }

    /// One that sends everybody to itself.
    pub fn in_a_circle() -> Self {
        let server = Self::start(Vec::new(), 1, Manner::Parts);
        *server.state.manner.lock().unwrap() = Manner::SendOnTo(server.file("again.gguf"));
        server
    }

    /// The address of a file on it.
    pub fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// Bytes of the file that were sent.
    pub fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::SeqCst)
    }

    /// Paths that were asked for.
    pub fn paths(&self) -> Vec<String> {
        let asked = self.state.asked.lock().unwrap();
        asked.iter().map(|(path, _)| path.clone()).collect()
    }

    /// Values of a header in all requests, in small letters.
    pub fn headers(&self, name: &str) -> Vec<String> {
        let asked = self.state.asked.lock().unwrap();
        let start = format!("{name}:");
        asked
            .iter()
            .flat_map(|(_, headers)| headers)
            .filter_map(|line| Some(line.strip_prefix(&start)?.trim().to_owned()))
            .collect()
    }
}

impl State {
    fn serve(&self, mut out: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(out.try_clone()?).lines();
        let first = lines.next().unwrap()?;
        let path = first.split(' ').nth(1).unwrap().to_owned();
        let mut headers = Vec::new();
        for line in lines {
            let line = line?;
            if line.is_empty() {
                break;
            }
            headers.push(line.to_ascii_lowercase());
        }
        let range = headers.iter().find_map(|line| {
            let range = line.strip_prefix("range: bytes=")?;
            let (first, last) = range.split_once('-')?;
            let last = last.parse().unwrap_or(self.total - 1);
            Some((first.parse::<u64>().ok()?, last))
        });
        self.asked.lock().unwrap().push((path.clone(), headers));
        let others = self.others.lock().unwrap().clone();
        let manner = if let Some((_, there)) = others.filter(|(part, _)| path.contains(part)) {
            Manner::SendOnTo(there)
        } else {
            let mut manner = self.manner.lock().unwrap();
            match &*manner {
                Manner::StatusOnce(code) => {
                    let code = *code;
                    *manner = Manner::Parts;
                    Manner::Status(code)
                }
                other => other.clone(),
            }
        };
        let head = "Content-Type: application/octet-stream\r\nConnection: close\r\n";
        match (manner, range) {
            (Manner::Parts, Some((first, _))) if first >= self.total => {
                write!(out, "HTTP/1.1 416 No\r\nContent-Length: 0\r\n{head}\r\n")
            }
            (Manner::Parts, Some((first, last))) => {
                let last = last.min(self.total - 1);
                write!(
                    out,
                    "HTTP/1.1 206 Part\r\nContent-Range: bytes {first}-{last}/{}\r\nContent-Length: {}\r\n{head}\r\n",
                    self.total,
                    last + 1 - first
                )?;
                self.send(&mut out, first, last + 1)
            }
            (Manner::Parts | Manner::Whole, _) => {
                write!(
                    out,
                    "HTTP/1.1 200 Yes\r\nContent-Length: {}\r\n{head}\r\n",
                    self.total
                )?;
                self.send(&mut out, 0, self.total)
            }
            (Manner::Endless, _) => {
                write!(out, "HTTP/1.1 200 Yes\r\n{head}\r\n")?;
                self.send(&mut out, 0, u64::MAX)
            }
            (Manner::Status(code) | Manner::StatusOnce(code), _) => {
                write!(out, "HTTP/1.1 {code} So\r\nContent-Length: 0\r\n{head}\r\n")
            }
            (Manner::Page, _) => write!(
                out,
                "HTTP/1.1 200 Yes\r\nContent-Type: text/html\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<html></html>"
            ),
            (Manner::SendOnTo(address), _) => write!(
                out,
                "HTTP/1.1 302 There\r\nLocation: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            ),
            (Manner::Silence(time), _) => {
                std::thread::sleep(time);
                Ok(())
            }
        }
    }

    fn send(&self, out: &mut TcpStream, first: u64, end: u64) -> std::io::Result<()> {
        let beginning = self.beginning.get(first as usize..).unwrap_or_default();
        let mut bytes = beginning.chain(std::io::repeat(0)).take(end - first);
        let mut piece = vec![0; 64 << 10];
        loop {
            let read = bytes.read(&mut piece)?;
            if read == 0 {
                return out.flush();
            }
            out.write_all(&piece[..read])?;
            self.sent.fetch_add(read as u64, Ordering::SeqCst);
        }
    }
}
