//! A person with a browser, for our client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_auth::authorizer::{
    DevicePrompt, LoginPrompt, LoopbackListener, PendingLogin, PromptError, RedirectCheck, async_trait,
};
use mcp_auth::client::{DeviceCode, OpenBrowser};

use crate::program::browse;

/// A person who logs in with Chromium. Clones count together.
#[derive(Clone)]
pub(crate) struct Person {
    name: &'static str,
    agrees: bool,
    logins: Arc<AtomicUsize>,
}

impl Person {
    /// A person who agrees to everything.
    pub(crate) fn named(name: &'static str) -> Self {
        Self { name, agrees: true, logins: Arc::default() }
    }

    /// A person who logs in, and then cancels.
    pub(crate) fn who_declines(name: &'static str) -> Self {
        Self { agrees: false, ..Self::named(name) }
    }

    /// How often the browser was opened.
    pub(crate) fn logins(&self) -> usize {
        self.logins.load(Ordering::Relaxed)
    }

    async fn browse(&self, task: &str, url: &str, code: Option<&str>) -> Result<(), PromptError> {
        self.logins.fetch_add(1, Ordering::Relaxed);
        let mut arguments = vec![task, url, self.name];
        arguments.extend(code);
        if !self.agrees {
            arguments.push("--deny");
        }
        browse(&arguments).await.map(drop).map_err(PromptError::failed)
    }
}

#[async_trait]
impl LoginPrompt for Person {
    async fn begin(&self, earlier: Option<&str>) -> Result<Box<dyn PendingLogin>, PromptError> {
        let listener = LoopbackListener::bind(earlier).await.map_err(|error| PromptError::failed(error.to_string()))?;
        Ok(Box::new(AtBrowser { person: self.clone(), listener }))
    }
}

struct AtBrowser {
    person: Person,
    listener: LoopbackListener,
}

#[async_trait]
impl PendingLogin for AtBrowser {
    fn redirect_uri(&self) -> &str {
        self.listener.redirect_uri()
    }

    async fn authorize(&mut self, request: &OpenBrowser, check: RedirectCheck<'_>) -> Result<(), PromptError> {
        let received =
            async { self.listener.wait(check).await.map_err(|error| PromptError::failed(error.to_string())) };
        // The browser ends after it got the page of the listener.
        tokio::try_join!(received, self.person.browse("login", &request.url, None)).map(drop)
    }
}

#[async_trait]
impl DevicePrompt for Person {
    async fn show(&self, code: &DeviceCode) -> Result<(), PromptError> {
        self.browse("device", &code.verification_uri, Some(&code.user_code)).await
    }
}
