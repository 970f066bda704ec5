//! The names that most servers and clients use, for `use mcp::prelude::*`.
//!
//! | names | feature |
//! |---|---|
//! | `Server`, `tool`, `prompt`, `resource`, `template`, `RequestContext`, `HandlerError`, `Json`, `NoArguments` | `server` |
//! | `JsonSchema`, and `schemars` for the code that its derive generates | `server` |
//! | `Client` | `client` |
//! | `ChildTransport`, `ServerCommand` | `client` and `stdio` |
//! | `HttpService`, `HttpOptions` | `http` |
//! | `HttpTransport` | `http-client` |
//! | `json!` | |

#[cfg(feature = "client")]
pub use mcp_client::Client;
#[cfg(feature = "server")]
pub use mcp_server::{HandlerError, Json, NoArguments, RequestContext, Server, prompt, resource, template, tool};
#[cfg(feature = "http-client")]
pub use mcp_transport_http::HttpTransport;
#[cfg(feature = "http")]
pub use mcp_transport_http::{HttpOptions, HttpService};
#[cfg(all(feature = "client", feature = "stdio"))]
pub use mcp_transport_stdio::{ChildTransport, ServerCommand};
#[cfg(feature = "server")]
pub use schemars::{self, JsonSchema};
pub use serde_json::json;
