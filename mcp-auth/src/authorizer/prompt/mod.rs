//! How users log in.

#[cfg(feature = "browser")]
mod browser;
mod loopback;
mod terminal;

use std::sync::Arc;

use async_trait::async_trait;

#[cfg(feature = "browser")]
pub use self::browser::BrowserPrompt;
pub use self::loopback::LoopbackListener;
pub use self::terminal::{TerminalDevicePrompt, TerminalPrompt};
use crate::Secret;
use crate::client::{AssertionRequest, DeviceCode, OpenBrowser, PreRegistered, RedirectError};

/// A way to let a user agree in a browser, implemented with [`async_trait`](macro@async_trait).
///
/// | prompt | for |
/// |---|---|
/// | `BrowserPrompt` (feature `browser`) | programs on the user's machine: opens the browser, and listens on a loopback port |
/// | [`TerminalPrompt`] | programs on another machine: shows the address, and takes the pasted redirect |
/// | [`DevicePrompt`] | programs on another machine, if the authorization server supports it: shows a code |
///
/// Cancelling a login drops the futures of its prompt, so nothing has to be cancelled explicitly.
#[async_trait]
pub trait LoginPrompt: Send + Sync + 'static {
    /// Prepares a login, and returns where the browser will be sent back to.
    ///
    /// `earlier` is the redirect URI of an earlier login. The client need not be registered again if it can be used.
    ///
    /// # Errors
    ///
    /// Returns an error if no user can be asked.
    async fn begin(&self, earlier: Option<&str>) -> Result<Box<dyn PendingLogin>, PromptError>;

    /// Asks for the identifier that the client was registered with at an authorization server that allows neither dynamic
    /// registration nor metadata documents. Defaults to none, which fails the login.
    ///
    /// # Errors
    ///
    /// Returns an error if no user can be asked.
    async fn client(&self, issuer: &str) -> Result<Option<PreRegistered>, PromptError> {
        let _ = issuer;
        Ok(None)
    }
}

/// A login that a user has to agree to in a browser.
#[async_trait]
pub trait PendingLogin: Send {
    /// Returns the address that the browser is sent back to: `https`, or `http` to this machine.
    fn redirect_uri(&self) -> &str;

    /// Opens the address of the request, and passes the addresses that the browser is sent back to to `check`, until one is
    /// the right one.
    ///
    /// # Errors
    ///
    /// Returns an error if the browser cannot be opened, or the user declined.
    async fn authorize(&mut self, request: &OpenBrowser, check: RedirectCheck<'_>) -> Result<(), PromptError>;
}

/// A function that takes the address which the browser was sent back to. An error means that the address does not belong to
/// the login, and another one has to be waited for: anyone can send a browser to the redirect URI.
pub type RedirectCheck<'a> = &'a mut (dyn FnMut(&str) -> Result<(), RedirectError> + Send);

/// A way to let a user enter a code at another device, implemented with [`async_trait`](macro@async_trait).
#[async_trait]
pub trait DevicePrompt: Send + Sync + 'static {
    /// Shows where to enter which code. The login goes on while the future is pending and after it is ready, and the future is
    /// dropped when the login is over.
    ///
    /// # Errors
    ///
    /// Returns an error if the code cannot be shown, or the user declined. That ends the login.
    async fn show(&self, code: &DeviceCode) -> Result<(), PromptError>;
}

/// A source of assertions about a user or a workload, implemented with [`async_trait`](macro@async_trait).
#[async_trait]
pub trait AssertionSource: Send + Sync + 'static {
    /// Returns an assertion, for example the ID token of the user, or the token that the platform issued to the workload.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none.
    async fn assertion(&self, request: &AssertionRequest) -> Result<Secret, PromptError>;
}

/// The error of a prompt. It must not contain secrets.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PromptError {
    /// The user does not want to log in.
    #[error("the login was declined")]
    Declined,
    /// The user cannot be asked.
    #[error("{0}")]
    Failed(Arc<str>),
}

impl PromptError {
    /// Creates the error of a user who cannot be asked.
    pub fn failed(reason: impl Into<Arc<str>>) -> Self {
        Self::Failed(reason.into())
    }
}
