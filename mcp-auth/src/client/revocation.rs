//! Logging out.

use super::{Action, FetchError, Grant, HttpResponse};

/// A log-out, as a machine without I/O: revokes the tokens where the authorization server can do that (RFC 7009), and drops them.
///
/// It is driven like a [`Login`](super::Login), and always drops the tokens. It ends with [`Action::Failed`] if the
/// authorization server did not confirm that they are revoked.
#[derive(Debug)]
pub struct Revocation {
    grant: Grant,
}

impl Revocation {
    /// Creates a log-out.
    #[must_use]
    pub fn new(grant: Grant) -> Self {
        Self { grant }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn poll(&mut self) -> Action {
        let _ = &self.grant;
        Action::Idle
    }

    /// Reports the response to an [`Action::Fetch`].
    pub fn handle_response(&mut self, response: HttpResponse) {
        let _ = response;
    }

    /// Reports that an [`Action::Fetch`] got no response.
    pub fn handle_failure(&mut self, error: FetchError) {
        let _ = error;
    }

    /// Reports that an [`Action::Save`] was done.
    pub fn handle_saved(&mut self) {}
}
