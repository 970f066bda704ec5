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
    pub in_flight: usize,
    /// How many bytes of parameters the requests of a server may have that a client works on; one is always taken.
    /// Default: 16 MiB.
    pub in_flight_bytes: usize,
    /// How many more may wait for one of those to end; the next one is refused. Default: 64.
    pub waiting: usize,
    /// How many bytes of parameters may wait. Default: 4 MiB.
    pub waiting_bytes: usize,
    /// How many bytes the id of a request may have. Default: 1 KiB.
    pub id_bytes: usize,
    /// How many bytes the address of a resource may have that is read or subscribed to. Default: 8 KiB.
    pub uri_bytes: usize,
    /// How many requests to the peer may be open. Default: 100.
    pub calls: usize,
    /// How many listen requests may be open. Default: 16.
    pub listeners: usize,
    /// How many addresses one listen request may name. Default: 256.
    pub uris_per_listener: usize,
    /// How many addresses a legacy client may subscribe to. Default: 1,024.
    pub subscriptions: usize,
    /// How many bytes these addresses may have together: they are kept as long as the connection lasts. Default: 256 KiB.
    pub subscription_bytes: usize,
    /// How many bytes the parameters of `initialize` may have: what a client says of itself is kept as long as the
    /// connection lasts. Default: 64 KiB, as in the `_meta` of those who say it each time.
    pub initialize_bytes: usize,
    /// How many bytes the `_meta` of a request may have. Default: 64 KiB.
    pub meta_bytes: usize,
    /// How many bytes the `requestState` of a retry may have. Default: 32 KiB.
    pub request_state_bytes: usize,
    /// The maximum number of `inputResponses` of a retry. Defaults to 256.
    pub input_responses: usize,
    /// How many messages a route may hold; beyond it progress is dropped, then log messages, then changes. Default: 256.
    pub route_messages: usize,
    /// How many bytes a route may hold; beyond it the same is dropped. Default: 4 MiB.
    pub route_bytes: usize,
    /// How many messages may be on their way to a peer that reads; beyond it nothing more is taken in, and progress and
    /// log messages are dropped. Default: 1,024.
    pub outbox_messages: usize,
    /// How many bytes may be on their way to a peer that reads; beyond it nothing more is taken in, and progress and log
    /// messages are dropped. Default: 16 MiB.
    pub outbox_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: jsonrpc::Limits::default(),
            in_flight: 100,
            in_flight_bytes: 16 * 1024 * 1024,
            waiting: 64,
            waiting_bytes: 4 * 1024 * 1024,
            id_bytes: 1024,
            uri_bytes: 8 * 1024,
            calls: 100,
            listeners: 16,
            uris_per_listener: 256,
            subscriptions: 1024,
            subscription_bytes: 256 * 1024,
            initialize_bytes: 64 * 1024,
            meta_bytes: 64 * 1024,
            request_state_bytes: 32 * 1024,
            input_responses: 256,
            route_messages: 256,
            route_bytes: 4 * 1024 * 1024,
            outbox_messages: 1024,
            outbox_bytes: 16 * 1024 * 1024,
        }
    }
}
