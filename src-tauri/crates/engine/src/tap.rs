//! The worker's pipes, read and written a line at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

use crate::end::ProtocolFault;
use crate::heard::Heard;
use crate::lines::{Lines, Log};
use crate::protocol::Request;
use crate::supervise::Note;

/// A dead worker's pipes may be held open by a child of its: what came before the death is there
/// already, so this long is waited for more.
pub(crate) const DRAIN_PATIENCE: Duration = Duration::from_millis(200);

/// And this much is read: more than any pipe holds.
const DRAIN_BYTES: usize = 2 << 20;

/// A pipe of the worker, read until it ends or its owner is dead and it runs dry.
pub(crate) struct Tap<R> {
    from: R,
    dead: watch::Receiver<bool>,
    buffer: Box<[u8]>,
    wait_left: Duration,
    bytes_left: usize,
}

impl<R: AsyncRead + Unpin> Tap<R> {
    pub(crate) fn new(from: R, dead: watch::Receiver<bool>) -> Self {
        Self {
            from,
            dead,
            buffer: vec![0; 64 << 10].into(),
            wait_left: DRAIN_PATIENCE,
            bytes_left: DRAIN_BYTES,
        }
    }

    /// The next bytes, never none; `None` at the end.
    async fn read(&mut self) -> Option<&[u8]> {
        let alive = if *self.dead.borrow() {
            None
        } else {
            tokio::select! {
                biased;
                got = self.from.read(&mut self.buffer) => Some(got.unwrap_or(0)),
                () = death(&mut self.dead) => None,
            }
        };
        let got = match alive {
            Some(got) => got,
            None => self.drain().await,
        };
        (got > 0).then(|| &self.buffer[..got])
    }

    async fn drain(&mut self) -> usize {
        let before = Instant::now();
        let got = match timeout(self.wait_left, self.from.read(&mut self.buffer)).await {
            Ok(Ok(got)) => got.min(self.bytes_left),
            Ok(Err(_)) | Err(_) => 0,
        };
        self.wait_left = self.wait_left.saturating_sub(before.elapsed());
        self.bytes_left -= got;
        got
    }
}

/// Waits for the death of the worker.
async fn death(dead: &mut watch::Receiver<bool>) {
    // An error says that the supervisor is gone, and its worker with it.
    let _ = dead.wait_for(|dead| *dead).await;
}

/// Reads what the worker says.
pub(crate) async fn read_output<R: AsyncRead + Unpin>(
    mut tap: Tap<R>,
    mut heard: Heard,
    note: mpsc::UnboundedSender<Note>,
) {
    let mut lines = Lines::default();
    while let Some(mut bytes) = tap.read().await {
        while let Some(line) = lines.next(&mut bytes) {
            heard.line(line).await;
        }
    }
    if let Some(line) = lines.rest() {
        heard.line(line).await;
    }
    let _ = note.send(Note::Fault(ProtocolFault::OutputClosed));
}

/// Reads what the worker prints.
pub(crate) async fn read_log<R: AsyncRead + Unpin>(mut tap: Tap<R>, log: Arc<Log>) {
    let mut lines = Lines::default();
    while let Some(mut bytes) = tap.read().await {
        while let Some(line) = lines.next(&mut bytes) {
            log.push(&line);
        }
    }
    if let Some(line) = lines.rest() {
        log.push(&line);
    }
}

/// Writes what the worker is asked; its input ends when nobody can ask any more.
pub(crate) async fn write_input<W: AsyncWrite + Unpin>(
    mut to: W,
    mut requests: mpsc::UnboundedReceiver<Request>,
    note: mpsc::UnboundedSender<Note>,
) {
    while let Some(request) = requests.recv().await {
        let mut line =
            serde_json::to_vec(&from_anywhere(request)).expect("BUG: a request has no map keys");
        line.push(b'\n');
        let written = async {
            to.write_all(&line).await?;
            to.flush().await
        };
        if written.await.is_err() {
            let _ = note.send(Note::Fault(ProtocolFault::InputClosed));
            return;
        }
    }
}

/// The worker has another working directory: a path relative to ours means nothing there.
fn from_anywhere(mut request: Request) -> Request {
    if let Request::Load(load) = &mut request
        && let Ok(path) = std::path::absolute(&load.model.0)
    {
        load.model.0 = path;
    }
    request
}
