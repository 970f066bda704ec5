//! The data of the Model Context Protocol: every revision from 2024-11-05 to 2026-07-28 in one set of types.
//!
//! MCP messages are JSON-RPC. This crate reads and writes them, and says what exists in which revision. It does
//! nothing else: no I/O, no clock, no state. Servers and clients are built on top of it, and so are gateways and tools
//! that only look at messages.
//!
//! ```
//! use mcp_types::jsonrpc::{Limits, Message, write_result};
//! use mcp_types::{CallToolRequestParams, CallToolResult, Method};
//!
//! let line = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}}}"#;
//!
//! // One pass checks the text and finds the members; nothing is copied.
//! let Message::Request(request) = Message::parse(line, &Limits::default())? else { panic!("a request") };
//! assert_eq!(request.method, Method::TOOLS_CALL);
//!
//! // Parameters become typed once it is known what they are.
//! let params: CallToolRequestParams = request.params.expect("parameters").decode()?;
//!
//! #[derive(serde::Deserialize)]
//! struct Add { a: i64, b: i64 }
//! let Add { a, b } = params.arguments.expect("arguments").decode()?;
//!
//! let mut answer = Vec::new();
//! write_result(&mut answer, &request.id, &CallToolResult::text((a + b).to_string()))?;
//! assert_eq!(answer, br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"5"}]}}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where is what
//!
//! | feature | types |
//! |---|---|
//! | the envelope | [`jsonrpc`]: [`Message`](jsonrpc::Message), [`Payload`](jsonrpc::Payload), [`PayloadBuf`](jsonrpc::PayloadBuf), [`parse`](jsonrpc::parse()), `write_*`; [`RequestId`], [`Method`], [`ErrorObject`], [`ErrorCode`] |
//! | versions and eras | [`ProtocolVersion`] (what peers name), [`Revision`] (what is known here), [`Era`]; [`gate`] for what exists when; [`restrict_to`] to cut a value down to a revision |
//! | opening | [`InitializeRequestParams`], [`InitializeResult`] (legacy), [`DiscoverResult`] (modern), [`Implementation`], [`Icon`] |
//! | capabilities | [`ClientCapabilities`], [`ServerCapabilities`] and their parts; [`ClientCapability`] |
//! | tools | [`Tool`], [`CallToolRequestParams`], [`CallToolResult`], [`ListToolsResult`] |
//! | prompts | [`Prompt`], [`PromptMessage`], [`GetPromptRequestParams`], [`GetPromptResult`], [`ListPromptsResult`] |
//! | resources | [`Resource`], [`ResourceTemplate`], [`ResourceContents`], [`ReadResourceRequestParams`], [`ReadResourceResult`], [`ListResourcesResult`], [`ListResourceTemplatesResult`] |
//! | content | [`ContentBlock`] and its variants, [`Annotations`], [`Role`] |
//! | completion | [`CompleteRequestParams`], [`CompletionReference`], [`CompleteResult`] |
//! | elicitation | [`ElicitRequestParams`], [`RequestedSchema`], [`PrimitiveSchema`], [`ElicitResult`], [`ElicitValue`] |
//! | sampling | [`CreateMessageRequestParams`], [`SamplingMessage`], [`SamplingContent`], [`CreateMessageResult`] |
//! | roots | [`Root`], [`ListRootsResult`] |
//! | multi round-trip requests | [`InputRequiredResult`], [`InputRequest`], [`InputResponses`] |
//! | subscriptions | [`SubscriptionFilter`], [`SubscriptionsListenRequestParams`], [`SubscribeRequestParams`] (legacy), [`ResourceUpdatedNotificationParams`] |
//! | progress, cancellation, logging | [`ProgressNotificationParams`], [`ProgressToken`], [`CancelledNotificationParams`], [`LoggingMessageNotificationParams`], [`LoggingLevel`] |
//! | metadata | [`RequestMeta`], [`ResultMeta`], [`NotificationMeta`], [`Meta`]; [`meta`] for reserved keys, key names and trace context |
//! | tasks | [`tasks`] (the extension), [`core_tasks`] (experimental in 2025-11-25) |
//! | raw JSON | [`RawJson`], [`RawObject`], [`JsonObject`], [`Number`], [`OrderedMap`], [`OneOrMany`]; [`parse_value`] |
//!
//! # One superset
//!
//! A type holds the members of all revisions; its documentation says since when each exists. Members that only the
//! protocol layer sets ([`result_type`](field@CallToolResult::result_type), cache hints, the keys of the modern
//! [`RequestMeta`]) are optional here whatever a revision demands: [`gate::member`] tells what is required where.
//!
//! Nothing is lost on the way through. Unknown members are kept in metadata, capabilities, params and results; unknown
//! values of open sets such as [`Role`] and unknown content blocks survive; they, schemas, arguments and structured
//! content stay text, with their order and their numbers.
//!
//! Faults name the way to the member: `` `requestedSchema.properties`: missing field `type` ``.
//!
//! # Features
//!
//! `schemars` implements `schemars::JsonSchema` for the types. By default the crate depends on serde and serde_json
//! alone.

#![forbid(unsafe_code)]

mod codec;
mod generated;
mod json;
pub mod jsonrpc;
mod revision;
mod vocabulary;

pub use codec::{OneOrMany, UnknownValue};
pub use generated::*;
pub use json::{Number, OrderedMap, RawJson, RawObject, SchemaBudget, base64, parse_value};
pub use revision::{Era, ProtocolVersion, Restrict, Restriction, Revision, UnknownRevision, gate, restrict_to};
pub use vocabulary::{
    CacheHints, ClientCapability, ElicitValue, ErrorCode, ErrorObject, HeaderParam, InvalidFormContent, LoggingLevel,
    Meta, MissingRequiredClientCapabilityData, ProgressToken, RequestId, ResourceNotFoundData, ResultBody, ResultType,
    UnsupportedProtocolVersionData, UrlElicitationRequiredData, meta, tasks,
};

/// A JSON object whose members stay text, in order: what this crate does not know is kept like this.
pub type JsonObject = OrderedMap<RawJson>;
