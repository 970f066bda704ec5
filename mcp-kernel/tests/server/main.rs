//! A scripted client against the server's side of a connection.
//!
//! Each test tells a story in raw messages, with a clock of its own, and ends with nothing left open, queued or due.

mod admission;
mod batches;
mod calls;
mod cancellation;
mod connections;
mod consulting;
mod discover;
mod driver_contract;
mod eras;
mod extensions;
mod handshake;
mod hostile;
mod in_flight;
mod legacy_changes;
mod limits;
mod listening;
mod logging;
mod observed;
mod progress;
mod raw_text;
mod results;
mod resuming;
mod script;
mod slow_readers;
