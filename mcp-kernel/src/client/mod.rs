//! The client's side of a connection.

mod calls;
mod config;
mod connection;
mod detect;
mod error_body;
mod event;
mod inputs;
mod lifecycle;
mod outbox;
mod server_requests;

pub use config::{CancelStyle, ClientConfig, Mode};
pub use connection::Connection;
pub use detect::{ConnectError, DetectedRevision};
pub use event::{Event, Outcome, Responder, ServerFacts, Transmit};
