//! The authorizer.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use http::HeaderValue;
use mcp_transport_http::{AuthorizationError, Authorizer, Credential, RequestHead, ResponseHead};

use super::active_login::{ActiveLogin, Freshness, Origin};
use super::builder::{OAuthBuilder, Settings};
use super::clock;
use super::error::OAuthFailure;
use super::logins::{Logins, SaveContext};
use super::record::SavedGrant;
use super::sender::{DPOP_NONCE, Sender, unique_id};
use super::session::LoginSession;
use crate::client::{Action, DpopNonce, Grant, LoginError, Revocation, StepUps, Stored};
use crate::jose::{DpopClaims, SigningKey};
use crate::{Challenge, Scopes};

/// How long to wait before tokens that are still valid are refreshed again after a failure.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// Logs in to a server when it demands that, and keeps the login.
///
/// Clones share the login. It is the [`Authorizer`] of the server's transport:
///
/// ```no_run
/// use mcp_auth::authorizer::{OAuth, TerminalPrompt};
/// use mcp_auth::store::FileStore;
/// use mcp_transport_http::HttpTransport;
///
/// # fn transport() -> Result<HttpTransport, Box<dyn std::error::Error>> {
/// let server = "https://example.com/mcp";
/// let oauth = OAuth::builder(server)
///     .client_name("Example")
///     .prompt(TerminalPrompt::new())
///     .store(FileStore::new("/home/ada/.config/example/logins.json"))
///     .build()?;
/// let transport = HttpTransport::new(server)?.authorizer(oauth.clone());
/// # Ok(transport)
/// # }
/// ```
///
/// # Tokens
///
/// Tokens are refreshed ahead of their expiry, while calls go on with the old ones. A refresh happens once, for all tasks and for
/// all processes that share the store, and its result is saved before it is used. If the authorization server cannot be reached,
/// the tokens are kept; if it says that the login has ended, the next request that the server refuses starts a login.
///
/// Calls that wait for the same login share it. It is cancelled when the last of them is dropped.
#[derive(Clone)]
pub struct OAuth {
    core: Arc<Core>,
}

pub(super) struct Core {
    pub(super) settings: Settings,
    pub(super) sender: Sender,
    pub(super) logins: Logins,
    /// Not locked while anything is awaited.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    active: Option<Arc<ActiveLogin>>,
    /// Whether the store was read.
    is_loaded: bool,
    /// Why the last login has ended.
    ended: Option<LoginError>,
    /// The refresh in flight, in a task of its own.
    renewal: Option<Flight>,
    /// The login in flight, as long as a call waits for it.
    login: Option<WeakFlight>,
    step_ups: StepUps,
    /// The nonce of the server for proofs.
    nonce: DpopNonce,
    /// The latest challenges of the server, for logins without a user.
    challenges: Vec<Challenge>,
    /// When to try to refresh again, since 1970.
    retry_at: Duration,
    failures: u32,
}

type Renewed = Result<Option<Arc<ActiveLogin>>, OAuthFailure>;
type Flight = Shared<BoxFuture<'static, Renewed>>;
type WeakFlight = WeakShared<BoxFuture<'static, Renewed>>;

impl OAuth {
    /// Creates a builder for the server with this URL.
    pub fn builder(server: impl Into<String>) -> OAuthBuilder {
        OAuthBuilder::new(server.into())
    }

    pub(super) fn new(settings: Settings, sender: Sender, logins: Logins) -> Self {
        Self { core: Arc::new(Core { settings, sender, logins, state: Mutex::default() }) }
    }

    /// Logs in now, instead of with the first request that the server refuses. Replaces an earlier login.
    ///
    /// # Errors
    ///
    /// Returns an error if the login failed. An earlier login is kept then.
    pub async fn login(&self) -> Result<(), OAuthFailure> {
        let reason = LoginReason { refused: None, challenges: Vec::new(), is_step_up: false, is_forced: true };
        let logged_in = self.core.start_login(reason).await?;
        logged_in.map(drop).ok_or_else(|| self.core.not_logged_in())
    }

    /// Whether there are tokens, or a way to get them without a user. They may be invalid.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub async fn is_logged_in(&self) -> Result<bool, OAuthFailure> {
        Ok(self.core.settings.is_unattended() || self.core.active().await?.is_some())
    }

    /// Logs out: forgets the tokens, and revokes them if the authorization server supports that.
    ///
    /// # Errors
    ///
    /// Returns an error if the store failed, or the authorization server did not confirm. The tokens are forgotten in the latter
    /// case, too.
    pub async fn logout(&self) -> Result<(), OAuthFailure> {
        self.core.logout().await
    }
}

