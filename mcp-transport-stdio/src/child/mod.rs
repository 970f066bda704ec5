//! Server processes.

mod command;
mod environment;
mod process;
mod stderr;
mod tree;

pub use command::{ServerCommand, SpawnError};
pub use process::{ChildProcess, ShutdownTimeouts};
pub use stderr::Stderr;
