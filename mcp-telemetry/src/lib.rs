//! OpenTelemetry metrics and trace contexts for servers and clients of the Model Context Protocol.
//!
//! [`Metrics`] is an observer that records what servers, clients and transports report, by the semantic conventions of
//! OpenTelemetry for MCP. It uses the API of OpenTelemetry only: the application chooses an SDK and exporters.
//!
//! # A server
//!
//! ```
//! # #[cfg(feature = "traces")] {
//! use std::sync::Arc;
//!
//! use mcp_server::{NoArguments, Server, tool};
//! use mcp_telemetry::Metrics;
//!
//! // The SDK is set up before: `opentelemetry::global::set_meter_provider(..)`
//! let metrics = Arc::new(Metrics::new(&opentelemetry::global::meter("mcp")));
//! let hello = tool("hello", async |_, _: NoArguments| "Hello!");
//! let server = Server::builder("greeter", "1.0")
//!     .tool(hello)
//!     .observer(metrics)
//!     // Spans are children of the client's, if the subscriber has the layer of `tracing-opentelemetry`.
//!     .trace_parent(mcp_telemetry::set_parent)
//!     .build()?;
//! # drop(server);
//! # }
//! # Ok::<(), mcp_server::BuildError>(())
//! ```
//!
//! Transports report to the observer of their server.
//!
//! # A client
//!
//! ```
//! # #[cfg(feature = "traces")] {
//! use std::sync::Arc;
//!
//! use mcp_client::Client;
//! use mcp_telemetry::Metrics;
//!
//! let metrics = Arc::new(Metrics::new(&opentelemetry::global::meter("mcp")));
//! let client = Client::builder("demo", "1.0")
//!     .observer(metrics)
//!     .trace_context(mcp_telemetry::current_trace_context);
//! # drop(client);
//! # }
//! ```
//!
//! # Metrics
//!
//! The durations are those of the conventions, in seconds, with the recommended buckets:
//!
//! | histogram | attributes |
//! |---|---|
//! | `mcp.server.operation.duration`, `mcp.client.operation.duration` | `mcp.method.name`, `gen_ai.tool.name` or `gen_ai.prompt.name`, `mcp.protocol.version`, `network.transport`, `network.protocol.name`, `error.type`, `rpc.response.status_code` |
//! | `mcp.server.session.duration`, `mcp.client.session.duration` | `mcp.protocol.version`, `network.transport`, `network.protocol.name`, `error.type` |
//!
//! An operation is a request or a notification. `error.type` is absent unless it failed: it is the code of a JSON-RPC error,
//! `tool_error` for a tool result with `isError`, `cancelled`, `timeout`, an HTTP status, or `_OTHER`. A session is a
//! connection: a session over HTTP, a process, a socket, or a single request where there are no sessions.
//!
//! The others are for operators:
//!
//! | metric | kind | counts | attributes |
//! |---|---|---|---|
//! | `mcp.server.active_requests` | up-down counter | requests that the server is processing | `mcp.method.name` |
//! | `mcp.client.active_requests` | up-down counter | requests of the client without a response | `mcp.method.name` |
//! | `mcp.server.queued_requests` | up-down counter | requests that wait for others to finish | |
//! | `mcp.server.refused_requests` | counter | HTTP requests that were refused before they reached the server | `http.response.status_code` |
//! | `mcp.server.session.count`, `mcp.client.session.count` | up-down counter | open sessions; single requests are not counted | |
//! | `mcp.server.http_session.count` | up-down counter | sessions over HTTP | `mcp.session.state`: `active` or `idle` |
//! | `mcp.server.http_session.idle_size` | up-down counter | bytes of idle sessions over HTTP | |
//! | `mcp.server.http_session.ended` | counter | sessions over HTTP that ended | `mcp.session.reason` |
//! | `mcp.server.http_session.refused` | counter | refused attempts to begin or enter a session over HTTP | `mcp.session.reason` |
//! | `mcp.server.stream.count` | up-down counter | open streams of events | `mcp.stream.kind`: `response`, `listen` or `standalone` |
//! | `mcp.server.slow_readers` | counter | connections that were closed because the client did not read | |
//! | `mcp.server.dropped_messages` | counter | messages to clients that were dropped | |
//! | `mcp.server.replayed_events` | counter | events that were sent again to clients | |
//! | `mcp.server.dropped_events` | counter | stored events that were dropped because of a limit, and cannot be replayed | |
//! | `mcp.server.lost_events` | counter | messages of sessions that had no stream to be sent on | |
//! | `mcp.server.input_rounds`, `mcp.client.input_rounds` | counter | results with input requests | `mcp.method.name` |
//! | `mcp.server.task.count` | up-down counter | tasks whose handlers are in this process | `mcp.task.status`: `working` or `input_required` |
//! | `mcp.server.task.created` | counter | tasks that this process created | |
//! | `mcp.server.task.finished` | counter | tasks whose end this process stored; those that expired are not counted | `mcp.task.status`: `completed`, `failed` or `cancelled` |
//! | `mcp.server.task.queued` | up-down counter | tasks in the queue of the store, looked at every 10 seconds; each process that shares the store reports the same number | |
//! | `mcp.server.task.refused` | counter | calls that could not become tasks | `mcp.task.reason`: `full`, `too_large` or `store_failed` |
//! | `mcp.server.task.input_rounds` | counter | times that tasks began to wait for input | |
//! | `mcp.server.task.taken_over` | counter | tasks that this process ran because the lease of an earlier run had expired | |
//! | `mcp.client.cache_lookups` | counter | lookups in the cache of results | `mcp.cache.result`: `hit` or `miss` |
//! | `mcp.client.child_restarts` | counter | restarts of server processes | |
//! | `mcp.client.logins` | counter | logins that ended | `mcp.is_successful` |
//! | `mcp.client.token_refreshes` | counter | refreshes of tokens that ended | `mcp.is_successful` |
//!
//! A metric has no points before it is used. [`METRIC_NAMES`] lists all names.
//!
//! # Cardinality
//!
//! Peers cannot create series: methods that the specification does not have count as `_OTHER`, and so do names of tools and
//! prompts that are longer than 256 bytes or exceed a [maximum](MetricsOptions::max_names), and errors after the first 64
//! distinct ones. The [number of series](MetricsOptions::max_series) of each histogram is limited as well.
//!
//! # Cost
//!
//! Numbers that increase and decrease are read when metrics are collected. A request changes one of them, and records its
//! duration, and that of its session if it is a single request. It allocates nothing once its series exist. Most of the cost
//! is that the SDK looks up attributes, which the feature `bound-instruments` avoids.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `traces` | `set_parent` and `current_trace_context`, which connect the spans of clients and servers |
//! | `prometheus` | `Prometheus`, which renders metrics in the text format of Prometheus |
//! | `bound-instruments` | durations with about a fifth of the instructions, by an experimental API of `opentelemetry`, for meters of `opentelemetry_sdk`; others may not support it, and then record no durations |
//!
//! All of them depend on `opentelemetry_sdk`.

#![forbid(unsafe_code)]

mod active;
mod counters;
mod durations;
mod error_type;
mod methods;
mod metrics;
mod names;
mod observables;
mod options;
mod parts;
#[cfg(feature = "prometheus")]
mod prometheus;
#[cfg(feature = "traces")]
mod propagation;
mod series;
mod series_cache;
mod sources;

pub use metrics::Metrics;
pub use names::METRIC_NAMES;
pub use options::MetricsOptions;
#[cfg(feature = "prometheus")]
pub use prometheus::Prometheus;
#[cfg(feature = "traces")]
pub use propagation::{current_trace_context, set_parent};
