//! The names of metrics and attributes.

/// The names of all metrics that [`Metrics`](crate::Metrics) records, sorted.
///
/// A test of dashboards and alerts can check that they use no other name.
pub const METRIC_NAMES: &[&str] = &[
    CLIENT_ACTIVE_REQUESTS,
    CLIENT_CACHE_LOOKUPS,
    CLIENT_CHILD_RESTARTS,
    CLIENT_INPUT_ROUNDS,
    CLIENT_LOGINS,
    CLIENT_OPERATION_DURATION,
    CLIENT_SESSION_COUNT,
    CLIENT_SESSION_DURATION,
    CLIENT_TOKEN_REFRESHES,
    SERVER_ACTIVE_REQUESTS,
    SERVER_DROPPED_EVENTS,
    SERVER_DROPPED_MESSAGES,
    SERVER_HTTP_SESSION_COUNT,
    SERVER_HTTP_SESSION_ENDED,
    SERVER_HTTP_SESSION_IDLE_SIZE,
    SERVER_HTTP_SESSION_REFUSED,
    SERVER_INPUT_ROUNDS,
    SERVER_LOST_EVENTS,
    SERVER_OPERATION_DURATION,
    SERVER_QUEUED_REQUESTS,
    SERVER_REFUSED_REQUESTS,
    SERVER_REPLAYED_EVENTS,
    SERVER_SESSION_COUNT,
    SERVER_SESSION_DURATION,
    SERVER_SLOW_READERS,
    SERVER_STREAM_COUNT,
    SERVER_TASK_COUNT,
    SERVER_TASK_CREATED,
    SERVER_TASK_FINISHED,
    SERVER_TASK_INPUT_ROUNDS,
    SERVER_TASK_QUEUED,
    SERVER_TASK_REFUSED,
    SERVER_TASK_TAKEN_OVER,
];

pub(crate) const CLIENT_ACTIVE_REQUESTS: &str = "mcp.client.active_requests";
pub(crate) const CLIENT_CACHE_LOOKUPS: &str = "mcp.client.cache_lookups";
pub(crate) const CLIENT_CHILD_RESTARTS: &str = "mcp.client.child_restarts";
pub(crate) const CLIENT_INPUT_ROUNDS: &str = "mcp.client.input_rounds";
pub(crate) const CLIENT_LOGINS: &str = "mcp.client.logins";
pub(crate) const CLIENT_OPERATION_DURATION: &str = "mcp.client.operation.duration";
pub(crate) const CLIENT_SESSION_COUNT: &str = "mcp.client.session.count";
pub(crate) const CLIENT_SESSION_DURATION: &str = "mcp.client.session.duration";
pub(crate) const CLIENT_TOKEN_REFRESHES: &str = "mcp.client.token_refreshes";
pub(crate) const SERVER_ACTIVE_REQUESTS: &str = "mcp.server.active_requests";
pub(crate) const SERVER_DROPPED_EVENTS: &str = "mcp.server.dropped_events";
pub(crate) const SERVER_DROPPED_MESSAGES: &str = "mcp.server.dropped_messages";
pub(crate) const SERVER_HTTP_SESSION_COUNT: &str = "mcp.server.http_session.count";
pub(crate) const SERVER_HTTP_SESSION_ENDED: &str = "mcp.server.http_session.ended";
pub(crate) const SERVER_HTTP_SESSION_IDLE_SIZE: &str = "mcp.server.http_session.idle_size";
pub(crate) const SERVER_HTTP_SESSION_REFUSED: &str = "mcp.server.http_session.refused";
pub(crate) const SERVER_INPUT_ROUNDS: &str = "mcp.server.input_rounds";
pub(crate) const SERVER_LOST_EVENTS: &str = "mcp.server.lost_events";
pub(crate) const SERVER_OPERATION_DURATION: &str = "mcp.server.operation.duration";
pub(crate) const SERVER_QUEUED_REQUESTS: &str = "mcp.server.queued_requests";
pub(crate) const SERVER_REFUSED_REQUESTS: &str = "mcp.server.refused_requests";
pub(crate) const SERVER_REPLAYED_EVENTS: &str = "mcp.server.replayed_events";
pub(crate) const SERVER_SESSION_COUNT: &str = "mcp.server.session.count";
pub(crate) const SERVER_SESSION_DURATION: &str = "mcp.server.session.duration";
pub(crate) const SERVER_SLOW_READERS: &str = "mcp.server.slow_readers";
pub(crate) const SERVER_STREAM_COUNT: &str = "mcp.server.stream.count";
pub(crate) const SERVER_TASK_COUNT: &str = "mcp.server.task.count";
pub(crate) const SERVER_TASK_CREATED: &str = "mcp.server.task.created";
pub(crate) const SERVER_TASK_FINISHED: &str = "mcp.server.task.finished";
pub(crate) const SERVER_TASK_INPUT_ROUNDS: &str = "mcp.server.task.input_rounds";
pub(crate) const SERVER_TASK_QUEUED: &str = "mcp.server.task.queued";
pub(crate) const SERVER_TASK_REFUSED: &str = "mcp.server.task.refused";
pub(crate) const SERVER_TASK_TAKEN_OVER: &str = "mcp.server.task.taken_over";

pub(crate) const CACHE_RESULT: &str = "mcp.cache.result";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const IS_SUCCESSFUL: &str = "mcp.is_successful";
pub(crate) const METHOD_NAME: &str = "mcp.method.name";
pub(crate) const NETWORK_PROTOCOL_NAME: &str = "network.protocol.name";
pub(crate) const NETWORK_TRANSPORT: &str = "network.transport";
pub(crate) const PROMPT_NAME: &str = "gen_ai.prompt.name";
pub(crate) const PROTOCOL_VERSION: &str = "mcp.protocol.version";
pub(crate) const SESSION_REASON: &str = "mcp.session.reason";
pub(crate) const SESSION_STATE: &str = "mcp.session.state";
pub(crate) const STATUS_CODE: &str = "rpc.response.status_code";
pub(crate) const HTTP_STATUS_CODE: &str = "http.response.status_code";
pub(crate) const STREAM_KIND: &str = "mcp.stream.kind";
pub(crate) const TASK_REASON: &str = "mcp.task.reason";
pub(crate) const TASK_STATUS: &str = "mcp.task.status";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";

/// The value of an attribute for everything that is not counted by itself.
pub(crate) const OTHER: &str = "_OTHER";
