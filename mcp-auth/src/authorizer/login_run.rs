//! A login, from its first request to its tokens.

use std::sync::Arc;

use futures_util::future::{Either, select};
use tokio::time::{Duration, sleep};

use super::builder::Settings;
use super::clock;
use super::error::OAuthError;
use super::logins::{Logins, SaveContext};
use super::prompt::{DevicePrompt, LoginPrompt, PendingLogin, PromptError};
use super::sender::{Sender, random};
use crate::Challenge;
use crate::client::{Action, DeviceCode, DpopKey, Flow, Grant, Login, LoginConfig, LoginError, Save, Stored};
use crate::jose::SigningKey;

/// How users are involved.
#[derive(Clone)]
pub(super) enum Interaction {
    /// There are no users, or none that can be asked.
    None,
    Browser(Arc<dyn LoginPrompt>),
    Device(Arc<dyn DevicePrompt>),
}

/// Runs a login.
pub(super) struct LoginRun<'a> {
    pub(super) settings: &'a Settings,
    pub(super) sender: &'a Sender,
    pub(super) logins: &'a Logins,
    pub(super) key: Option<Arc<SigningKey>>,
    /// What is kept with the tokens.
    pub(super) context: SaveContext,
    /// Whether the caller has the lock of the login.
    pub(super) has_lock: bool,
}

impl LoginRun<'_> {
    /// Runs the login. The tokens are saved before they are returned.
    pub(super) async fn start(&self, stored: Stored, challenges: &[Challenge]) -> Result<Grant, OAuthError> {
        let mut pending = None;
        let flow = match (&self.settings.flow, &self.settings.interaction) {
            (Some(flow), _) => flow.clone(),
            (None, Interaction::Browser(prompt)) => {
                let earlier = stored.registrations.iter().rev().find_map(|known| known.redirect_uri.as_deref());
                let login = pending.insert(prompt.begin(earlier).await?);
                Flow::AuthorizationCode { redirect_uri: login.redirect_uri().to_owned() }
            }
            (None, Interaction::Device(_)) => Flow::DeviceCode,
            (None, Interaction::None) => return Err(self.settings.not_logged_in(None)),
        };
        let mut login = Login::new(self.config(flow)?, stored, challenges, random()?);
        self.drive(&mut login, pending.as_deref_mut()).await
    }

    fn config(&self, flow: Flow) -> Result<LoginConfig, OAuthError> {
        let config = self.settings.login_config(flow).map_err(|error| PromptError::failed(error.to_string()))?;
        Ok(match &self.key {
            Some(key) => config.dpop(dpop_key(key, self.settings.requires_dpop)),
            None => config,
        })
    }

    async fn drive(
        &self,
        login: &mut Login,
        mut pending: Option<&mut (dyn PendingLogin + '_)>,
    ) -> Result<Grant, OAuthError> {
        let mut shown: Option<Shown> = None;
        loop {
            match login.poll(clock::now()) {
                Action::Fetch(request) => {
                    let sending = self.sender.send(request, self.key.as_deref());
                    match while_shown(&mut shown, sending).await? {
                        Ok(response) => login.handle_response(clock::now(), response),
                        Err(error) => login.handle_failure(clock::now(), error),
                    }
                }
                Action::OpenBrowser(request) => {
                    let Some(pending) = pending.as_deref_mut() else {
                        return Err(self.settings.not_logged_in(None));
                    };
                    pending.authorize(&request, &mut |redirect| login.handle_redirect(redirect)).await?;
                }
                Action::ShowDeviceCode(code) => shown = Some(self.show(code)?),
                Action::WaitUntil(time) => {
                    let until = Duration::from_secs(time.as_secs()).saturating_sub(clock::since_epoch());
                    while_shown(&mut shown, sleep(until)).await?;
                }
                Action::AskForClient { issuer } => match &self.settings.interaction {
                    Interaction::Browser(prompt) => match prompt.client(&issuer).await? {
                        Some(client) => login.handle_client(&client),
                        None => return Err(LoginError::NoRegistration { issuer }.into()),
                    },
                    Interaction::Device(_) | Interaction::None => {
                        return Err(LoginError::NoRegistration { issuer }.into());
                    }
                },
                Action::SupplyAssertion(request) => match &self.settings.assertions {
                    Some(source) => login.handle_assertion(source.assertion(&request).await?),
                    None => login.handle_declined(),
                },
                Action::Save(save) => {
                    // A refresh of the tokens that are replaced must not be saved after them.
                    let needs_lock = matches!(save, Save::Grant(_) | Save::ForgetGrant { .. }) && !self.has_lock;
                    let lock = if needs_lock { Some(self.logins.lock().await?) } else { None };
                    self.logins.apply(save, &self.context).await?;
                    drop(lock);
                    login.handle_saved();
                }
                Action::Done(grant) => return Ok(*grant),
                Action::Failed(error) => return Err(error.into()),
                // Each action was done and reported, so the login cannot wait for one.
                Action::Idle => return Err(LoginError::Declined.into()),
            }
        }
    }

    fn show(&self, code: DeviceCode) -> Result<Shown, OAuthError> {
        let Interaction::Device(prompt) = &self.settings.interaction else {
            return Err(self.settings.not_logged_in(None));
        };
        let prompt = Arc::clone(prompt);
        Ok(Box::pin(async move { prompt.show(&code).await }))
    }
}

/// Returns what flows have to know about a key.
pub(super) fn dpop_key(key: &SigningKey, is_required: bool) -> DpopKey {
    let described = DpopKey::new(key.algorithm().as_str(), key.thumbprint());
    if is_required { described.required() } else { described }
}

/// A prompt that shows a code while the login goes on.
type Shown = futures_util::future::BoxFuture<'static, Result<(), PromptError>>;

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
