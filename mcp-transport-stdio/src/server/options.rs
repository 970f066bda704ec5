//! Settings of servers on byte streams.

use std::time::Duration;

use mcp_server::Network;

use crate::framing::DEFAULT_LINE_LIMIT;

/// Settings of [`serve_io`](crate::serve_io), [`serve_stdio_with`](crate::serve_stdio_with) and the servers on sockets.
#[derive(Clone, Debug)]
#[must_use]
pub struct ServeOptions {
    pub(super) line_limit: usize,
    pub(super) drain_timeout: Duration,
    pub(super) teardown_timeout: Duration,
    pub(super) max_connections: usize,
    pub(super) shared_pipe: bool,
    /// How messages travel, for metrics.
    pub(super) network: Network,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            line_limit: DEFAULT_LINE_LIMIT,
            drain_timeout: Duration::from_secs(30),
            teardown_timeout: Duration::from_secs(5),
            max_connections: 100,
            shared_pipe: false,
            network: Network::Stdio,
        }
    }
}

impl ServeOptions {
    /// Sets the maximum number of bytes in a line. A longer line is skipped. If it is a request, it gets an error response,
    /// with its id if that can be read; if it is a response, the server-to-client request fails. Defaults to 16 MiB.
    pub fn line_limit(self, line_limit: usize) -> Self {
        Self { line_limit, ..self }
    }

    /// Sets how long handlers may continue after the input has ended or the server was stopped. Then they are cancelled, and
    /// the client has the same time again to read the responses. Defaults to 30 seconds.
    pub fn drain_timeout(self, drain_timeout: Duration) -> Self {
        Self { drain_timeout, ..self }
    }

    /// Sets how long each teardown callback of a connection may take. Defaults to 5 seconds.
    pub fn teardown_timeout(self, teardown_timeout: Duration) -> Self {
        Self { teardown_timeout, ..self }
    }

    /// Sets how messages travel, for metrics and spans. Functions that serve sockets set it themselves. Defaults to the
    /// standard streams.
    pub fn network(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// Sets the maximum number of concurrent connections to a socket; more wait to be accepted. 0 counts as 1. Defaults to
    /// 100.
    pub fn max_connections(self, max_connections: usize) -> Self {
        Self { max_connections: max_connections.max(1), ..self }
    }

    /// Sets whether several clients use one connection, one after the other, as behind a gateway that starts one process for
    /// all of its clients. A second `initialize` then starts a new connection if no request is in flight: subscriptions, the
    /// log level and the state that handlers keep for the connection are dropped, and teardown callbacks run first.
    ///
    /// If `false`, or while requests are in flight, a second `initialize` gets the same response again if it requests the
    /// same version and declares the same capabilities, and changes nothing; any other gets an error. Defaults to `false`.
    ///
    /// Clients that share a connection can see the state that the server keeps for it. Enable this only if all of them
    /// belong to one user.
    pub fn shared_pipe(self, shared_pipe: bool) -> Self {
        Self { shared_pipe, ..self }
    }
}
