//! The engine seen from outside: what is asked of it, what it answers, and how its process is kept.
//!
//! No llama.cpp here. `worker` is the other side of [`protocol`]; `measure` talks to an
//! [`Engine`] and does not know whether a process or a script answers.

pub mod end;
pub mod engine;
pub mod fake;
mod heard;
mod lines;
mod link;
mod os;
pub mod process;
pub mod protocol;
pub mod settings;
mod supervise;
mod tap;
pub mod variants;

pub use end::{Doing, How, ProtocolFault, WorkerEnd};
pub use engine::{Engine, Incoming, SendError, Session, Start, StartError};
pub use fake::FakeEngine;
pub use link::Patience;
pub use process::WorkerProcess;
pub use settings::{FlashAttention, Settings, TestSpec};
