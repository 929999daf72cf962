//! The engine, as far as it is installed.

use std::sync::Arc;

use async_trait::async_trait;
use twospeed_engine::process::WorkerProcess;
use twospeed_engine::{Engine, Session, Start, StartError};

/// The engine beside this program; without it the window opens all the same, and says so to whoever measures.
pub fn installed() -> Arc<dyn Engine> {
    match WorkerProcess::find() {
        Ok(worker) => Arc::new(worker),
        Err(_) => Arc::new(Missing),
    }
}

/// Looks again at every start: it may have been installed meanwhile.
struct Missing;

#[async_trait]
impl Engine for Missing {
    async fn start(&self, start: &Start) -> Result<Session, StartError> {
        WorkerProcess::find()?.start(start).await
    }
}
