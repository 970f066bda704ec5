//! The machine of a login.
//!
//! ```text
//! Discovering --> Registering --> (Refreshing) --> AwaitingRedirect ------------------> RequestingTokens --> Over
//!                 AskingForClient                  RequestingDeviceCode --> PollingDevice                     ^
//!                                                  AwaitingAssertion --> (ExchangingIdentity) ----------------+
//! ```

mod addresses;
mod authorization;
mod demand;
mod device;
mod discovery;
mod grants;
mod registering;
mod scopes;
mod target;

use std::fmt;

use zeroize::Zeroizing;

use self::authorization::PendingAuthorization;
use self::demand::Demand;
use self::device::{DevicePolling, DeviceProgress};
use self::discovery::{Discovery, Progress};
use self::target::{Binding, Target};
use super::endpoint::{EndpointCall, Reply};
use super::outbox::Outbox;
use super::redaction::KnownSecrets;
use super::register;
use super::{
    Action, HttpRequest, HttpResponse, LoginConfig, LoginError, PreRegistered, Registration, RequestError, Save, Stored,
};
use crate::address::{Address, shown};
use crate::{Challenge, Scopes, Secret, UnixTime};

/// A login, as a machine without I/O: it reads no clock, opens no socket, makes no random numbers and signs nothing.
///
/// Call [`poll`](Self::poll), do what it returns, report the result with one of the `handle_` methods, and poll again, until it
/// returns [`Action::Done`] or [`Action::Failed`]. Each action is returned once; until its result is reported, `poll` returns
/// [`Action::Idle`]. Results that the login does not wait for are ignored.
///
/// # Examples
///
/// A driver is a loop:
///
/// ```
/// use mcp_auth::client::{Action, Flow, Grant, HttpRequest, HttpResponse, Login, LoginConfig, LoginError, PreRegistered, Stored};
/// use mcp_auth::{Challenge, UnixTime};
///
/// fn log_in(
///     www_authenticate: &str,
///     now: impl Fn() -> UnixTime,
///     send: impl Fn(HttpRequest) -> HttpResponse,
/// ) -> Result<Box<Grant>, LoginError> {
///     let config = LoginConfig::new("https://mcp.example/mcp", Flow::ClientCredentials)
///         .expect("the address is https")
///         .pre_registered(PreRegistered::new("reader").client_secret("secret"));
///     let random = [0; Login::RANDOM_BYTES]; // In a program, from the operating system.
///     let mut login = Login::new(config, Stored::default(), &Challenge::parse_all([www_authenticate]), random);
///     loop {
///         match login.poll(now()) {
///             Action::Fetch(request) => login.handle_response(now(), send(request)),
///             Action::Save(_) => login.handle_saved(), // Once it is stored.
///             Action::Done(grant) => return Ok(grant),
///             Action::Failed(error) => return Err(error),
///             other => unreachable!("this flow needs no {other:?}"),
///         }
///     }
/// }
///
/// let metadata = |url: &str| match url {
///     "https://mcp.example/.well-known/oauth-protected-resource/mcp" => {
///         r#"{"resource": "https://mcp.example/mcp", "authorization_servers": ["https://as.example"]}"#
///     }
///     "https://as.example/.well-known/oauth-authorization-server" => {
///         r#"{"issuer": "https://as.example", "token_endpoint": "https://as.example/token"}"#
///     }
///     _ => r#"{"access_token": "opaque", "token_type": "Bearer"}"#,
/// };
/// let now = || UnixTime::from_secs(1_800_000_000);
/// let grant = log_in("Bearer scope=\"read\"", now, |request| HttpResponse::new(200, metadata(&request.url)))?;
/// assert_eq!(grant.tokens.access_token.expose(), "opaque");
/// assert_eq!(grant.tokens.scopes.to_string(), "read");
/// # Ok::<(), LoginError>(())
/// ```
pub struct Login {
    config: LoginConfig,
    stored: Stored,
    demand: Demand,
    random: Zeroizing<[u8; Self::RANDOM_BYTES]>,
    state: State,
    outbox: Outbox,
}

