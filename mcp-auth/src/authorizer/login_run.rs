//! A login, from its first request to its tokens.

use std::sync::Arc;

use futures_util::future::{BoxFuture, Either, select};
use mcp_kernel::observe::Observation;
use tokio::time::{Duration, sleep, timeout};

use super::active_login::ActiveLogin;
use super::builder::Settings;
use super::clock;
use super::core::Core;
use super::error::OAuthError;
use super::logins::SaveContext;
use super::prompt::{DevicePrompt, LoginPrompt, PendingLogin, PromptError};
use super::sender::random;
use crate::client::{
    Action, AssertionRequest, DeviceCode, DpopKey, Flow, Grant, HttpRequest, Login, LoginConfig, LoginError, Save,
    Stored,
};
use crate::jose::SigningKey;
use crate::store::StoreLock;
use crate::{Challenge, Secret};

/// How users are involved.
#[derive(Clone)]
pub(super) enum Interaction {
    /// There are no users, or none that can be asked.
    None,
    Browser(Arc<dyn LoginPrompt>),
    Device(Arc<dyn DevicePrompt>),
}

/// What a login starts with.
pub(super) struct LoginStart {
    pub(super) stored: Stored,
    /// What the server demands; empty if that is not known.
    pub(super) challenges: Vec<Challenge>,
    pub(super) key: Option<Arc<SigningKey>>,
    /// What is kept with the tokens.
    pub(super) context: SaveContext,
    /// The right to ask the user. Without it, the caller has the right to replace the tokens.
    pub(super) prompt_lock: Option<StoreLock>,
    /// How often the user had logged out before.
    pub(super) generation: u64,
}

/// A login that runs.
pub(super) struct LoginRun {
    core: Arc<Core>,
    login: Login,
    key: Option<Arc<SigningKey>>,
    context: SaveContext,
    prompt_lock: Option<StoreLock>,
    generation: u64,
    /// Whether the store has the tokens.
    is_saved: bool,
}

/// What an exchange comes to.
enum Exchanged {
    Done(Arc<ActiveLogin>),
    /// The login goes on with this action.
    Next(Box<(LoginRun, Action)>),
}

impl LoginRun {
    /// Logs in. The tokens are saved before they are used, if the store does not fail.
    ///
    /// If the future is dropped, the login ends, but a request for tokens that was sent is still followed by saving them, or by
    /// revoking them if the user has logged out.
    pub(super) async fn run(core: Arc<Core>, start: LoginStart) -> Result<Arc<ActiveLogin>, OAuthError> {
        let active = Self::log_in(Arc::clone(&core), start).await;
        core.settings.observe(&Observation::Login { is_successful: active.is_ok() });
        active
    }

    async fn log_in(core: Arc<Core>, start: LoginStart) -> Result<Arc<ActiveLogin>, OAuthError> {
        let LoginStart { stored, challenges, key, context, prompt_lock, generation } = start;
        let mut pending = None;
        let flow = match (&core.settings.flow, &core.settings.interaction) {
            (Some(flow), _) => flow.clone(),
            (None, Interaction::Browser(prompt)) => {
                let earlier = stored.registrations.iter().rev().find_map(|known| known.redirect_uri.as_deref());
                let login = pending.insert(prompt.begin(earlier).await?);
                Flow::AuthorizationCode { redirect_uri: login.redirect_uri().to_owned() }
            }
            (None, Interaction::Device(_)) => Flow::DeviceCode,
            (None, Interaction::None) => return Err(core.settings.not_logged_in(None)),
        };
        let config = login_config(&core, flow, key.as_deref())?;
        // A login that was asked for before the server has refused anything.
        let challenges = match challenges.is_empty() {
            true => core.sender.provoke_challenges(config.server()).await,
            false => challenges,
        };
        let login = Login::new(config, stored, &challenges, random()?);
        Self { core, login, key, context, prompt_lock, generation, is_saved: true }.drive(pending).await
    }

