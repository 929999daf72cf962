//! Being asked to end, by a person (Ctrl-C) or by the system.

use std::io;

/// Requests to end, from the first one on. While one of these lives they end nothing by themselves.
pub struct Interrupts {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
}

impl Interrupts {
    /// Listens.
    #[cfg(unix)]
    pub fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            signals: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ],
        })
    }

    /// Waits for the next request.
    #[cfg(unix)]
    pub async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }

    /// Listens.
    #[cfg(not(unix))]
    pub fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next request.
    #[cfg(not(unix))]
    pub async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
