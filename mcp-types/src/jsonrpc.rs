//! JSON-RPC 2.0 messages.
//!
//! [`Message::parse`] and [`parse`], which also accepts batches, read one line or HTTP body in a single pass. Envelope
//! members become typed; `params` and `result` remain text with an index of their members, and are deserialized with
//! [`Payload::decode`]. The error is an [`InvalidMessage`], with the position, the code and the id for the response.
//!
//! An [`EncodedMessage`] is a serialized message, always on a single line. The `write_*` functions append one to a buffer.
//!
//! ```
//! use mcp_types::jsonrpc::{Limits, Message};
//!
//! let line = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}"#;
//! let message = Message::parse(line, &Limits::default())?;
//! let Message::Request(request) = message else {
//!     panic!("it has a method and an id");
//! };
//! assert_eq!(request.method, "tools/call");
//!
//! #[derive(serde::Deserialize)]
//! struct Call<'a> {
//!     name: &'a str,
//! }
//! let params = request.params.expect("it has parameters");
//! assert_eq!(params.decode::<Call<'_>>()?.name, "add");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decode;
mod encoded;
mod envelope;
mod fault;
mod incoming;
mod invalid_message;
mod invalid_payload;
mod limits;
mod members;
mod message;
mod payload;
mod summary;
mod write;

pub use encoded::EncodedMessage;
pub use fault::Fault;
pub use incoming::{Incoming, parse};
pub use invalid_message::InvalidMessage;
pub use invalid_payload::InvalidPayload;
pub use limits::Limits;
pub use message::{Message, Notification, Request, Response};
pub use payload::{Payload, PayloadBuf};
pub use summary::{EnvelopeKind, EnvelopeScan, EnvelopeSummary};
pub use write::{UnknownId, write_error, write_notification, write_request, write_result};
