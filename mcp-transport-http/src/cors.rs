//! The methods and headers of the protocol, for the CORS settings of servers that web pages use.
//!
//! A browser lets a page of another origin use a server if the server allows it twice: [`HttpService`](crate::HttpService)
//! accepts the origin (`HttpOptions::allow_origin`), and the responses have CORS headers, which a layer such as `CorsLayer` of
//! `tower-http` adds. These are its settings:
//!
//! ```
//! use http::HeaderValue;
//! use mcp_transport_http::cors;
//! use tower_http::cors::CorsLayer;
//!
//! let layer = CorsLayer::new()
//!     .allow_origin(HeaderValue::from_static("https://app.example.com"))
//!     .allow_methods(cors::allowed_methods())
//!     .allow_headers(cors::allowed_headers())
//!     .expose_headers(cors::exposed_headers());
//! ```
//!
//! Put it around middleware that authenticates: a browser sends its preflight request without credentials.
//!
//! # `Mcp-Param-*`
//!
//! Modern clients repeat the parameters of a tool whose schema says so (`x-mcp-header`) in headers of their own. CORS has no
//! wildcard for a part of a name, so that they have to be added one by one:
//!
//! ```
//! use http::HeaderName;
//! use mcp_transport_http::cors;
//!
//! let mut headers = cors::allowed_headers();
//! headers.push(HeaderName::from_static("mcp-param-region"));
//! ```
//!
//! If tools come and go, let the layer allow what the browser asks for (`AllowHeaders::mirror_request()`), but only for
//! origins that you trust.

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, Method};

use crate::rules::header_names::{LAST_EVENT, METHOD, NAME, SESSION, VERSION};

/// Returns the HTTP methods of the protocol: `POST`, and `GET` and `DELETE` for sessions.
#[must_use]
pub fn allowed_methods() -> Vec<Method> {
    vec![Method::GET, Method::POST, Method::DELETE]
}

/// Returns the headers that clients send, without `Mcp-Param-*`.
#[must_use]
pub fn allowed_headers() -> Vec<HeaderName> {
    vec![ACCEPT, AUTHORIZATION, CONTENT_TYPE, LAST_EVENT, METHOD, NAME, SESSION, VERSION]
}

/// Returns the headers of responses that a page has to read: the id of its session, how to authenticate, and when to try
/// again.
#[must_use]
pub fn exposed_headers() -> Vec<HeaderName> {
    vec![RETRY_AFTER, SESSION, WWW_AUTHENTICATE]
}
