//! The error of obtaining credentials.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The error of a transport that could not obtain the credentials of a request, for example because a login failed.
///
/// The message is for the user, and says what to do: `log in again: the refresh token has expired`. Neither it nor the
/// source may contain secrets, because both are logged.
///
/// # Examples
///
/// ```
/// use mcp_client::AuthorizationError;
///
/// let cause = std::io::Error::other("the connection was reset");
/// let error = AuthorizationError::new("the authorization server cannot be reached").caused_by(cause);
/// assert_eq!(error.to_string(), "the authorization server cannot be reached");
/// ```
#[derive(Clone, Debug)]
pub struct AuthorizationError {
    message: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl AuthorizationError {
    /// Creates an error with a message for the user.
    #[must_use]
    pub fn new(message: impl Into<Arc<str>>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// Sets the cause, which the message should not repeat.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }
}

impl fmt::Display for AuthorizationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for AuthorizationError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// Errors are equal if they have the same message and the same source, which is not compared by its content.
impl PartialEq for AuthorizationError {
    fn eq(&self, other: &Self) -> bool {
        let has_same_source = match (&self.source, &other.source) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.message == other.message && has_same_source
    }
}

impl Eq for AuthorizationError {}
