//! A server as a child process: started, watched, ended.

mod environment;
mod process;
mod spawn;
mod stderr;
mod tree;

pub use process::{ChildProcess, Exited, Ladder};
pub use spawn::{Spawn, SpawnError};
pub use stderr::Stderr;
