//! Why there are no credentials.

use std::time::Duration;

use mcp_transport_http::AuthorizationError;
use tokio::task::JoinError;

use super::prompt::PromptError;
use crate::client::{InvalidConfig, LoginError};
use crate::fetch;
use crate::jose::SigningError;
use crate::store::StoreError;

/// The error of [`OAuth`](super::OAuth). It contains no secrets.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// A flow failed.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The store of logins failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The user could not be asked, or declined.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// A key could not be used.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// The user did not log in in time.
    #[error("the login was not completed within {0:?}")]
    TimedOut(Duration),
    /// The source of assertions did not respond in time.
    #[error("the source of assertions did not respond within {0:?}")]
    AssertionTimedOut(Duration),
    /// A login without a user failed a moment ago, and is not repeated yet.
    #[error("{error}; logging in is tried again in {retry_after:?}")]
    RetryLater {
        /// Why it failed.
        error: Box<Self>,
        /// When it is tried again.
        retry_after: Duration,
    },
    /// The server refused tokens that a login has just obtained.
    #[error("{server} refuses the tokens that {issuer} issued for it")]
    Refused {
        /// The server.
        server: String,
        /// The issuer of the tokens.
        issuer: String,
    },
    /// There are no tokens, and no way to ask a user was configured.
    #[error("not logged in to {server}: {hint}")]
    NotLoggedIn {
        /// The server.
        server: String,
        /// How to log in.
        hint: String,
    },
    /// The user logged out while tokens were requested. They are not used.
    #[error("the user logged out")]
    LoggedOut,
    /// Code of a login panicked: a prompt, a store or a source of assertions of the application, or this crate.
    #[error("the login panicked")]
    Panicked,
    /// A task of the runtime was cancelled, as it shuts down.
    #[error("the runtime shuts down")]
    Shutdown,
}

impl OAuthError {
    /// Returns why a task has no result.
    pub(super) fn of_task(error: &JoinError) -> Self {
        if error.is_panic() { Self::Panicked } else { Self::Shutdown }
    }
}

impl From<OAuthError> for AuthorizationError {
    fn from(error: OAuthError) -> Self {
        // Errors of this crate say everything in their text.
        Self::new(error.to_string())
    }
}

/// The error of an [`OAuth`](super::OAuth) that cannot be built.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] InvalidConfig),
    /// The HTTP client cannot be created.
    #[error(transparent)]
    HttpClient(#[from] fetch::FetchError),
}
