//! How much a peer may make us keep.

use mcp_types::jsonrpc;

/// Bounds everything that a peer can make large.
///
/// Each limit has a refusal with a name of its own, so that an operator can tell which one was hit. Raising one costs
/// memory in proportion; none costs anything before it is used.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// What one incoming text may cost to read.
    pub message: jsonrpc::Limits,
    /// How many requests of the peer may be worked on at once. Default: 100.
    pub max_in_flight: usize,
    /// How many bytes of parameters the requests of a server may have that a client works on; one is always taken.
    /// Default: 16 MiB.
    pub max_in_flight_bytes: usize,
    /// How many more may wait for one of those to end; the next one is refused. Default: 64.
    pub max_queued: usize,
    /// How many bytes of parameters may wait. Default: 4 MiB.
    pub max_queued_bytes: usize,
    /// How many bytes the id of a request may have. Default: 1 KiB.
    pub max_id_bytes: usize,
    /// How many bytes the address of a resource may have that is read or subscribed to. Default: 8 KiB.
    pub max_uri_bytes: usize,
    /// How many requests to the peer may be open. Default: 100.
    pub max_calls: usize,
    /// How many listen requests may be open. Default: 16.
    pub max_listen_streams: usize,
    /// How many addresses one listen request may name. Default: 256.
    pub max_uris_per_listen_stream: usize,
    /// How many addresses a legacy client may subscribe to. Default: 1,024.
    pub max_subscriptions: usize,
    /// How many bytes these addresses may have together: they are kept as long as the connection lasts. Default: 256 KiB.
    pub max_subscription_bytes: usize,
    /// How many bytes the parameters of `initialize` may have: what a client says of itself is kept as long as the
    /// connection lasts. Default: 64 KiB, as in the `_meta` of those who say it each time.
    pub max_initialize_bytes: usize,
    /// How many bytes the `_meta` of a request may have. Default: 64 KiB.
    pub max_meta_bytes: usize,
    /// How many bytes the `requestState` of a retry may have. Default: 32 KiB.
    pub max_request_state_bytes: usize,
    /// The maximum number of `inputResponses` of a retry. Defaults to 256.
    pub max_input_responses: usize,
    /// How many messages a route may hold; beyond it progress is dropped, then log messages, then changes. Default: 256.
    pub max_route_messages: usize,
    /// How many bytes a route may hold; beyond it the same is dropped. Default: 4 MiB.
    pub max_route_bytes: usize,
    /// How many messages may be on their way to a peer that reads; beyond it nothing more is taken in, and progress and
    /// log messages are dropped. Default: 1,024.
    pub max_outbox_messages: usize,
    /// How many bytes may be on their way to a peer that reads; beyond it nothing more is taken in, and progress and log
    /// messages are dropped. Default: 16 MiB.
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
