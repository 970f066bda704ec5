//! The server side of a connection.
//!
//! `inputs` processes messages of the client. A request passes `admission`, and is processed by `dispatch` if it is
//! built in, or else by the application with the commands in `responses`, `commands` and `server_requests`. Outgoing
//! messages are queued in `outbox`.

mod admission;
mod announcement;
mod claims;
mod client;
mod commands;
mod config;
mod connection;
mod dispatch;
mod envelope;
mod event;
mod handshake;
mod in_flight;
mod inputs;
mod known_clients;
mod lifecycle;
mod listen_streams;
mod observed;
mod outbox;
mod rare;
mod responses;
mod scope;
mod server_requests;
mod session_state;
mod transmit;

pub use admission::is_modern;
pub use announcement::Announcement;
pub use claims::RequestClaims;
pub use commands::Delivery;
pub use config::{ProtocolExtension, ServerConfig};
pub use connection::Connection;
pub use event::Event;
pub use handshake::HandshakeRequest;
pub use in_flight::Responder;
pub use lifecycle::SecondHandshake;
pub use listen_streams::ListenStreams;
pub use scope::{DetachedRequest, Principal, RequestScope};
pub use session_state::SessionState;
pub use transmit::{Failure, Route, Transmit};

pub use crate::handled_message::HandledMessage;
