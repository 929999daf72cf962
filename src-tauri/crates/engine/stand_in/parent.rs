//! A process that keeps one session, for tests that kill it, starve it or look at its size.

use std::io::BufRead;

use twospeed_engine::protocol::{Load, PageCache, Request};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{Engine, Incoming, Settings, Start, WorkerProcess};

/// Waits for a line, starts the worker, asks it to load, then prints what it hears as JSON:
/// `{"pid":..}` first, `{"end":.., "peak_kib":..}` last.
pub fn keep_session(fault: &str) {
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("BUG: a runtime can be made");
    runtime.block_on(keep(fault));
}

async fn keep(fault: &str) {
    let program = std::env::current_exe().expect("BUG: this program has a path");
    let start = Start {
        variant: Some(fault.to_owned()),
        set_aside: Vec::new(),
    };
    let mut session = match WorkerProcess::at(program).start(&start).await {
        Ok(session) => session,
        Err(error) => return println!("{}", serde_json::json!({"error": error.to_string()})),
    };
    println!("{}", serde_json::json!({"pid": session.pid()}));
    let load = Request::Load(Load {
        model: ModelPath("model.gguf".into()),
        settings: Settings::default(),
        page_cache: PageCache::AsIs,
    });
    if let Err(error) = session.send(load) {
        eprintln!("{error}");
    }
    loop {
        match session.next().await {
            Incoming::Event(event) => {
                println!("{}", serde_json::json!({"event": event}));
                if event.is_closing() {
                    println!("{}", serde_json::json!({"peak_kib": peak_kib()}));
                }
            }
            Incoming::Ended(end) => {
                return println!("{}", serde_json::json!({"end": end}));
            }
        }
    }
}

/// Highest resident memory of this process in KiB.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}
