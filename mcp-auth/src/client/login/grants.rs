//! The stage of a login in which tokens are obtained.

use super::super::endpoint::{
    ClientCredentials, EndpointCall, Form, Reply, TokenExpectations, grant_types, read_exchanged_assertion, read_tokens,
};
use super::super::{
    Action, AssertionKind, AssertionRequest, Flow, Grant, HttpResponse, IdentityProvider, LoginError, OpenBrowser,
    Registration, Save, SubjectTokenType, Tokens,
};
use super::authorization::PendingAuthorization;
use super::device::{DevicePolling, read_device_code};
use super::{Login, Ready, State, Target};
use crate::address::{Address, shown};
use crate::{Secret, UnixTime};

/// The kind of token that an identity provider issues for another authorization server.
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// The profile of authorization servers that accept it.
const ID_JAG_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";

impl Login {
    /// Refuses authorization servers that cannot do what the flow needs.
    pub(super) fn check_flow(&self, target: &Target) -> Result<(), LoginError> {
        target.token_endpoint(&self.config)?;
        target.dpop(self.config.dpop.as_ref(), self.demand.is_dpop)?;
        match &self.config.flow {
            Flow::AuthorizationCode { .. } => {
                target.check_pkce()?;
                target.authorization_endpoint(&self.config)?;
            }
            Flow::DeviceCode => {
                target.device_authorization_endpoint(&self.config)?;
            }
            Flow::EnterpriseManaged(_) => {
                let profiles = target.server.authorization_grant_profiles_supported.as_deref();
                if profiles.is_some_and(|profiles| !profiles.iter().any(|profile| profile == ID_JAG_PROFILE)) {
                    return Err(target.unsupported("identity assertions of enterprises"));
                }
            }
            Flow::ClientCredentials | Flow::WorkloadIdentity => {}
        }
        Ok(())
    }

    /// Starts to obtain tokens with a client that the authorization server knows.
    pub(super) fn start_flow(&mut self, target: Box<Target>, registration: Registration) -> Result<(), LoginError> {
        self.check_flow(&target)?;
        let ready = Box::new(Ready {
            scopes: self.scope_sources(&target, |sources| sources.choose()),
            token_endpoint: target.token_endpoint(&self.config)?,
            binding: target.dpop(self.config.dpop.as_ref(), self.demand.is_dpop)?,
            secrets: self.known_secrets(),
            registration,
            target,
        });
        match self.refresh_token_for(&ready) {
            Some(refresh_token) => {
                let form = Form::grant(grant_types::REFRESH_TOKEN)
                    .with_secret("refresh_token", refresh_token)
                    .with("resource", ready.target.resource.as_str());
                let mut call = ready.call(&ready.token_endpoint, form);
                self.fetch(call.request(), State::Refreshing { ready, call })
            }
            None => self.request_consent(ready),
        }
    }

    /// Returns the refresh token of an earlier login, if it can yield what this one needs without a user.
    fn refresh_token_for(&self, ready: &Ready) -> Option<Secret> {
        let grant = self.stored.grant.as_ref()?;
        let is_same = grant.issuer == ready.target.issuer()
            && grant.resource == ready.target.resource
            && grant.registration.client_id == ready.registration.client_id;
        // A refresh cannot add scopes, and cannot bind a token to a key that it was not bound to before.
        let is_enough = grant.requested_scopes.contains_all(&ready.scopes) && !self.demand.is_step_up;
        let is_bindable = if grant.is_dpop_bound() { ready.binding.with_proof } else { !ready.binding.must_be_bound };
        grant.tokens.refresh_token.clone().filter(|_| is_same && is_enough && is_bindable)
    }

    pub(super) fn finish_refresh(
        &mut self,
        now: UnixTime,
        ready: Box<Ready>,
        call: &EndpointCall,
        response: &HttpResponse,
    ) -> Result<(), LoginError> {
        let granted = self.stored.grant.take();
        let expected = ready.expectations(call);
        let requested = granted.as_ref().map_or(expected.requested, |grant| &grant.tokens.scopes);
        match read_tokens(now, response, &TokenExpectations { requested, ..expected }) {
            Ok(mut tokens) => {
                tokens.refresh_token =
                    tokens.refresh_token.or_else(|| granted.and_then(|grant| grant.tokens.refresh_token));
                self.succeed(&ready, tokens);
                Ok(())
            }
            Err(error) => self.recover_from_refusal(now, ready, error),
        }
    }

    /// Goes on without the refresh token, if it was refused for good: a user can log in again.
    fn recover_from_refusal(&mut self, now: UnixTime, ready: Box<Ready>, error: LoginError) -> Result<(), LoginError> {
        let is_final = matches!(error, LoginError::TokenRefused { .. }) && !error.is_transient();
        if !is_final {
            return Err(error);
        }
        if error.is_refusal("invalid_grant") {
            let (issuer, resource) = (ready.target.issuer().to_owned(), ready.target.resource.clone());
            self.save(Save::ForgetGrant { issuer, resource });
        }
        if error.is_refusal("invalid_client") && ready.registration.is_dynamic {
            self.forget_registration(&ready.registration);
            self.stored.registrations.retain(|kept| *kept != ready.registration);
            return self.choose_registration(now, ready.target);
        }
        self.request_consent(ready)
    }

