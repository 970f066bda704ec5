//! The counters of rare events.

use mcp_kernel::observe::{Refused, Role};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Meter};

use crate::methods::MethodId;
use crate::names::{
    CACHE_RESULT, CLIENT_CACHE_LOOKUPS, CLIENT_CHILD_RESTARTS, CLIENT_INPUT_ROUNDS, CLIENT_LOGINS,
    CLIENT_TOKEN_REFRESHES, HTTP_STATUS_CODE, IS_SUCCESSFUL, METHOD_NAME, SERVER_DROPPED_MESSAGES, SERVER_INPUT_ROUNDS,
    SERVER_REFUSED_REQUESTS, SERVER_SLOW_READERS,
};

/// Counters that are written when something happens.
pub(crate) struct Counters {
    refused_requests: Counter<u64>,
    slow_readers: Counter<u64>,
    dropped_messages: Counter<u64>,
    server_input_rounds: Counter<u64>,
    client_input_rounds: Counter<u64>,
    cache_lookups: Counter<u64>,
    child_restarts: Counter<u64>,
    logins: Counter<u64>,
    token_refreshes: Counter<u64>,
}

impl Counters {
    pub(crate) fn new(meter: &Meter) -> Self {
        let counter = |name: &'static str, unit: &'static str, description: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(description).build()
        };
        Self {
            refused_requests: counter(
                SERVER_REFUSED_REQUESTS,
                "{request}",
                "HTTP requests that were refused before they reached the server.",
            ),
            slow_readers: counter(
                SERVER_SLOW_READERS,
                "{connection}",
                "Connections that were closed because the client did not read.",
            ),
            dropped_messages: counter(
                SERVER_DROPPED_MESSAGES,
                "{message}",
                "Messages to clients that were dropped, as there was no room or no stream for them.",
            ),
            server_input_rounds: counter(SERVER_INPUT_ROUNDS, "{round}", "Results with input requests that were sent."),
            client_input_rounds: counter(
                CLIENT_INPUT_ROUNDS,
                "{round}",
                "Results with input requests that were received.",
            ),
            cache_lookups: counter(CLIENT_CACHE_LOOKUPS, "{lookup}", "Lookups in the cache of results."),
            child_restarts: counter(CLIENT_CHILD_RESTARTS, "{restart}", "Restarts of server processes."),
            logins: counter(CLIENT_LOGINS, "{login}", "Logins that ended."),
            token_refreshes: counter(CLIENT_TOKEN_REFRESHES, "{refresh}", "Refreshes of tokens that ended."),
        }
    }

    pub(crate) fn input_round(&self, role: Role, method: MethodId) {
        let counter = match role {
            Role::Server => &self.server_input_rounds,
            Role::Client => &self.client_input_rounds,
        };
        counter.add(1, &[KeyValue::new(METHOD_NAME, method.name())]);
    }

    pub(crate) fn refused(&self, refused: Refused) {
        self.refused_requests.add(1, &[KeyValue::new(HTTP_STATUS_CODE, i64::from(refused.status))]);
    }

    pub(crate) fn slow_reader(&self) {
        self.slow_readers.add(1, &[]);
    }

    pub(crate) fn dropped_messages(&self, count: usize) {
        self.dropped_messages.add(count.try_into().unwrap_or(u64::MAX), &[]);
    }

    pub(crate) fn cache_lookup(&self, is_hit: bool) {
        self.cache_lookups.add(1, &[KeyValue::new(CACHE_RESULT, if is_hit { "hit" } else { "miss" })]);
    }

    pub(crate) fn child_restarted(&self) {
        self.child_restarts.add(1, &[]);
    }

    pub(crate) fn login(&self, is_successful: bool) {
        self.logins.add(1, &[KeyValue::new(IS_SUCCESSFUL, is_successful)]);
    }

    pub(crate) fn token_refresh(&self, is_successful: bool) {
        self.token_refreshes.add(1, &[KeyValue::new(IS_SUCCESSFUL, is_successful)]);
    }
}
