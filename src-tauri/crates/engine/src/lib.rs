//! The engine seen from outside: what is asked of it, what it answers, and how its process is kept.
//!
//! No llama.cpp here. `worker` is the other side of [`protocol`]; `measure` talks to an
//! [`Engine`] and does not know whether a process or a script answers.

pub mod end;
pub mod engine;
mod link;
pub mod protocol;
pub mod settings;

pub use end::{Doing, How, ProtocolFault, WorkerEnd};
pub use engine::{Engine, Incoming, SendError, Session, Start, StartError};
pub use settings::{FlashAttention, Settings, TestSpec};
