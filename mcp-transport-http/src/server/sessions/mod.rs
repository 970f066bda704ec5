//! Legacy clients with sessions.

mod caretaker;
mod keeper;
mod reader;
mod readers;
mod runner;
mod session;
mod stateful;
mod stream;

pub(crate) use reader::Reader;
pub(crate) use stateful::{Entered, Sessions, Taken};
pub use stream::ResponseStream;
