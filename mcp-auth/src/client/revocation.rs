//! Logging out.

use std::collections::VecDeque;

use super::endpoint::{ClientCredentials, EndpointCall, Form};
use super::outbox::Outbox;
use super::{Action, Grant, HttpResponse, LoginError, RequestError, Save};
use crate::Secret;
use crate::address::Address;

/// A log-out, as a machine without I/O: revokes the tokens where the authorization server can do that (RFC 7009), and drops them.
///
/// It is driven like a [`Login`](super::Login). The tokens are dropped in any case, so that a server that cannot be reached
/// does not keep a login alive; the log-out ends with [`Action::Failed`] if the authorization server did not confirm.
#[derive(Debug)]
pub struct Revocation {
    grant: Grant,
    /// The requests that are not sent yet: the refresh token first, as its end often is the end of all tokens.
    calls: VecDeque<EndpointCall>,
    current: Option<EndpointCall>,
    error: Option<LoginError>,
    outbox: Outbox,
}

impl Revocation {
    /// Creates a log-out.
    #[must_use]
    pub fn new(grant: Grant) -> Self {
        let mut calls = VecDeque::new();
        // The endpoint was checked before it was stored; one that is not an address any more is as good as none.
        if let Some(endpoint) = grant.revocation_endpoint.as_deref().and_then(|url| Address::parse(url).ok()) {
            let call = |token: &Secret, hint| {
                let form = Form::default().with_secret("token", token.clone()).with("token_type_hint", hint);
                let client = ClientCredentials::of(&grant.registration);
                EndpointCall::new(&endpoint, &client, form, false).knowing(&grant.secrets())
            };
            calls.extend(grant.tokens.refresh_token.as_ref().map(|token| call(token, "refresh_token")));
            calls.push_back(call(&grant.tokens.access_token, "access_token"));
        }
        let mut revocation = Self { grant, calls, current: None, error: None, outbox: Outbox::default() };
        let Grant { issuer, resource, .. } = revocation.grant.clone();
        revocation.outbox.save(Save::ForgetGrant { issuer, resource });
        revocation.advance();
        revocation
    }

    fn advance(&mut self) {
        if let Some(mut call) = self.calls.pop_front() {
            self.outbox.push(Action::Fetch(call.request()));
            self.current = Some(call);
            return;
        }
        self.outbox.push(match self.error.take() {
            Some(error) => Action::Failed(error),
            None => Action::Done(Box::new(self.grant.clone())),
        });
    }

    /// Returns what to do next. [`Action::Done`] has the grant that was given up.
    #[must_use]
    pub fn poll(&mut self) -> Action {
        self.outbox.poll().unwrap_or(Action::Idle)
    }

    /// Reports the response to an [`Action::Fetch`].
    pub fn handle_response(&mut self, response: &HttpResponse) {
        let Some(call) = self.take_current() else { return };
        if !response.is_success() {
            let error = call.refusal(response);
            // Some servers can only revoke refresh tokens.
            if !error.is_refusal("unsupported_token_type") {
                self.error.get_or_insert(error);
            }
        }
        self.advance();
    }

    /// Reports that an [`Action::Fetch`] got no response.
    pub fn handle_failure(&mut self, error: RequestError) {
        let Some(call) = self.take_current() else { return };
        self.error.get_or_insert_with(|| LoginError::Fetch { url: call.url().to_owned(), error });
        self.advance();
    }

    /// Reports that an [`Action::Save`] was done.
    pub const fn handle_saved(&mut self) {
        self.outbox.handle_saved();
    }

    /// Returns the request in flight.
    fn take_current(&mut self) -> Option<EndpointCall> {
        if self.outbox.is_empty() { self.current.take() } else { None }
    }
}