#[derive(Debug)]
enum State {
    Start,
    Discovering(Discovery),
    Registering { target: Box<Target>, endpoint: Address },
    AskingForClient(Box<Target>),
    Refreshing { ready: Box<Ready>, call: EndpointCall },
    AwaitingRedirect { ready: Box<Ready>, pending: PendingAuthorization },
    RequestingDeviceCode { ready: Box<Ready>, call: EndpointCall },
    PollingDevice { ready: Box<Ready>, polling: DevicePolling },
    AwaitingAssertion(Box<Ready>),
    ExchangingIdentity { ready: Box<Ready>, call: EndpointCall },
    RequestingTokens { ready: Box<Ready>, call: EndpointCall },
    Over,
}

/// What every way to tokens needs: a registered client, and what to request.
#[derive(Debug)]
struct Ready {
    target: Box<Target>,
    registration: Registration,
    scopes: Scopes,
    token_endpoint: Address,
    binding: Binding,
    /// What the authorization server could repeat.
    secrets: KnownSecrets,
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

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The random bytes become the state and the verifier.
        f.debug_struct("Login").field("server", &self.config.server).finish_non_exhaustive()
    }
}

impl Login {
    /// The number of random bytes that a login needs.
    pub const RANDOM_BYTES: usize = 64;

    /// Creates a login from its configuration, what is known from earlier ones, the challenges of the response that started it,
    /// and random bytes from a source that is fit for secrets.
    #[must_use]
    pub fn new(
        config: LoginConfig,
        stored: Stored,
        challenges: &[Challenge],
        random: [u8; Self::RANDOM_BYTES],
    ) -> Self {
        let (demand, random) = (Demand::new(challenges), Zeroizing::new(random));
        Self { config, stored, demand, random, state: State::Start, outbox: Outbox::default() }
    }

    /// Returns what to do next.
    #[must_use]
    pub fn poll(&mut self, now: UnixTime) -> Action {
        if matches!(self.state, State::Start) {
            self.start();
        }
        if let Some(action) = self.outbox.poll() {
            return action;
        }
        if !self.outbox.is_empty() {
            return Action::Idle;
        }
        let State::PollingDevice { polling, .. } = &mut self.state else { return Action::Idle };
        if polling.is_asking {
            return Action::Idle;
        }
        match polling.poll(now) {
            DeviceProgress::Wait(until) => Action::WaitUntil(until),
            DeviceProgress::Ask => {
                polling.is_asking = true;
                Action::Fetch(polling.call.request())
            }
            DeviceProgress::Expired => {
                self.state = State::Over;
                Action::Failed(LoginError::CodeExpired)
            }
        }
    }

    /// Whether the request in flight obtains tokens or registers the client, so that it must not be cancelled before its
    /// response was reported and all that follows was saved: the authorization server does not issue the same tokens again.
    #[must_use]
    pub const fn must_finish(&self) -> bool {
        match &self.state {
            State::Registering { .. }
            | State::Refreshing { .. }
            | State::ExchangingIdentity { .. }
            | State::RequestingTokens { .. } => true,
            State::PollingDevice { polling, .. } => polling.is_asking,
            State::Start
            | State::Discovering(_)
            | State::AskingForClient(_)
            | State::AwaitingRedirect { .. }
            | State::RequestingDeviceCode { .. }
            | State::AwaitingAssertion(_)
            | State::Over => false,
        }
    }

