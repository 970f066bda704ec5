//! When a stream has to end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime};

use mcp_server::AuthInfo;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};

use super::pacer::after;

/// When a stream has to end.
pub(crate) enum StreamEnd {
    /// At a time.
    At(Instant),
    /// With the token of its request, unless the user gets a newer one.
    WithToken(Arc<AuthInfo>),
}

pin_project! {
    /// Waits for the end of a stream.
    pub(crate) struct Expiry {
        #[pin]
        timer: Sleep,
        token: Option<Token>,
    }
}

struct Token {
    auth: Arc<AuthInfo>,
    /// The time of the wall clock that the timer is set to.
    until: SystemTime,
}

impl Expiry {
    /// Waits for the end of a stream; `None` if it need not end.
    pub(crate) fn new(end: StreamEnd) -> Option<Self> {
        match end {
            StreamEnd::At(at) => Some(Self { timer: sleep_until(at.into()), token: None }),
            StreamEnd::WithToken(auth) => {
                let until = auth.valid_until()?;
                #[expect(clippy::disallowed_methods, reason = "the expiry of tokens is wall-clock time")]
                let remaining = until.duration_since(SystemTime::now()).unwrap_or_default();
                Some(Self { timer: sleep_until(after(remaining)), token: Some(Token { auth, until }) })
            }
        }
    }

    pub(crate) fn is_elapsed(&self) -> bool {
        self.timer.is_elapsed()
    }

    /// Whether the stream ends because of its token.
    pub(crate) fn is_by_token(&self) -> bool {
        self.token.is_some()
    }

    /// Is ready when the stream has to end.
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        loop {
            ready!(this.timer.as_mut().poll(cx));
            let Some(token) = this.token else { return Poll::Ready(()) };
            // The times of both tokens are compared, and not with the clock, which may have been set.
            let renewed_by = match token.auth.valid_until() {
                Some(until) => until.duration_since(token.until).unwrap_or_default(),
                // The newer token does not expire.
                None => Duration::MAX,
            };
            if renewed_by.is_zero() {
                return Poll::Ready(());
            }
            token.until = token.until.checked_add(renewed_by).unwrap_or(token.until);
            this.timer.as_mut().reset(after(renewed_by));
        }
    }
}