/// Why a user has to log in.
struct LoginReason {
    /// The credential that the server refused.
    refused: Option<Credential>,
    challenges: Vec<Challenge>,
    /// Whether the tokens are valid and have too few scopes.
    is_step_up: bool,
    /// Whether to log in even if another process has done so.
    is_forced: bool,
}

impl Core {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_active(&self, active: Option<Arc<ActiveLogin>>) {
        let mut state = self.state();
        if active.is_some() {
            (state.ended, state.failures, state.retry_at) = (None, 0, Duration::ZERO);
        }
        let earlier = std::mem::replace(&mut state.active, active);
        state.is_loaded = true;
        drop(state);
        drop(earlier);
    }

    pub(super) fn set_ended(&self, error: LoginError) {
        self.state().ended = Some(error);
    }

    pub(super) fn challenges(&self) -> Vec<Challenge> {
        self.state().challenges.clone()
    }

    pub(super) fn activate(
        &self,
        saved: SavedGrant,
        origin: Origin,
        is_saved: bool,
    ) -> Result<Arc<ActiveLogin>, OAuthFailure> {
        let active = ActiveLogin::new(saved, origin, is_saved);
        let invalid = |_| LoginError::InvalidTokenResponse("the access token has characters that cannot be sent");
        Ok(Arc::new(active.map_err(invalid)?))
    }

    /// Uses the tokens of a login, which were saved.
    pub(super) fn use_login(&self, grant: Grant, context: SaveContext) -> Result<Arc<ActiveLogin>, OAuthFailure> {
        let key = context.key.filter(|_| grant.is_dpop_bound());
        let saved = SavedGrant { grant, issued_at: clock::now(), id: context.id, key };
        let active = self.activate(saved, Origin::Login, true)?;
        self.set_active(Some(Arc::clone(&active)));
        tracing::debug!(server = %self.settings.server, "logged in");
        Ok(active)
    }

    /// Returns the key that tokens are bound to, if any: that of the earlier login, or a new one.
    pub(super) fn dpop_key(&self, earlier: Option<&SavedGrant>) -> Result<Option<Arc<SigningKey>>, OAuthFailure> {
        if !self.settings.uses_dpop {
            return Ok(None);
        }
        match earlier.and_then(|saved| saved.key.clone()) {
            Some(key) => Ok(Some(key)),
            None => Ok(Some(Arc::new(SigningKey::generate()?))),
        }
    }

    fn not_logged_in(&self) -> OAuthFailure {
        let ended = self.state().ended.clone();
        self.settings.not_logged_in(ended.as_ref())
    }

    /// Returns the tokens in use, which are read from the store the first time.
    async fn active(&self) -> Renewed {
        {
            let state = self.state();
            if state.is_loaded {
                return Ok(state.active.clone());
            }
        }
        let saved = self.logins.load().await?;
        let loaded = saved.grant.map(|grant| self.activate(grant, Origin::Store, true)).transpose()?;
        let mut state = self.state();
        // A login or a refresh may have been faster.
        if !state.is_loaded {
            (state.active, state.is_loaded) = (loaded, true);
        }
        Ok(state.active.clone())
    }

    /// Whether tokens can be replaced without a user.
    fn is_renewable(&self, active: &ActiveLogin) -> bool {
        active.is_refreshable() || self.settings.is_unattended()
    }

    /// Returns the refresh in flight, and starts one if there is none.
    fn start_renewal(self: &Arc<Self>, stale: Option<Arc<ActiveLogin>>) -> Flight {
        let mut state = self.state();
        if let Some(flight) = state.renewal.as_ref().filter(|flight| flight.peek().is_none()) {
            return flight.clone();
        }
        let core = Arc::clone(self);
        // In a task of its own: if it were dropped between the response and saving it, the login would be lost.
        let task = tokio::spawn(async move {
            let renewed = core.renew(stale).await;
            if renewed.is_err() {
                let mut state = core.state();
                let pause = LONGEST_RETRY.min(FIRST_RETRY * 2_u32.saturating_pow(state.failures));
                state.failures = state.failures.saturating_add(1);
                state.retry_at = clock::since_epoch() + pause;
            }
            renewed
        });
        let flight = async move { task.await.unwrap_or(Err(OAuthFailure::Shutdown)) }.boxed().shared();
        state.renewal = Some(flight.clone());
        flight
    }

    /// Waits until tokens are replaced. Returns `None` if that needs a user: only failures that can pass are errors.
    async fn renewed(self: &Arc<Self>, stale: Arc<ActiveLogin>) -> Renewed {
        match self.start_renewal(Some(stale)).await {
            Err(OAuthFailure::Login(error)) if !error.is_transient() && !self.settings.is_unattended() => {
                tracing::info!(server = %self.settings.server, %error, "the tokens cannot be refreshed");
                self.set_ended(error);
                Ok(None)
            }
            renewed => renewed,
        }
    }