    /// Reports the response to an [`Action::Fetch`].
    pub fn handle_response(&mut self, now: UnixTime, response: HttpResponse) {
        if !self.outbox.is_empty() {
            return;
        }
        let result = match std::mem::replace(&mut self.state, State::Over) {
            State::Discovering(mut discovery) => {
                let progress = discovery.handle_response(&self.config, &response);
                progress.and_then(|progress| self.advance_discovery(now, discovery, progress))
            }
            State::Registering { target, endpoint } => self.finish_registration(target, &endpoint, &response),
            State::Refreshing { ready, mut call } => match call.handle_response(response) {
                Ok(Reply::Repeat(request)) => self.fetch(request, State::Refreshing { ready, call }),
                Ok(Reply::Response(response)) => self.finish_refresh(now, ready, &call, &response),
                Err(error) => Err(error),
            },
            State::RequestingDeviceCode { ready, mut call } => match call.handle_response(response) {
                Ok(Reply::Repeat(request)) => self.fetch(request, State::RequestingDeviceCode { ready, call }),
                Ok(Reply::Response(response)) => self.show_device_code(now, ready, &call, &response),
                Err(error) => Err(error),
            },
            State::PollingDevice { ready, polling } if polling.is_asking => {
                self.handle_polled(now, ready, polling, response)
            }
            State::ExchangingIdentity { ready, mut call } => match call.handle_response(response) {
                Ok(Reply::Repeat(request)) => self.fetch(request, State::ExchangingIdentity { ready, call }),
                Ok(Reply::Response(response)) => self.finish_exchange(ready, &call, &response),
                Err(error) => Err(error),
            },
            State::RequestingTokens { ready, mut call } => match call.handle_response(response) {
                Ok(Reply::Repeat(request)) => self.fetch(request, State::RequestingTokens { ready, call }),
                Ok(Reply::Response(response)) => self.finish(now, ready, &call, &response),
                Err(error) => Err(error),
            },
            state @ (State::Start
            | State::AskingForClient(_)
            | State::AwaitingRedirect { .. }
            | State::PollingDevice { .. }
            | State::AwaitingAssertion(_)
            | State::Over) => {
                self.state = state;
                Ok(())
            }
        };
        self.fail_on_error(result);
    }

    /// Reports that an [`Action::Fetch`] got no response.
    pub fn handle_failure(&mut self, now: UnixTime, error: RequestError) {
        if !self.outbox.is_empty() {
            return;
        }
        if matches!(self.state, State::Discovering(_)) {
            let State::Discovering(mut discovery) = std::mem::replace(&mut self.state, State::Over) else { return };
            let progress = discovery.handle_failure(&self.config, error);
            let result = progress.and_then(|progress| self.advance_discovery(now, discovery, progress));
            return self.fail_on_error(result);
        }
        let fetch_error = |url: &str, error| LoginError::Fetch { url: shown(url), error };
        let error = match &mut self.state {
            State::Registering { endpoint, .. } => fetch_error(endpoint.as_str(), error),
            State::Refreshing { call, .. }
            | State::RequestingDeviceCode { call, .. }
            | State::ExchangingIdentity { call, .. }
            | State::RequestingTokens { call, .. } => fetch_error(call.url(), error),
            State::PollingDevice { polling, .. } if polling.is_asking => {
                let error = fetch_error(polling.call.url(), error);
                if polling.goes_on_after(now, &error) {
                    return;
                }
                error
            }
            State::Start
            | State::Discovering(_)
            | State::AskingForClient(_)
            | State::AwaitingRedirect { .. }
            | State::PollingDevice { .. }
            | State::AwaitingAssertion(_)
            | State::Over => return,
        };
        self.fail_on_error(Err(error));
    }

    /// Reports the address that the browser was sent back to after an [`Action::OpenBrowser`]: the whole address, or what
    /// follows its host.
    ///
    /// # Errors
    ///
    /// Returns an error if the address does not belong to this login, which then goes on waiting: any page can send a browser to
    /// the redirect URI.
    pub fn handle_redirect(&mut self, redirect: &str) -> Result<(), RedirectError> {
        if !self.outbox.is_empty() {
            return Err(RedirectError::NotExpected);
        }
        let State::AwaitingRedirect { pending, .. } = &self.state else { return Err(RedirectError::NotExpected) };
        let code = pending.read_response(redirect)?;
        let result = match (code, std::mem::replace(&mut self.state, State::Over)) {
            (Ok(code), State::AwaitingRedirect { ready, pending }) => {
                self.request_tokens_for_code(ready, &pending, code)
            }
            (Ok(_), _) => Ok(()),
            (Err(error), _) => Err(error),
        };
        self.fail_on_error(result);
        Ok(())
    }

