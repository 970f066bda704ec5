//! A server as a child process: started, watched, ended.

mod group;
mod process;
mod spawn;
mod stderr;

pub use process::{ChildProcess, Exited, Ladder};
pub use spawn::{Spawn, SpawnError};
pub use stderr::Stderr;