    /// Joins the login in flight, or starts one.
    async fn start_login(self: &Arc<Self>, reason: LoginReason) -> Renewed {
        if self.settings.is_unattended() {
            let stale = {
                let mut state = self.state();
                if !reason.challenges.is_empty() {
                    state.challenges = reason.challenges;
                }
                state.active.clone()
            };
            return self.start_renewal(stale).await;
        }
        let flight = {
            let mut state = self.state();
            let joined = state.login.as_ref().and_then(WeakShared::upgrade).filter(|flight| flight.peek().is_none());
            joined.unwrap_or_else(|| {
                let core = Arc::clone(self);
                let flight = async move { core.log_in(reason).await }.boxed().shared();
                state.login = flight.downgrade();
                flight
            })
        };
        flight.await
    }

    /// Lets the user log in.
    async fn log_in(&self, reason: LoginReason) -> Renewed {
        let timeout = self.settings.login_timeout;
        let login = tokio::time::timeout(timeout, self.log_in_attended(reason)).await;
        login.unwrap_or(Err(OAuthFailure::TimedOut(timeout)))
    }

    async fn log_in_attended(&self, reason: LoginReason) -> Renewed {
        let _lock = self.logins.lock_prompt().await?;
        let saved = self.logins.load().await?;
        // Another process may have logged in while this one waited.
        if let Some(grant) = saved.grant.as_ref().filter(|_| !reason.is_forced) {
            let is_refused = reason
                .refused
                .as_ref()
                .is_some_and(|refused| refused.token() == grant.grant.tokens.access_token.expose());
            let other = self.activate(grant.clone(), Origin::Store, true)?;
            if !is_refused && other.freshness() != Freshness::Expired {
                self.set_active(Some(Arc::clone(&other)));
                return Ok(Some(other));
            }
        }
        let key = self.dpop_key(saved.grant.as_ref())?;
        // With more scopes it is the same user; otherwise it may be another.
        let same = saved.grant.as_ref().filter(|_| reason.is_step_up).map(|saved| Arc::clone(&saved.id));
        let context = SaveContext { id: same.unwrap_or_else(|| unique_id().into()), key: key.clone() };
        let stored = Stored {
            registrations: self.logins.registrations().await?,
            grant: saved.grant.map(|saved| without_refresh_token(saved.grant)),
            requested_scopes: saved.requested_scopes,
        };
        let (settings, sender, logins) = (&self.settings, &self.sender, &self.logins);
        let session = LoginSession { settings, sender, logins, key, context, has_lock: false };
        match session.run(stored, &reason.challenges).await {
            Ok(grant) => self.use_login(grant, session.context).map(Some),
            Err(OAuthFailure::NotLoggedIn { .. }) => Err(self.not_logged_in()),
            Err(error) => Err(error),
        }
    }

    async fn logout(&self) -> Result<(), OAuthFailure> {
        let lock = self.logins.lock().await?;
        let saved = self.logins.load().await?;
        // Tokens that could not be saved are newer than those of the store.
        let unsaved = self.state().active.take().filter(|active| !active.is_saved);
        self.logins.remove().await?;
        drop(lock);
        let grant = unsaved.map(|active| active.saved.clone()).or(saved.grant);
        let Some(SavedGrant { grant, key, .. }) = grant else { return Ok(()) };
        let mut revocation = Revocation::new(grant);
        loop {
            match revocation.poll() {
                Action::Fetch(request) => match self.sender.send(request, key.as_deref()).await {
                    Ok(response) => revocation.handle_response(&response),
                    Err(error) => revocation.handle_failure(error),
                },
                // They were removed.
                Action::Save(_) => revocation.handle_saved(),
                Action::Failed(error) => return Err(error.into()),
                Action::Done(_)
                | Action::OpenBrowser(_)
                | Action::ShowDeviceCode(_)
                | Action::WaitUntil(_)
                | Action::AskForClient { .. }
                | Action::SupplyAssertion(_)
                | Action::Idle => return Ok(()),
            }
        }
    }

    async fn credential(self: &Arc<Self>) -> Result<Option<Credential>, OAuthFailure> {
        let Some(active) = self.active().await? else { return Ok(None) };
        match active.freshness() {
            Freshness::Fresh => {}
            Freshness::Ageing if self.is_renewable(&active) => {
                if clock::since_epoch() >= self.state().retry_at {
                    drop(self.start_renewal(Some(Arc::clone(&active))));
                }
            }
            Freshness::Ageing => {}
            Freshness::Expired if self.is_renewable(&active) => {
                let renewed = self.renewed(active).await?;
                return Ok(renewed.map(|renewed| renewed.credential.clone()));
            }
            // The server refuses the request, and the user logs in.
            Freshness::Expired => return Ok(None),
        }
        Ok(Some(active.credential.clone()))
    }

