//! The names that most servers and clients use, for `use mcp::prelude::*`.
//!
//! | names | feature |
//! |---|---|
//! | `Server`, `tool`, `prompt`, `resource`, `template`, `RequestContext`, `HandlerError`, `Json`, `NoArguments` | `server` |
//! | `tool_fn`, `prompt_fn`, `resource_fn`, `template_fn`, `State`, `Principal` | `server` |
//! | `Handle`, `Handles`, `HandleValue` | `server` |
//! | `JsonSchema`, and `schemars` for the code that its derive generates | `server` |
//! | `Tasks`, `TaskSupport`, `TaskOptions`, `MemoryTaskStore` | `tasks` |
//! | `Client` | `client` |
//! | `ChildTransport`, `ServerCommand` | `client` and `stdio` |
//! | `HttpService`, `HttpOptions` | `http` |
//! | `HttpTransport` | `http-client` |
//! | `json!` | |

#[cfg(feature = "client")]
pub use mcp_client::Client;
#[cfg(feature = "server")]
pub use mcp_server::extract::State;
#[cfg(feature = "server")]
pub use mcp_server::{
    Handle, HandleValue, HandlerError, Handles, Json, NoArguments, Principal, RequestContext, Server, prompt,
    prompt_fn, resource, resource_fn, template, template_fn, tool, tool_fn,
};
#[cfg(feature = "tasks")]
pub use mcp_tasks::{MemoryTaskStore, TaskOptions, TaskSupport, Tasks};
#[cfg(feature = "http-client")]
pub use mcp_transport_http::HttpTransport;
#[cfg(feature = "http")]
pub use mcp_transport_http::{HttpOptions, HttpService};
#[cfg(all(feature = "client", feature = "stdio"))]
pub use mcp_transport_stdio::{ChildTransport, ServerCommand};
#[cfg(feature = "server")]
pub use schemars::{self, JsonSchema};
pub use serde_json::json;
