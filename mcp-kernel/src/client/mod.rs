//! The client side of a connection.
//!
//! `lifecycle` connects, with the decisions of `detect`. `calls` sends requests and notifications, `inputs` processes
//! messages of the server, and `server_requests` those that are requests. Outgoing messages are queued in `outbox`.

mod calls;
mod config;
mod connection;
mod detect;
mod error_body;
mod event;
mod inputs;
mod lifecycle;
mod observed;
mod outbox;
mod server_requests;

pub use config::{CancelStyle, ClientConfig, Mode};
pub use connection::Connection;
pub use detect::{ConnectError, DetectedRevision};
pub use event::{CallHeaders, CallResult, Event, Responder, ServerFacts, Transmit};

pub use crate::handled_message::HandledMessage;
