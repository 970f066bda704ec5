//! How a server on lines of text behaves.

use std::time::Duration;

use crate::DEFAULT_LINE_LIMIT;

/// What can be set; all of it has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    /// How many bytes a line may have. A longer one is refused and skipped. Default: 16 MiB.
    pub line_limit: usize,
    /// How long handlers may go on after the input has ended or the server was told to stop. Then they are cancelled,
    /// and what was answered has as long again to be read by the client. Default: 30 s.
    pub drain: Duration,
    /// How long each callback may take that handlers left for the end of the connection. Default: 5 s.
    pub teardown: Duration,
    /// How many connections a listener serves at once; more have to wait to be accepted. None is taken for
    /// one. Default: 100.
    pub connections: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            line_limit: DEFAULT_LINE_LIMIT,
            drain: Duration::from_secs(30),
            teardown: Duration::from_secs(5),
            connections: 100,
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
}
