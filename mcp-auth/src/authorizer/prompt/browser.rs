//! The browser of the user.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::{LoginPrompt, LoopbackListener, PendingLogin, PromptError, RedirectCheck};
use crate::client::OpenBrowser;

/// Opens the browser of the user, and waits on a loopback port for it to be sent back.
#[derive(Clone, Default)]
pub struct BrowserPrompt {
    show: Option<Show>,
}

type Show = Arc<dyn Fn(&OpenBrowser) + Send + Sync>;

impl BrowserPrompt {
    /// Creates a prompt.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a function that shows the address to the user, who can then open it where no browser can be opened for them. The
    /// browser has to be on this machine.
    #[must_use]
    pub fn show(mut self, show: impl Fn(&OpenBrowser) + Send + Sync + 'static) -> Self {
        self.show = Some(Arc::new(show));
        self
    }
}

impl fmt::Debug for BrowserPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrowserPrompt").finish_non_exhaustive()
    }
}

#[async_trait]
impl LoginPrompt for BrowserPrompt {
    async fn begin(&self, earlier: Option<&str>) -> Result<Box<dyn PendingLogin>, PromptError> {
        let listener = LoopbackListener::bind(earlier).await;
        let listener = listener.map_err(|error| failed("no loopback port can be listened on", &error))?;
        Ok(Box::new(Pending { listener, show: self.show.clone() }))
    }
}

struct Pending {
    listener: LoopbackListener,
    show: Option<Show>,
}

#[async_trait]
impl PendingLogin for Pending {
    fn redirect_uri(&self) -> &str {
        self.listener.redirect_uri()
    }

    async fn authorize(&mut self, request: &OpenBrowser, check: RedirectCheck<'_>) -> Result<(), PromptError> {
        if let Some(show) = &self.show {
            show(request);
        }
        let url = request.url.clone();
        // Some browsers block until they are closed, so the redirect is waited for at the same time.
        let open = tokio::task::spawn_blocking(move || webbrowser::open(&url));
        let wait = self.listener.wait(check);
        tokio::pin!(wait);
        let received = tokio::select! {
            received = &mut wait => received,
            opened = open => {
                let opened = opened.unwrap_or_else(|error| Err(std::io::Error::other(error)));
                if let Err(error) = opened
                    && self.show.is_none()
                {
                    return Err(failed("no browser can be opened", &error));
                }
                wait.await
            }
        };
        received.map_err(|error| failed("the redirect cannot be received", &error))
    }
}

fn failed(what: &str, error: &std::io::Error) -> PromptError {
    PromptError::failed(format!("{what}: {error}"))
}