    /// Drops a registration that the authorization server has forgotten.
    fn forget_registration(&mut self, registration: &Registration) {
        let (issuer, client_id) = (registration.issuer.clone(), registration.client_id.clone());
        self.save(Save::ForgetRegistration { issuer, client_id });
    }

    fn request_consent(&mut self, ready: Box<Ready>) -> Result<(), LoginError> {
        match self.config.flow.clone() {
            Flow::AuthorizationCode { redirect_uri } => {
                let endpoint = ready.target.authorization_endpoint(&self.config)?;
                let pending = PendingAuthorization::new(&ready, &redirect_uri, &self.random[..]);
                let key = self.config.dpop.as_ref().filter(|_| ready.binding.with_proof);
                let url = pending.url(&endpoint, &ready, key.map(|key| &*key.thumbprint));
                let issuer = ready.target.issuer().to_owned();
                self.outbox.push(Action::OpenBrowser(OpenBrowser { url, redirect_uri, issuer }));
                self.state = State::AwaitingRedirect { ready, pending };
                Ok(())
            }
            Flow::DeviceCode => {
                let endpoint = ready.target.device_authorization_endpoint(&self.config)?;
                let form = ready.scope_and_resource(Form::default());
                let client = ClientCredentials::of(&ready.registration);
                let mut call = EndpointCall::new(&endpoint, &client, form, false).knowing(&ready.secrets);
                self.fetch(call.request(), State::RequestingDeviceCode { ready, call })
            }
            Flow::ClientCredentials => {
                let form = ready.scope_and_resource(Form::grant(grant_types::CLIENT_CREDENTIALS));
                self.request_tokens(ready, form)
            }
            Flow::EnterpriseManaged(provider) => {
                self.ask_for_assertion(ready, AssertionKind::Identity, provider.client_id);
                Ok(())
            }
            Flow::WorkloadIdentity => {
                let audience = ready.target.issuer().to_owned();
                self.ask_for_assertion(ready, AssertionKind::Workload, audience);
                Ok(())
            }
        }
    }

    fn ask_for_assertion(&mut self, ready: Box<Ready>, kind: AssertionKind, audience: String) {
        let resource = ready.target.resource.clone();
        self.outbox.push(Action::SupplyAssertion(AssertionRequest { kind, audience, resource }));
        self.state = State::AwaitingAssertion(ready);
    }

    pub(super) fn request_tokens_for_code(
        &mut self,
        ready: Box<Ready>,
        pending: &PendingAuthorization,
        code: Secret,
    ) -> Result<(), LoginError> {
        let form = Form::grant(grant_types::AUTHORIZATION_CODE)
            .with_secret("code", code)
            .with("redirect_uri", pending.redirect_uri())
            .with_secret("code_verifier", pending.verifier().clone())
            .with("resource", ready.target.resource.as_str());
        self.request_tokens(ready, form)
    }

    pub(super) fn show_device_code(
        &mut self,
        now: UnixTime,
        ready: Box<Ready>,
        call: &EndpointCall,
        response: &HttpResponse,
    ) -> Result<(), LoginError> {
        let code = read_device_code(now, &self.config, call, response)?;
        let form = Form::grant(grant_types::DEVICE_CODE)
            .with_secret("device_code", code.device_code)
            .with("resource", ready.target.resource.as_str());
        let call = ready.call(&ready.token_endpoint, form);
        let polling = DevicePolling::new(now, call, code.interval, code.shown.expires_at);
        self.outbox.push(Action::ShowDeviceCode(code.shown));
        self.state = State::PollingDevice { ready, polling };
        Ok(())
    }

