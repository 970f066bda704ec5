//! Refreshing tokens.

use super::endpoint::{ClientCredentials, EndpointCall, Form, Reply, TokenExpectations, grant_types, read_tokens};
use super::outbox::Outbox;
use super::{Action, DpopKey, ErrorResponse, Grant, HttpResponse, LoginError, RequestError, Save};
use crate::UnixTime;
use crate::address::{Address, shown};

/// A refresh of tokens, as a machine without I/O. It is driven like a [`Login`](super::Login).
///
/// [`Action::Failed`] with an error that [needs a login](LoginError::needs_login) means that the refresh token is lost; after
/// any other error, the tokens are as good as before and the refresh can be repeated.
///
/// An authorization server that rotates refresh tokens takes the second use of one for a theft, and ends the login. So there
/// must be only one refresh of a grant at a time, in all processes that share it, and its result is stored before it is used:
/// [`Action::Save`] comes before [`Action::Done`].
#[derive(Debug)]
pub struct Refresh {
    grant: Grant,
    call: Option<EndpointCall>,
    outbox: Outbox,
}

impl Refresh {
    /// Creates a refresh of the tokens of a grant. The key is needed if they are bound to it.
    #[must_use]
    pub fn new(grant: Grant, key: Option<&DpopKey>) -> Self {
        let mut refresh = Self { grant, call: None, outbox: Outbox::default() };
        match refresh.start(key) {
            Ok(mut call) => {
                refresh.outbox.push(Action::Fetch(call.request()));
                refresh.call = Some(call);
            }
            Err(error) => refresh.outbox.fail(error),
        }
        refresh
    }

    fn start(&self, key: Option<&DpopKey>) -> Result<EndpointCall, LoginError> {
        let grant = &self.grant;
        let refresh_token = grant.tokens.refresh_token.as_ref().ok_or(LoginError::NoRefreshToken)?;
        if grant.is_dpop_bound() && key.is_none() {
            return Err(LoginError::Dpop("the key is missing"));
        }
        let endpoint = Address::parse(&grant.token_endpoint).map_err(|reason| LoginError::UnsafeAddress {
            what: "token endpoint",
            url: shown(&grant.token_endpoint),
            reason,
        })?;
        let form = Form::grant(grant_types::REFRESH_TOKEN)
            .with_secret("refresh_token", refresh_token.clone())
            .with("resource", grant.resource.as_str());
        let client = ClientCredentials::of(&grant.registration);
        Ok(EndpointCall::new(&endpoint, &client, form, grant.is_dpop_bound()).knowing(&grant.secrets()))
    }

    /// Returns what to do next.
    #[must_use]
    pub fn poll(&mut self) -> Action {
        self.outbox.poll().unwrap_or(Action::Idle)
    }

    /// Reports the response to an [`Action::Fetch`].
    pub fn handle_response(&mut self, now: UnixTime, response: HttpResponse) {
        if !self.outbox.is_empty() {
            return;
        }
        let Some(mut call) = self.call.take() else { return };
        match call.handle_response(response) {
            Ok(Reply::Repeat(request)) => {
                self.outbox.push(Action::Fetch(request));
                self.call = Some(call);
            }
            Ok(Reply::Response(response)) => self.finish(now, &call, &response),
            Err(error) => self.outbox.fail(error),
        }
    }

    fn finish(&mut self, now: UnixTime, call: &EndpointCall, response: &HttpResponse) {
        let expected =
            TokenExpectations { call, requested: &self.grant.tokens.scopes, must_be_bound: self.grant.is_dpop_bound() };
        match read_tokens(now, response, &expected) {
            Ok(mut tokens) => {
                // Without a new refresh token, the old one stays valid.
                tokens.refresh_token = tokens.refresh_token.or_else(|| self.grant.tokens.refresh_token.clone());
                self.grant.tokens = tokens;
                let grant = Box::new(self.grant.clone());
                self.outbox.save(Save::Grant(grant.clone()));
                self.outbox.push(Action::Done(grant));
            }
            Err(LoginError::TokenRefused { error, .. }) if error.is("invalid_grant") => self.give_up(error),
            Err(error) => {
                self.forget_unknown_client(&error);
                self.outbox.fail(error);
            }
        }
    }

    /// Drops the tokens: only this error says that the refresh token is not valid any more.
    fn give_up(&mut self, error: ErrorResponse) {
        let Grant { issuer, resource, .. } = self.grant.clone();
        self.outbox.save(Save::ForgetGrant { issuer, resource });
        self.outbox.fail(LoginError::LoginEnded(error));
    }

    /// Drops a registration that the authorization server has forgotten, so that the next login makes a new one.
    fn forget_unknown_client(&mut self, error: &LoginError) {
        if error.is_refusal("invalid_client") && self.grant.registration.is_dynamic {
            let (issuer, client_id) = (self.grant.issuer.clone(), self.grant.registration.client_id.clone());
            self.outbox.save(Save::ForgetRegistration { issuer, client_id });
        }
    }

    /// Reports that an [`Action::Fetch`] got no response.
    pub fn handle_failure(&mut self, error: RequestError) {
        if !self.outbox.is_empty() {
            return;
        }
        if let Some(call) = self.call.take() {
            self.outbox.fail(LoginError::Fetch { url: call.url().to_owned(), error });
        }
    }

    /// Reports that an [`Action::Save`] was done.
    pub const fn handle_saved(&mut self) {
        self.outbox.handle_saved();
    }
}
