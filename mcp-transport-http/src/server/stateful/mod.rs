//! Sessions of legacy clients.

mod orphaned;
mod reader;
mod readers;
mod record_sync;
mod runner;
mod session;
mod sessions;
mod stream;

pub(crate) use reader::StreamReader;
pub(crate) use session::FeedError;
pub(crate) use sessions::Sessions;
pub use stream::ResponseStream;
