//! Types of the Model Context Protocol for all revisions from 2024-11-05 to 2026-07-28, and their JSON-RPC messages.
//!
//! This crate parses and serializes messages, and knows which revision has which method and member. It performs no I/O and
//! keeps no state. To write a server or a client, use `mcp-server` or `mcp-client`, which are built on this crate; use
//! it directly for gateways, proxies and tools that inspect messages.
//!
//! The revisions form two [eras](Era): *legacy*, with the `initialize` handshake, and *modern*, from 2026-07-28,
//! without.
//!
//! # Reading a message
//!
//! [`Message::parse`](jsonrpc::Message::parse) validates one line or HTTP body without copying it. `params` and `result`
//! remain text until they are decoded into the type of their method.
//!
//! ```
//! use mcp_types::jsonrpc::{Limits, Message};
//! use mcp_types::{CallToolRequestParams, Method};
//!
//! let line = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}}}"#;
//! let Message::Request(request) = Message::parse(line, &Limits::default())? else { panic!("not a request") };
//! assert_eq!(request.method, Method::TOOLS_CALL);
//!
//! let params: CallToolRequestParams = request.params.expect("params").decode()?;
//! assert_eq!(params.name, "add");
//!
//! // Arguments are raw JSON, which deserializes into any type.
//! #[derive(serde::Deserialize)]
//! struct Add { a: i64, b: i64 }
//! let Add { a, b } = params.arguments.expect("arguments").decode()?;
//! assert_eq!(a + b, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Writing a message
//!
//! Types have a constructor for their required members and setters for the optional ones.
//!
//! ```
//! use mcp_types::jsonrpc::EncodedMessage;
//! use mcp_types::{CallToolResult, ContentBlock, RequestId};
//!
//! let result = CallToolResult::new(vec![ContentBlock::text("5")]).is_error(false);
//! let message = EncodedMessage::result(&RequestId::from(1), &result)?;
//! assert_eq!(
//!     message.as_bytes(),
//!     br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"5"}],"isError":false}}"#
//! );
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! # Differences between revisions
//!
//! Each type has the members of all revisions; its documentation names the revisions of each member. [`gate`] has the same
//! information at run time, and [`restrict_to`] removes the members that a revision does not have.
//!
//! ```
//! use mcp_types::{Icon, Revision, Tool, gate, restrict_to};
//!
//! let icons = gate::member("Tool", "icons").expect("a known member");
//! assert!(icons.exists_in(Revision::V2025_11_25) && !icons.exists_in(Revision::V2025_06_18));
//!
//! let mut tool = Tool::new("search").icons(vec![Icon::new("https://example.com/icon.png")]);
//! let restriction = restrict_to(&mut tool, Revision::V2025_06_18);
//! assert_eq!((tool.icons, restriction.dropped()), (None, &["Tool.icons"][..]));
//! ```
//!
//! Members that `mcp-kernel` sets ([`result_type`](field@CallToolResult::result_type), cache hints, the reserved
//! keys of [`RequestMeta`]) are optional here even in revisions that require them; see [`gate::member`].
//!
//! # Unknown and invalid data
//!
//! Data of later revisions and extensions is preserved: unknown members of every object ([`extra`](field@Tool::extra)),
//! unknown values of open sets such as [`Role`], and unknown content blocks. Schemas, arguments and structured content are
//! raw JSON, so that their text does not change.
//!
//! Errors name the path of the member: `` `requestedSchema.properties`: missing field `type` ``.
//!
//! # Overview
//!
//! | feature | types |
//! |---|---|
//! | JSON-RPC | [`jsonrpc`]: [`Message`](jsonrpc::Message), [`Payload`](jsonrpc::Payload), [`PayloadBuf`](jsonrpc::PayloadBuf), [`parse`](jsonrpc::parse()), `write_*`; [`RequestId`], [`Method`], [`ErrorObject`], [`ErrorCode`] |
//! | versions and eras | [`ProtocolVersion`] (as sent by peers), [`Revision`] (the known ones), [`Era`]; [`gate`]; [`restrict_to`] |
//! | lifecycle | [`InitializeRequestParams`], [`InitializeResult`] (legacy), [`DiscoverResult`] (modern), [`Implementation`], [`Icon`] |
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
//! | metadata | [`RequestMeta`], [`ResultMeta`], [`NotificationMeta`], [`Meta`]; [`meta`]: reserved keys, naming rules, trace context |
//! | tasks | [`tasks`] (the extension), [`core_tasks`] (experimental in 2025-11-25) |
//! | raw JSON | [`RawJson`], [`RawObject`], [`ObjectBuf`], [`ObjectRef`], [`JsonObject`], [`Number`], [`OrderedMap`], [`OneOrMany`]; [`parse_value`] |
//!
//! # Features
//!
//! - `schemars`: implements `schemars::JsonSchema` for the types.
//!
//! Without it, the crate depends on serde and serde_json only.

#![forbid(unsafe_code)]

mod codec;
mod generated;
mod json;
pub mod jsonrpc;
mod revision;
mod vocabulary;

pub use codec::{OneOrMany, UnknownValue};
pub use generated::*;
pub use json::{Number, ObjectBuf, ObjectRef, OrderedMap, RawJson, RawObject, SchemaBudget, base64, parse_value};
pub use revision::{
    Era, ProtocolVersion, Restrict, Restriction, Revision, UnknownRevision, gate, restrict_raw, restrict_to,
};
pub use vocabulary::{
    ClientCapability, ElicitValue, ErrorCode, ErrorObject, FieldChoice, FieldKind, FormDraft, FormField, HeaderParam,
    InvalidFormContent, LoggingLevel, Meta, MissingRequiredClientCapabilityData, ProgressToken, RequestId,
    ResourceNotFoundData, ResultBody, ResultMembers, ResultType, UnsupportedProtocolVersionData,
    UrlElicitationRequiredData, meta, tasks,
};

/// A JSON object whose values are raw JSON, in order; it holds unknown members.
pub type JsonObject = OrderedMap<RawJson>;