    async fn drive(mut self, mut pending: Option<Box<dyn PendingLogin>>) -> Result<Arc<ActiveLogin>, OAuthError> {
        let mut shown: Option<Shown> = None;
        let mut action = self.login.poll(clock::now());
        loop {
            match action {
                Action::Fetch(request) if self.login.must_finish() => {
                    // In a task of its own: what it obtains would be lost if it were dropped before it is saved.
                    let exchange = tokio::spawn(self.exchange(request));
                    let exchanged = while_shown(&mut shown, exchange).await?;
                    match exchanged.unwrap_or_else(|error| Err(OAuthError::of_task(&error)))? {
                        Exchanged::Done(active) => return Ok(active),
                        Exchanged::Next(next) => (self, action) = *next,
                    }
                    continue;
                }
                Action::Fetch(request) => while_shown(&mut shown, self.send(request)).await?,
                Action::OpenBrowser(request) => {
                    let pending = pending.as_mut().ok_or_else(|| self.core.settings.not_logged_in(None))?;
                    pending.authorize(&request, &mut |redirect| self.login.handle_redirect(redirect)).await?;
                }
                Action::ShowDeviceCode(code) => shown = Some(self.show(code)?),
                Action::WaitUntil(time) => {
                    let until = Duration::from_secs(time.as_secs()).saturating_sub(clock::since_epoch());
                    while_shown(&mut shown, sleep(until)).await?;
                }
                Action::AskForClient { issuer } => match self.core.settings.interaction.clone() {
                    Interaction::Browser(prompt) => match prompt.client(&issuer).await? {
                        Some(client) => self.login.handle_client(&client),
                        None => return Err(LoginError::NoRegistration { issuer }.into()),
                    },
                    Interaction::Device(_) | Interaction::None => {
                        return Err(LoginError::NoRegistration { issuer }.into());
                    }
                },
                Action::SupplyAssertion(request) => match assertion(&self.core.settings, &request).await? {
                    Some(assertion) => self.login.handle_assertion(assertion),
                    None => self.login.handle_declined(),
                },
                Action::Save(save) => self.save(save).await?,
                Action::Done(grant) => return self.finish(*grant).await,
                Action::Failed(error) => return Err(error.into()),
                // Each action was done and reported, so the login cannot wait for one.
                Action::Idle => return Err(LoginError::Declined.into()),
            }
            action = self.login.poll(clock::now());
        }
    }

    /// Sends a request that obtains tokens, and saves the tokens.
    async fn exchange(mut self, mut request: HttpRequest) -> Result<Exchanged, OAuthError> {
        loop {
            self.send(request).await;
            request = loop {
                match self.login.poll(clock::now()) {
                    Action::Save(save) => self.save(save).await?,
                    Action::Fetch(next) if self.login.must_finish() => break next,
                    Action::Done(grant) => {
                        return self.finish(*grant).await.map(Exchanged::Done);
                    }
                    next @ (Action::Fetch(_)
                    | Action::OpenBrowser(_)
                    | Action::ShowDeviceCode(_)
                    | Action::WaitUntil(_)
                    | Action::AskForClient { .. }
                    | Action::SupplyAssertion(_)
                    | Action::Failed(_)
                    | Action::Idle) => return Ok(Exchanged::Next(Box::new((self, next)))),
                }
            };
        }
    }

    async fn send(&mut self, request: HttpRequest) {
        match self.core.sender.send(request, self.key.as_deref()).await {
            Ok(response) => self.login.handle_response(clock::now(), response),
            Err(error) => self.login.handle_failure(clock::now(), error),
        }
    }

