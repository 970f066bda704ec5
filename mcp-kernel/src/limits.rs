//! Limits for everything that a peer can make large.

use mcp_types::jsonrpc;

/// Limits for everything that a peer can make large.
///
/// Each limit has an error of its own that names it. Raising a limit raises the memory that one peer can occupy;
/// nothing is allocated in advance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The limits of parsing a message.
    pub message: jsonrpc::Limits,
    /// The maximum number of concurrent requests of the peer. Defaults to 100.
    pub max_in_flight: usize,
    /// The maximum size of the parameters of a server's concurrent requests to a client. One request is always
    /// accepted. Defaults to 16 MiB.
    pub max_in_flight_bytes: usize,
    /// The maximum number of requests that a server queues beyond `max_in_flight`; more get an error response. Defaults
    /// to 64.
    pub max_queued: usize,
    /// The maximum size of the parameters of queued requests. Defaults to 4 MiB.
    pub max_queued_bytes: usize,
    /// The maximum size of a request's id. Defaults to 1 KiB.
    pub max_id_bytes: usize,
    /// The maximum size of a resource URI in a request. Defaults to 8 KiB.
    pub max_uri_bytes: usize,
    /// The maximum number of concurrent requests to the peer. Defaults to 100.
    pub max_calls: usize,
    /// The maximum number of open `subscriptions/listen` streams. Defaults to 16.
    pub max_listen_streams: usize,
    /// The maximum number of resource URIs in one `subscriptions/listen` request. Defaults to 256.
    pub max_uris_per_listen_stream: usize,
    /// The maximum number of resources that a legacy client can subscribe to. Defaults to 1,024.
    pub max_subscriptions: usize,
    /// The maximum size of the URIs of these resources, which are kept as long as the connection. Defaults to 256 KiB.
    pub max_subscription_bytes: usize,
    /// The maximum size of the parameters of `initialize`, which are kept as long as the connection. Defaults to 64
    /// KiB.
    pub max_initialize_bytes: usize,
    /// The maximum size of a request's `_meta`. Defaults to 64 KiB.
    pub max_meta_bytes: usize,
    /// The maximum size of the `requestState` of a retry. Defaults to 32 KiB.
    pub max_request_state_bytes: usize,
    /// The maximum number of `inputResponses` of a retry. Defaults to 256.
    pub max_input_responses: usize,
    /// The maximum number of messages queued for one route of a server. Beyond it, progress notifications are dropped,
    /// then log messages, then notifications of changes. Defaults to 256.
    pub max_route_messages: usize,
    /// The maximum size of the messages queued for one route of a server. Beyond it, messages are dropped as for
    /// `max_route_messages`. Defaults to 4 MiB.
    pub max_route_bytes: usize,
    /// The maximum number of messages queued for the peer. Beyond it, no input is accepted, and a server drops progress
    /// notifications and log messages. Defaults to 1,024.
    pub max_outbox_messages: usize,
    /// The maximum size of the messages queued for the peer, with the effect of `max_outbox_messages`. Defaults to 16
    /// MiB.
    pub max_outbox_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: jsonrpc::Limits::default(),
            max_in_flight: 100,
            max_in_flight_bytes: 16 * 1024 * 1024,
            max_queued: 64,
            max_queued_bytes: 4 * 1024 * 1024,
            max_id_bytes: 1024,
            max_uri_bytes: 8 * 1024,
            max_calls: 100,
            max_listen_streams: 16,
            max_uris_per_listen_stream: 256,
            max_subscriptions: 1024,
            max_subscription_bytes: 256 * 1024,
            max_initialize_bytes: 64 * 1024,
            max_meta_bytes: 64 * 1024,
            max_request_state_bytes: 32 * 1024,
            max_input_responses: 256,
            max_route_messages: 256,
            max_route_bytes: 4 * 1024 * 1024,
            max_outbox_messages: 1024,
            max_outbox_bytes: 16 * 1024 * 1024,
        }
    }
}
