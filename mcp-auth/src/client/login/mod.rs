//! The machine of a login.

use super::{Action, FetchError, HttpResponse, LoginConfig, LoginError, PreRegistered, Stored};
use crate::{Challenge, Secret, UnixTime};

/// A login, as a machine without I/O.
///
/// Call [`poll`](Self::poll), do what it returns, report the result with one of the `handle_` methods, and poll again, until it
/// returns [`Action::Done`] or [`Action::Failed`].
#[derive(Debug)]
pub struct Login {
    config: LoginConfig,
    failure: Option<LoginError>,
}

/// The error of an authorization response that does not belong to the login. The login still waits for the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedirectError {
    /// The login does not wait for an authorization response.
    #[error("the login does not wait for an authorization response")]
    NotExpected,
    /// The address is not the one that the browser was to be sent back to.
    #[error("the address is not the one of the login")]
    OtherAddress,
    /// The response is not to the request of this login.
    #[error("the authorization response does not belong to this login")]
    OtherState,
}

impl Login {
    /// The number of random bytes that a login needs.
    pub const RANDOM_BYTES: usize = 64;

    /// Creates a login from its configuration, what is known from earlier ones, the challenges of the response that started it,
    /// and random bytes from a source that is fit for secrets.
    pub fn new(
        config: LoginConfig,
        stored: Stored,
        challenges: &[Challenge],
        random: [u8; Self::RANDOM_BYTES],
    ) -> Self {
        let _ = (stored, challenges, random);
        Self { config, failure: None }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn poll(&mut self, now: UnixTime) -> Action {
        let _ = (now, &self.config);
        self.failure.take().map_or(Action::Idle, Action::Failed)
    }

    /// Reports the response to an [`Action::Fetch`].
    pub fn handle_response(&mut self, now: UnixTime, response: HttpResponse) {
        let _ = (now, response);
    }

    /// Reports that an [`Action::Fetch`] got no response.
    pub fn handle_failure(&mut self, now: UnixTime, error: FetchError) {
        let _ = (now, error);
    }

    /// Reports the address that the browser was sent back to after an [`Action::OpenBrowser`]: the whole address, or what follows its host.
    ///
    /// # Errors
    ///
    /// Returns an error if the address does not belong to this login, which then goes on waiting.
    pub fn handle_redirect(&mut self, now: UnixTime, redirect: &str) -> Result<(), RedirectError> {
        let _ = (now, redirect);
        Err(RedirectError::NotExpected)
    }

    /// Provides what an [`Action::AskForClient`] asks for.
    pub fn handle_client(&mut self, now: UnixTime, client: PreRegistered) {
        let _ = (now, client);
    }

    /// Provides what an [`Action::SupplyAssertion`] asks for.
    pub fn handle_assertion(&mut self, now: UnixTime, assertion: Secret) {
        let _ = (now, assertion);
    }

    /// Reports that what the flow asked for is not provided, which fails it.
    pub fn handle_declined(&mut self) {
        self.failure = Some(LoginError::Declined);
    }

    /// Reports that an [`Action::Save`] was done.
    pub fn handle_saved(&mut self) {}
}
