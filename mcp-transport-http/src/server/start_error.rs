//! The error of creating a service.

use std::fmt;

use http::StatusCode;
use mcp_server::Server;
use mcp_session::NoRandomness;

use super::options::SessionMode;
use super::refusal::Refusal;

/// The error of creating a service whose server cannot be served with its options.
///
/// [`Debug`](fmt::Debug) formats the message, too, because that is what a `main` that returns the error prints.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The server requires sessions, and the options do not enable them.
    #[error(
        "the server was built with `ServerBuilder::requires_sessions`, but `HttpOptions::sessions` is \
         `SessionMode::{0:?}`: set it to `SessionMode::Stateful`, or build the server without `requires_sessions`"
    )]
    SessionsRequired(SessionMode),
    /// The operating system's random source failed, so session and event ids would be predictable.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

impl StartError {
    /// Checks that sessions are enabled if the server requires them.
    pub(crate) fn check(server: &Server, sessions: SessionMode) -> Result<(), Self> {
        if server.requires_sessions() && sessions != SessionMode::Stateful {
            return Err(Self::SessionsRequired(sessions));
        }
        Ok(())
    }

    /// Logs the error, and refuses the request that `HttpOptions::select_server` chose the server for.
    pub(crate) fn into_refusal(self) -> Refusal {
        tracing::error!(target: "mcp", error = %self, "`HttpOptions::select_server` returned a server that cannot be served");
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, self.to_string())
    }
}

impl fmt::Debug for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Converts the error for functions that return [`std::io::Result`].
impl From<StartError> for std::io::Error {
    fn from(error: StartError) -> Self {
        Self::new(std::io::ErrorKind::InvalidInput, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `main` prints the `Debug` form.
    #[test]
    fn a_main_shows_what_to_do() {
        let error = StartError::SessionsRequired(SessionMode::Off);
        let boxed: Box<dyn std::error::Error> = error.into();
        assert_eq!(format!("{boxed:?}"), error.to_string());
        assert!(format!("{:?}", std::io::Error::from(error)).contains("`HttpOptions::sessions` is `SessionMode::Off`"));
    }
}
