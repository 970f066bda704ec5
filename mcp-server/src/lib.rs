//! Servers of the Model Context Protocol: typed tools, prompts and resources, the same for every revision.

#![forbid(unsafe_code)]

mod answer;
mod ask;
mod build_error;
mod builder;
mod callers;
mod cancel;
mod completion;
mod connection;
mod connection_handle;
mod context;
mod dispatch;
mod endpoint;
mod extensions;
pub mod form;
mod guarded;
mod header_params;
mod hub;
#[cfg(feature = "tower")]
mod layers;
mod method;
mod notification;
mod page;
mod prompt;
mod registry;
mod reply;
mod resource;
mod schema;
mod server;
mod settings;
mod shared;
mod tasks;
mod telemetry;
mod text_values;
mod tool;
mod tool_result;
mod uri_template;
#[cfg(feature = "validate")]
mod validate;

pub use answer::Answer;
pub use ask::{AskError, ElicitContent, Elicited, NotAccepted};
pub use build_error::BuildError;
pub use builder::ServerBuilder;
pub use completion::{Completer, Typed};
pub use connection::{Caller, Connection};
pub use connection_handle::ConnectionHandle;
pub use context::{Progress, RequestContext};
pub use endpoint::{AnswerFuture, BoxFuture, Endpoint, Request};
pub use extensions::Extensions;
pub use mcp_kernel::server::{Extension, Principal};
pub use mcp_kernel::{CallOptions, Change, Limits};
pub use mcp_types as types;
pub use mcp_types::ClientCapability;
pub use notification::Notification;
pub use prompt::{IntoPromptResult, Prompt, prompt};
pub use registry::Registry;
pub use resource::{IntoContents, Resource, Template, blob_resource, resource, template, text_resource};
pub use schema::NoArguments;
pub use server::Server;
pub use settings::{List, Mode};
pub use text_values::InvalidText;
pub use tool::{ArgumentErrors, Tool, raw_tool, tool};
pub use tool_result::{HandlerError, IntoToolResult, Json, Outcome};
pub use uri_template::{InvalidTemplate, UriTemplate, UriValue, UriVariables};
