//! The protocol's rules about HTTP headers and statuses, as pure functions.
//!
//! # Examples
//!
//! A gateway that routes by headers can check that they match the body:
//!
//! ```
//! use http::{HeaderMap, HeaderValue};
//! use mcp_transport_http::rules::header_names::METHOD;
//! use mcp_transport_http::rules::headers::check_method_and_name;
//! use mcp_types::jsonrpc::{Limits, Message};
//!
//! let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
//! let mut headers = HeaderMap::new();
//! headers.insert(METHOD, HeaderValue::from_static("tools/list"));
//! if let Ok(Message::Request(request)) = Message::parse(body, &Limits::default()) {
//!     assert!(check_method_and_name(&headers, &request).is_ok());
//! }
//! ```

pub mod header_encoding;
pub mod header_names;
pub mod headers;
pub mod hosts;
pub mod media;

#[cfg(feature = "server")]
pub mod claims;
#[cfg(feature = "server")]
pub mod era;
#[cfg(feature = "server")]
pub mod status;