    async fn challenged(
        self: &Arc<Self>,
        challenge: &mcp_transport_http::Challenge,
    ) -> Result<Option<Credential>, OAuthFailure> {
        let challenges = Challenge::parse_all(challenge.www_authenticate.iter().map(String::as_str));
        let is_step_up = challenge.status == 403;
        if is_step_up && !challenges.iter().any(Challenge::is_insufficient_scope) {
            return Ok(None);
        }
        let refused = challenge.refused.clone();
        let active = self.active().await?;
        if let Some(active) = &active {
            // Another call has replaced it.
            if Some(&active.credential) != refused.as_ref() && active.freshness() != Freshness::Expired {
                return Ok(Some(active.credential.clone()));
            }
            if is_step_up {
                let needed = challenges.iter().find_map(Challenge::scope).unwrap_or_default();
                if !self.begin_step_up(&needed, &active.saved.grant.tokens.scopes) {
                    return Ok(None);
                }
            } else {
                // Tokens that were never accepted are not refreshed again, or obtained again and again.
                let is_new = !active.is_accepted() && refused.is_some();
                if is_new && active.origin == Origin::Login {
                    let issuer = active.saved.grant.issuer.clone();
                    return Err(OAuthFailure::Refused { server: self.settings.server.clone(), issuer });
                }
                if !(is_new && active.origin == Origin::Refresh) && self.is_renewable(active) {
                    self.state().challenges.clone_from(&challenges);
                    if let Some(renewed) = self.renewed(Arc::clone(active)).await? {
                        return Ok(Some(renewed.credential.clone()));
                    }
                }
            }
        }
        let reason = LoginReason { refused, challenges, is_step_up, is_forced: false };
        match self.start_login(reason).await? {
            Some(active) => Ok(Some(active.credential.clone())),
            None => Err(self.not_logged_in()),
        }
    }

    fn begin_step_up(&self, needed: &Scopes, granted: &Scopes) -> bool {
        self.state().step_ups.begin("", needed, granted)
    }

    fn proof(&self, credential: &Credential, request: &RequestHead<'_>) -> Result<HeaderValue, OAuthFailure> {
        let (active, nonce) = {
            let state = self.state();
            (state.active.clone(), state.nonce.current().map(str::to_owned))
        };
        let key = active.as_ref().and_then(|active| active.saved.key.as_deref());
        let key = key.ok_or(LoginError::Dpop("the key is missing"))?;
        let access_token = credential.token().into();
        let claims = DpopClaims {
            method: request.method.as_str(),
            url: request.url.as_str(),
            access_token: Some(&access_token),
            nonce: nonce.as_deref(),
            id: &unique_id(),
            issued_at: clock::now(),
        };
        let mut value =
            HeaderValue::try_from(claims.sign(key)?).map_err(|_| LoginError::Dpop("the proof is invalid"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn handle_response(&self, credential: Option<&Credential>, response: &ResponseHead<'_>) {
        let nonce = response.headers.get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok());
        let mut state = self.state();
        if nonce.is_some() {
            state.nonce.update(None, nonce);
        }
        let is_refusal = matches!(response.status.as_u16(), 401 | 403);
        if let Some(active) = state.active.as_ref().filter(|active| !is_refusal && !active.is_accepted())
            && Some(&active.credential) == credential
        {
            active.accept();
        }
    }
}

/// Returns a grant that a login does not refresh: that is done before, in a task of its own.
fn without_refresh_token(mut grant: Grant) -> Grant {
    grant.tokens.refresh_token = None;
    grant
}

#[async_trait]
impl Authorizer for OAuth {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        Ok(self.core.credential().await?)
    }

    async fn challenged(
        &self,
        challenge: &mcp_transport_http::Challenge,
    ) -> Result<Option<Credential>, AuthorizationError> {
        Ok(self.core.challenged(challenge).await?)
    }

    async fn proof(
        &self,
        credential: &Credential,
        request: &RequestHead<'_>,
    ) -> Result<HeaderValue, AuthorizationError> {
        Ok(self.core.proof(credential, request)?)
    }

    fn handle_response(&self, credential: Option<&Credential>, response: &ResponseHead<'_>) {
        self.core.handle_response(credential, response);
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("server", &self.core.settings.server).finish_non_exhaustive()
    }
}
