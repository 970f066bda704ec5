//! Why a service cannot start.

use http::StatusCode;
use mcp_server::Server;
use mcp_session::NoRandomness;

use super::options::{HttpOptions, SessionMode};
use super::refusal::Refusal;

/// The error of starting a service whose server and options contradict each other, or cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The server needs sessions, and the options give legacy clients none.
    #[error(
        "the server was built with `ServerBuilder::requires_sessions`, but `HttpOptions::sessions` is \
         `SessionMode::{0:?}`: set it to `SessionMode::Stateful`, or build the server without `requires_sessions`"
    )]
    SessionsRequired(SessionMode),
    /// The operating system's random source fails, so sessions and events could be guessed.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

impl StartError {
    /// Checks that a server gets the sessions that it needs.
    pub(crate) fn check(server: &Server, options: &HttpOptions) -> Result<(), Self> {
        if server.requires_sessions() && options.sessions != SessionMode::Stateful {
            return Err(Self::SessionsRequired(options.sessions));
        }
        Ok(())
    }

    /// What a client is told if only the server that was chosen for it cannot be served.
    pub(crate) fn into_refusal(self) -> Refusal {
        tracing::error!(target: "mcp", error = %self, "`HttpOptions::select_server` chose a server that cannot be served");
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, self.to_string())
    }
}

/// For a `main` that returns [`std::io::Result`]: the text says what to do.
impl From<StartError> for std::io::Error {
    fn from(error: StartError) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error.to_string())
    }
}
