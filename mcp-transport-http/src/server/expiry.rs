//! When streams and sessions have to end.

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

/// A token that a stream or session ends with.
pub(crate) struct Token {
    auth: Arc<AuthInfo>,
    /// When it ends, by the wall clock.
    until: SystemTime,
}

impl Token {
    /// Returns a token that expires, and the time that is left until some time after that.
    fn new(auth: Arc<AuthInfo>, grace: Duration) -> Option<(Self, Duration)> {
        let until = auth.valid_until()?;
        let end = until.checked_add(grace).unwrap_or(until);
        #[expect(clippy::disallowed_methods, reason = "the expiry of tokens is wall-clock time")]
        let remaining = end.duration_since(SystemTime::now()).unwrap_or_default();
        Some((Self { auth, until }, remaining))
    }

    /// Returns by how much newer tokens of the user have extended it since the last call.
    fn take_renewal(&mut self) -> Duration {
        // The times of both tokens are compared, and not with the clock, which may have been set.
        let renewed_by = match self.auth.valid_until() {
            Some(until) => until.duration_since(self.until).unwrap_or_default(),
            // The newer token does not expire.
            None => Duration::MAX,
        };
        self.until = self.until.checked_add(renewed_by).unwrap_or(self.until);
        renewed_by
    }
}

/// How long a stream stays open after its token has expired: verifiers accept a token for up to a minute longer, so a stream that
/// is opened then must not end at once. The documentation names this value.
const STREAM_GRACE: Duration = Duration::from_secs(60);

/// How long a session is kept after its newest token has expired: verifiers accept a token for up to a minute longer, as
/// clocks differ, and its client needs some time to get a new one and to open its stream again. The documentation names this
/// value.
const SESSION_GRACE: Duration = Duration::from_secs(120);

/// When a session has to end that is used with tokens.
pub(crate) enum SessionEnd {
    /// With its newest token, unless the user gets a newer one.
    WithToken { token: Token, at: tokio::time::Instant },
    /// One of its tokens does not expire.
    Never,
}

impl SessionEnd {
    /// Returns the end of a session whose newest token this is.
    pub(crate) fn new(auth: &AuthInfo) -> Self {
        // Without the claims, which can take much memory.
        let auth = auth.clone().into_builder().claims(Default::default()).build();
        match Token::new(Arc::new(auth), SESSION_GRACE) {
            Some((token, remaining)) => Self::WithToken { token, at: after(remaining) },
            None => Self::Never,
        }
    }

    /// Whether another token makes no difference, as it expires earlier.
    pub(crate) fn includes(&self, auth: &AuthInfo) -> bool {
        match self {
            Self::WithToken { token, .. } => auth.expires_at().is_some_and(|expires_at| expires_at <= token.until),
            Self::Never => true,
        }
    }

    /// Returns when the session has to end, as far as that is known now.
    pub(crate) fn deadline(&mut self) -> Option<tokio::time::Instant> {
        let Self::WithToken { token, at } = self else { return None };
        let renewed_by = token.take_renewal();
        *at = at.checked_add(renewed_by).unwrap_or_else(|| after(renewed_by));
        Some(*at)
    }
}

impl Expiry {
    /// Waits for the end of a stream; `None` if it need not end.
    pub(crate) fn new(end: StreamEnd) -> Option<Self> {
        match end {
            StreamEnd::At(at) => Some(Self { timer: sleep_until(at.into()), token: None }),
            StreamEnd::WithToken(auth) => {
                let (token, remaining) = Token::new(auth, STREAM_GRACE)?;
                Some(Self { timer: sleep_until(after(remaining)), token: Some(token) })
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
            let renewed_by = token.take_renewal();
            if renewed_by.is_zero() {
                return Poll::Ready(());
            }
            // The timer may be polled long after its deadline.
            let deadline = this.timer.deadline().checked_add(renewed_by).unwrap_or_else(|| after(renewed_by));
            this.timer.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use mcp_server::{Principal, Renewal};
    use tokio::time::{Instant, advance};

    use super::*;

    /// A token that has just expired is still accepted, and its stream does not end at once.
    #[tokio::test(start_paused = true)]
    async fn streams_of_tokens_that_have_just_expired_stay_open() {
        for (seconds, expected) in [(100, 160), (0, 60)] {
            let (renewal, start) = (Renewal::new(), Instant::now());
            let mut expiry = pin!(Expiry::new(StreamEnd::WithToken(token(&renewal, seconds))).expect("an end"));
            poll_fn(|cx| expiry.as_mut().poll(cx)).await;
            assert!(start.elapsed().as_secs().abs_diff(expected) <= 5, "{:?}", start.elapsed());
        }
    }

    fn token(renewal: &Renewal, seconds: u64) -> Arc<AuthInfo> {
        #[expect(clippy::disallowed_methods, reason = "the expiry of tokens is wall-clock time")]
        let expires_at = SystemTime::now() + Duration::from_secs(seconds);
        let builder = AuthInfo::builder(Principal::new(None, "ann")).renewal(renewal.clone());
        let token = builder.expires_at(expires_at).build();
        renewal.renew(&token);
        Arc::new(token)
    }

    /// The end does not depend on when the timer is polled.
    #[tokio::test(start_paused = true)]
    async fn renewals_count_from_the_deadline() {
        let (renewal, start) = (Renewal::new(), Instant::now());
        let mut expiry = pin!(Expiry::new(StreamEnd::WithToken(token(&renewal, 100))).expect("an end"));
        token(&renewal, 1000);
        advance(Duration::from_secs(500)).await;
        poll_fn(|cx| expiry.as_mut().poll(cx)).await;
        assert!(start.elapsed().as_secs().abs_diff(1000 + 60) <= 5, "{:?}", start.elapsed());
    }
}