    pub(super) fn handle_polled(
        &mut self,
        now: UnixTime,
        ready: Box<Ready>,
        mut polling: DevicePolling,
        response: HttpResponse,
    ) -> Result<(), LoginError> {
        let response = match polling.call.handle_response(response)? {
            Reply::Repeat(request) => return self.fetch(request, State::PollingDevice { ready, polling }),
            Reply::Response(response) => response,
        };
        match read_tokens(now, &response, &ready.expectations(&polling.call)) {
            Ok(tokens) => {
                self.succeed(&ready, tokens);
                Ok(())
            }
            Err(error) if polling.goes_on_after(now, &error) => {
                self.state = State::PollingDevice { ready, polling };
                Ok(())
            }
            Err(LoginError::TokenRefused { error, .. }) if error.is("expired_token") => Err(LoginError::CodeExpired),
            Err(LoginError::TokenRefused { error, .. }) if error.is("access_denied") => {
                Err(LoginError::AuthorizationRefused(error))
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn use_assertion(&mut self, ready: Box<Ready>, assertion: Secret) -> Result<(), LoginError> {
        let Flow::EnterpriseManaged(provider) = &self.config.flow else {
            return self.request_tokens_for_assertion(ready, assertion);
        };
        let mut call = exchange(provider, &ready, assertion)?;
        self.fetch(call.request(), State::ExchangingIdentity { ready, call })
    }

    pub(super) fn finish_exchange(
        &mut self,
        ready: Box<Ready>,
        call: &EndpointCall,
        response: &HttpResponse,
    ) -> Result<(), LoginError> {
        let assertion = read_exchanged_assertion(response, call, ID_JAG)?;
        self.request_tokens_for_assertion(ready, assertion)
    }

    fn request_tokens_for_assertion(&mut self, ready: Box<Ready>, assertion: Secret) -> Result<(), LoginError> {
        let form = Form::grant(grant_types::JWT_BEARER).with_secret("assertion", assertion);
        let form = ready.scope_and_resource(form);
        self.request_tokens(ready, form)
    }

    fn request_tokens(&mut self, ready: Box<Ready>, form: Form) -> Result<(), LoginError> {
        let mut call = ready.call(&ready.token_endpoint, form);
        self.fetch(call.request(), State::RequestingTokens { ready, call })
    }

    pub(super) fn finish(
        &mut self,
        now: UnixTime,
        ready: Box<Ready>,
        call: &EndpointCall,
        response: &HttpResponse,
    ) -> Result<(), LoginError> {
        match read_tokens(now, response, &ready.expectations(call)) {
            Ok(tokens) => {
                self.succeed(&ready, tokens);
                Ok(())
            }
            Err(error) => {
                if error.is_refusal("invalid_client") && ready.registration.is_dynamic {
                    // The next login registers the client again. This one cannot: its code is for the forgotten client.
                    self.forget_registration(&ready.registration);
                }
                Err(error)
            }
        }
    }

    fn succeed(&mut self, ready: &Ready, tokens: Tokens) {
        let grant = Box::new(Grant {
            issuer: ready.target.issuer().to_owned(),
            resource: ready.target.resource.clone(),
            token_endpoint: ready.token_endpoint.to_string(),
            revocation_endpoint: ready.target.revocation_endpoint(&self.config),
            registration: ready.registration.clone(),
            requested_scopes: ready.scopes.clone(),
            tokens,
        });
        // Tokens of another authorization server must not be sent to this server any more.
        let outdated =
            self.stored.grant.take().filter(|old| old.issuer != grant.issuer || old.resource != grant.resource);
        if let Some(Grant { issuer, resource, .. }) = outdated {
            self.save(Save::ForgetGrant { issuer, resource });
        }
        self.save(Save::Grant(grant.clone()));
        self.outbox.push(Action::Done(grant));
        self.state = State::Over;
    }
}

impl Ready {
    /// Creates a request to the token endpoint.
    fn call(&self, endpoint: &Address, form: Form) -> EndpointCall {
        let client = ClientCredentials::of(&self.registration);
        EndpointCall::new(endpoint, &client, form, self.binding.with_proof).knowing(&self.secrets)
    }

    fn scope_and_resource(&self, form: Form) -> Form {
        form.with_non_empty("scope", self.scopes.to_string()).with("resource", self.target.resource.as_str())
    }

    fn expectations<'a>(&'a self, call: &'a EndpointCall) -> TokenExpectations<'a> {
        TokenExpectations { call, requested: &self.scopes, must_be_bound: self.binding.must_be_bound }
    }
}

/// Creates the request that exchanges the identity of a user at its provider for an assertion to the authorization server.
fn exchange(provider: &IdentityProvider, ready: &Ready, identity: Secret) -> Result<EndpointCall, LoginError> {
    let url = provider.token_endpoint.as_str();
    let endpoint = Address::parse(url).map_err(|reason| LoginError::UnsafeAddress {
        what: "token endpoint of the identity provider",
        url: shown(url),
        reason,
    })?;
    let subject_token_type = match provider.subject_token_type {
        SubjectTokenType::IdToken => "urn:ietf:params:oauth:token-type:id_token",
        SubjectTokenType::Saml2 => "urn:ietf:params:oauth:token-type:saml2",
    };
    let form = Form::grant(grant_types::TOKEN_EXCHANGE)
        .with("requested_token_type", ID_JAG)
        .with("audience", ready.target.issuer())
        .with_secret("subject_token", identity)
        .with("subject_token_type", subject_token_type);
    let form = ready.scope_and_resource(form);
    let client = ClientCredentials::at_provider(provider);
    Ok(EndpointCall::new(&endpoint, &client, form, false).knowing(&ready.secrets))
}
