//! Sessions of legacy clients.

mod migration;
mod orphaned;
mod reader;
mod readers;
mod record_sync;
mod runner;
mod session;
mod session_code;
mod sessions;
mod stream;
mod streams;

pub(crate) use migration::MigrateSession;
pub use migration::SessionMigration;
pub(crate) use reader::StreamReader;
pub(crate) use sessions::Sessions;
pub use stream::ResponseStream;