    /// Provides what an [`Action::AskForClient`] asks for.
    pub fn handle_client(&mut self, client: &PreRegistered) {
        if !self.outbox.is_empty() || !matches!(self.state, State::AskingForClient(_)) {
            return;
        }
        let State::AskingForClient(target) = std::mem::replace(&mut self.state, State::Over) else { return };
        let result = match &client.issuer {
            Some(registered) if registered != target.issuer() => Err(LoginError::RegisteredElsewhere {
                registered: registered.clone(),
                issuer: target.issuer().to_owned(),
            }),
            _ => {
                let registration = register::bind(client, &target.server);
                self.save(Save::Registration(registration.clone()));
                self.start_flow(target, registration)
            }
        };
        self.fail_on_error(result);
    }

    /// Provides what an [`Action::SupplyAssertion`] asks for.
    pub fn handle_assertion(&mut self, assertion: Secret) {
        if !self.outbox.is_empty() || !matches!(self.state, State::AwaitingAssertion(_)) {
            return;
        }
        let State::AwaitingAssertion(ready) = std::mem::replace(&mut self.state, State::Over) else { return };
        let result = self.use_assertion(ready, assertion);
        self.fail_on_error(result);
    }

    /// Reports that what the login asked a user or the host for is not provided, which fails the login.
    pub fn handle_declined(&mut self) {
        let is_asking = matches!(
            self.state,
            State::AskingForClient(_)
                | State::AwaitingAssertion(_)
                | State::AwaitingRedirect { .. }
                | State::PollingDevice { .. }
        );
        if is_asking {
            self.outbox.clear();
            self.fail_on_error(Err(LoginError::Declined));
        }
    }

    /// Reports that an [`Action::Save`] was done.
    pub const fn handle_saved(&mut self) {
        self.outbox.handle_saved();
    }

    fn start(&mut self) {
        let mut preferred = Vec::new();
        preferred.extend(self.config.pre_registered.as_ref().and_then(|client| client.issuer.clone()));
        preferred.extend(self.stored.grant.as_ref().map(|grant| grant.issuer.clone()));
        preferred.extend(self.stored.registrations.iter().map(|registration| registration.issuer.clone()));
        let named = self.demand.resource_metadata.as_deref();
        let discovery = Discovery::new(&self.config, named, preferred);
        let result = discovery.and_then(|mut discovery| {
            let progress = discovery.next(&self.config)?;
            // The first step is always a request: the well-known places are never empty.
            if let Progress::Fetch(request) = progress {
                self.outbox.push(Action::Fetch(request));
            }
            self.state = State::Discovering(discovery);
            Ok(())
        });
        self.fail_on_error(result);
    }

    fn advance_discovery(&mut self, now: UnixTime, discovery: Discovery, progress: Progress) -> Result<(), LoginError> {
        match progress {
            Progress::Fetch(request) => self.fetch(request, State::Discovering(discovery)),
            Progress::Found(target) => self.choose_registration(now, target),
        }
    }

    fn fetch(&mut self, request: HttpRequest, state: State) -> Result<(), LoginError> {
        self.outbox.push(Action::Fetch(request));
        self.state = state;
        Ok(())
    }

    /// Returns the secrets that servers may know before the login has any of its own.
    fn known_secrets(&self) -> KnownSecrets {
        let mut secrets = KnownSecrets::default();
        secrets.add_query(self.config.server.as_str());
        secrets.add_all(self.config.pre_registered.iter().filter_map(|client| client.client_secret.as_ref()));
        secrets.add_all(self.stored.registrations.iter().filter_map(|known| known.client_secret.as_ref()));
        if let Some(grant) = &self.stored.grant {
            secrets.add_all([&grant.tokens.access_token]);
            secrets.add_all(&grant.tokens.refresh_token);
        }
        secrets
    }

    fn save(&mut self, change: Save) {
        self.outbox.save(change);
    }

    fn fail_on_error(&mut self, result: Result<(), LoginError>) {
        if let Err(error) = result {
            self.state = State::Over;
            self.outbox.fail(error);
        }
    }
}