    /// Saves a change. If the store fails, the login goes on without it: what the authorization server issued is issued once.
    async fn save(&mut self, save: Save) -> Result<(), OAuthError> {
        let is_grant = matches!(save, Save::Grant(_));
        // A refresh of the tokens that are replaced must not be saved after them.
        let needs_lock = (is_grant || matches!(save, Save::ForgetGrant { .. })) && self.prompt_lock.is_some();
        let lock = if needs_lock { self.core.logins.lock().await.map(Some) } else { Ok(None) };
        if let Err(error) = self.core.check_generation(self.generation) {
            match &save {
                Save::Grant(grant) => {
                    drop(lock);
                    self.core.revoke_unused(grant.as_ref().clone(), self.key.as_deref()).await;
                    return Err(error);
                }
                // The log-out has dropped it. What there is now belongs to a later login. This one goes on to what it obtained.
                Save::ForgetGrant { .. } => {
                    self.login.handle_saved();
                    return Ok(());
                }
                Save::Registration(_) | Save::ForgetRegistration { .. } => {}
            }
        }
        let saved = match lock {
            Ok(lock) => {
                let saved = self.core.save(save, &self.context).await;
                drop(lock);
                saved
            }
            Err(error) => Err(error),
        };
        if let Err(error) = saved {
            tracing::warn!(server = %self.core.settings.server_name, %error, "the result of a login is kept in memory only");
            self.is_saved &= !is_grant;
        }
        self.login.handle_saved();
        Ok(())
    }

    /// Uses the tokens.
    async fn finish(self, grant: Grant) -> Result<Arc<ActiveLogin>, OAuthError> {
        let Self { core, key, context, generation, is_saved, .. } = self;
        let used = core.use_login(grant.clone(), context, generation, is_saved);
        // The log-out has revoked them if the store had them.
        if !is_saved && matches!(used, Err(OAuthError::LoggedOut)) {
            core.revoke_unused(grant, key.as_deref()).await;
        }
        used
    }

    fn show(&self, code: DeviceCode) -> Result<Shown, OAuthError> {
        let Interaction::Device(prompt) = &self.core.settings.interaction else {
            return Err(self.core.settings.not_logged_in(None));
        };
        let prompt = Arc::clone(prompt);
        Ok(Box::pin(async move { prompt.show(&code).await }))
    }
}

fn login_config(core: &Core, flow: Flow, key: Option<&SigningKey>) -> Result<LoginConfig, OAuthError> {
    let config = core.settings.login_config(flow).map_err(|error| PromptError::failed(error.to_string()))?;
    Ok(match key {
        Some(key) => config.dpop(dpop_key(key, core.settings.requires_dpop)),
        None => config,
    })
}

/// Returns the assertion that the host supplies, if it supplies any.
async fn assertion(settings: &Settings, request: &AssertionRequest) -> Result<Option<Secret>, OAuthError> {
    let Some(source) = &settings.assertions else { return Ok(None) };
    let limit = settings.assertion_timeout;
    let assertion = timeout(limit, source.assertion(request)).await;
    Ok(Some(assertion.map_err(|_| OAuthError::AssertionTimedOut(limit))??))
}

/// Returns what flows have to know about a key.
pub(super) fn dpop_key(key: &SigningKey, is_required: bool) -> DpopKey {
    let described = DpopKey::new(key.algorithm().as_str(), key.thumbprint());
    if is_required { described.required() } else { described }
}

/// A prompt that shows a code while the login goes on.
type Shown = BoxFuture<'static, Result<(), PromptError>>;

/// Waits for a future, while the user sees the code, unless the user declines.
async fn while_shown<T>(shown: &mut Option<Shown>, work: impl Future<Output = T>) -> Result<T, PromptError> {
    let work = std::pin::pin!(work);
    let Some(prompt) = shown else { return Ok(work.await) };
    match select(prompt, work).await {
        Either::Left((Ok(()), work)) => {
            *shown = None;
            Ok(work.await)
        }
        Either::Left((Err(error), _)) => Err(error),
        Either::Right((result, _)) => Ok(result),
    }
}
