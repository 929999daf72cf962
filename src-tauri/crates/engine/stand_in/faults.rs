//! What can be wrong with a worker.

use std::io::Write;
use std::process::{Command, exit};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use twospeed_engine::protocol::PROTOCOL;

/// A fault by its name: a moment and what happens then (`hello:SIGKILL`), or a habit (`deaf`).
pub struct Fault {
    pub name: String,
    moment: String,
    what: String,
}

impl Fault {
    pub fn of(name: &str) -> Self {
        let (moment, what) = name.split_once(':').unwrap_or(("", ""));
        Self {
            name: name.to_owned(),
            moment: moment.to_owned(),
            what: what.to_owned(),
        }
    }

    pub fn is_deaf(&self) -> bool {
        self.name == "deaf"
    }

    pub fn leaves_at_end_of_input(&self) -> bool {
        !self.is_deaf()
    }

    /// Before anything is said.
    pub fn start(&self) {
        self.at("start");
        match self.name.as_str() {
            "silent" => hang(),
            "other-hello" => {
                let hello =
                    format!(r#"{{"event":"hello","protocol":{PROTOCOL},"engine":"unheard of"}}"#);
                println!("{hello}");
                hang();
            }
            "chatty" => {
                println!("Reading symbols from twospeed...\n[New LWP 12]\n(gdb) quit");
                println!(r#"{{"event":"unheard of"}}"#);
                println!(r#"{{"event":"anchor","ns":5}}"#);
            }
            "inventory" => {
                let here = std::env::current_dir().expect("BUG: a worker has a directory");
                eprintln!("directory {}", here.display());
                for (name, value) in std::env::vars_os() {
                    eprintln!("variable {}={}", name.display(), value.display());
                }
            }
            _ => {}
        }
    }

    /// Hello is said, nothing is asked yet.
    pub fn after_hello(&self) {
        if self.moment == "idle" {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.at("idle");
    }

    /// A request has come and nothing is said about it.
    pub fn first_request(&self) {
        self.at("request");
        if self.name == "chatty" {
            println!("ggml prints what it likes");
        }
    }

    /// Something is said about the request.
    pub fn mid_request(&self) {
        self.at("mid");
    }

    fn at(&self, moment: &str) {
        if self.moment == moment {
            happen(&self.what);
        }
    }
}

fn happen(what: &str) {
    match what {
        "SIGKILL" => raise(Signal::KILL),
        "SIGSEGV" => raise(Signal::SEGV),
        "SIGILL" => raise(Signal::ILL),
        "SIGTERM" => raise(Signal::TERM),
        "SIGABRT" => std::process::abort(),
        "assert" => {
            eprintln!("/build/llama.cpp/ggml/src/ggml.c:7: GGML_ASSERT(a == b) failed");
            std::process::abort();
        }
        "no-memory" => {
            eprintln!("memory allocation of 99 bytes failed");
            std::process::abort();
        }
        "exit" => {
            eprintln!("the engine folder is empty");
            exit(3);
        }
        "hang" => hang(),
        "close-output" => close(dup2_stdout),
        "close-input" => close(dup2_stdin),
        "endless-line" => {
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(b"{\"event\":\"");
            for _ in 0..300 << 4 {
                let _ = out.write_all(&[b'x'; 64 << 10]);
            }
            let _ = out.write_all(b"\n");
        }
        "grandchild" => leave_behind("sleep", &["60"]),
        // A session of its own: no signal to the worker's group reaches it.
        "escaped-grandchild" => leave_behind("setsid", &["sleep", "60"]),
        "eat-memory" => {
            let mut eaten = Vec::new();
            loop {
                eaten.push(vec![1_u8; 1 << 20]);
            }
        }
        other => {
            eprintln!("unknown fault {other}");
            exit(2);
        }
    }
}

/// Dies while a child holds its pipes open.
fn leave_behind(program: &str, arguments: &[&str]) {
    match Command::new(program).args(arguments).spawn() {
        Ok(child) => {
            if program == "setsid" {
                until_it_leads_a_group(child.id());
            }
            eprintln!("left {} behind", child.id());
        }
        Err(error) => eprintln!("{program}: {error}"),
    }
    raise(Signal::SEGV);
}

/// Out of reach only once it has left our process group, which our end takes with it.
fn until_it_leads_a_group(child: u32) {
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    for _ in 0..2000 {
        if rustix::process::getpgid(child).ok() == child {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn raise(signal: Signal) -> ! {
    // More than once: Rust's own handler of SIGSEGV takes the first and waits for the fault again.
    loop {
        let _ = kill_process(getpid(), signal);
    }
}

fn close(replace: fn(std::fs::File) -> rustix::io::Result<()>) {
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .expect("BUG: there is always /dev/null");
    let _ = replace(null);
    hang();
}

pub fn hang() -> ! {
    loop {
        std::thread::park();
    }
}
