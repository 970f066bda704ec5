//! Refreshing tokens.

use super::{Action, DpopKey, FetchError, Grant, HttpResponse, LoginError};
use crate::UnixTime;

/// A refresh of tokens, as a machine without I/O. It is driven like a [`Login`](super::Login).
///
/// [`Action::Failed`] with an error that [needs a login](LoginError::needs_login) means that the refresh token is lost; after
/// any other error, the tokens are still good and the refresh can be repeated.
#[derive(Debug)]
pub struct Refresh {
    grant: Grant,
    failure: Option<LoginError>,
}

impl Refresh {
    /// Creates a refresh of the tokens of a grant. The key is needed if they are bound to it.
    #[must_use]
    pub fn new(grant: Grant, key: Option<DpopKey>) -> Self {
        let _ = key;
        Self { grant, failure: None }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn poll(&mut self, now: UnixTime) -> Action {
        let _ = (now, &self.grant);
        self.failure.take().map_or(Action::Idle, Action::Failed)
    }

    /// Reports the response to an [`Action::Fetch`].
    pub fn handle_response(&mut self, now: UnixTime, response: HttpResponse) {
        let _ = (now, response);
    }

    /// Reports that an [`Action::Fetch`] got no response.
    pub fn handle_failure(&mut self, error: FetchError) {
        let _ = error;
    }

    /// Reports that an [`Action::Save`] was done.
    pub fn handle_saved(&mut self) {}
}
