//! How a server on lines of text behaves.

use std::time::Duration;

use crate::DEFAULT_LINE_LIMIT;

/// What can be set; all of it has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    /// How many bytes a line may have. A longer one is skipped and refused, by the id of its request if that can be
    /// read; if it is a response, the request to the client that it answers fails. Default: 16 MiB.
    pub line_limit: usize,
    /// How long handlers may go on after the input has ended or the server was told to stop. Then they are cancelled,
    /// and what was answered has as long again to be read by the client. Default: 30 s.
    pub drain: Duration,
    /// How long each callback may take that handlers left for the end of the connection. Default: 5 s.
    pub teardown: Duration,
    /// How many connections a listener serves at once; more have to wait to be accepted. None is taken for
    /// one. Default: 100.
    pub connections: usize,
    /// Whether several clients, one after the other, use one connection, as behind a gateway that starts one process for
    /// all of its clients. Then a second `initialize` begins the connection anew if nothing is in flight: subscriptions,
    /// the log level and what handlers keep for the connection are gone, and their teardown callbacks run first.
    ///
    /// Without it, a second `initialize` gets the same response again if it asks for the same version and declares the
    /// same capabilities, and changes nothing; any other is refused. That goes for shared connections, too, while
    /// requests are in flight. Defaults to `false`.
    ///
    /// Clients that share a connection can see what the server keeps for it. Use this only where they are one user's.
    pub shared_pipe: bool,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            line_limit: DEFAULT_LINE_LIMIT,
            drain: Duration::from_secs(30),
            teardown: Duration::from_secs(5),
            connections: 100,
            shared_pipe: false,
        }
    }
}

impl ServeOptions {
    /// Replaces [`line_limit`](Self::line_limit).
    #[must_use]
    pub fn with_line_limit(self, line_limit: usize) -> Self {
        Self { line_limit, ..self }
    }

    /// Replaces [`drain`](Self::drain).
    #[must_use]
    pub fn with_drain(self, drain: Duration) -> Self {
        Self { drain, ..self }
    }

    /// Replaces [`teardown`](Self::teardown).
    #[must_use]
    pub fn with_teardown(self, teardown: Duration) -> Self {
        Self { teardown, ..self }
    }

    /// Replaces [`connections`](Self::connections).
    #[must_use]
    pub fn with_connections(self, connections: usize) -> Self {
        Self { connections: connections.max(1), ..self }
    }
    /// Replaces [`shared_pipe`](Self::shared_pipe).
    #[must_use]
    pub fn with_shared_pipe(self, shared_pipe: bool) -> Self {
        Self { shared_pipe, ..self }
    }
}
