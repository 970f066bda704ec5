//! Waits for an authorizer that was challenged, for example for a user who logs in.
//!
//! This may take minutes, which no timeout of the call, of the client or of the transport counts. It ends when the request is
//! dropped, or when the client is closed.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, select};
use mcp_client::{AuthorizationError, PausedTimeouts};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use super::sender::{CallContext, RequestSender};
use crate::client::authorizer::{Authorizer, Challenge, Credential};

/// Whether a request waits for its authorizer.
#[derive(Debug, Default)]
pub(crate) struct LoginState(AtomicBool);

/// Tells all logins that the client is closed.
#[derive(Default)]
pub(crate) struct Closing {
    is_closing: AtomicBool,
    notify: Notify,
}

impl Closing {
    /// Ends all logins. There will be no others.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.notify.notify_waiters();
    }

    /// Returns a future that completes when the client is closed, unless it is closed already.
    fn closed(&self) -> Option<Notified<'_>> {
        let closed = self.notify.notified();
        (!self.is_closing.load(Ordering::SeqCst)).then_some(closed)
    }
}

impl RequestSender {
    /// Passes a challenge to the authorizer, and waits for another credential.
    pub(super) async fn challenge(
        &self,
        authorizer: &dyn Authorizer,
        challenge: &Challenge,
        context: &CallContext,
    ) -> Result<Option<Credential>, AuthorizationError> {
        if !context.may_log_in {
            return Ok(None);
        }
        let Some(closed) = self.closing.closed() else { return Ok(None) };
        let _login = Login::start(self, context);
        match select(authorizer.challenged(challenge), pin!(closed)).await {
            Either::Left((Ok(Some(credential)), _)) => {
                self.state().logins += 1;
                Ok(Some(credential))
            }
            Either::Left((refused, _)) => refused,
            Either::Right(((), _)) => Ok(None),
        }
    }
}

/// A login in progress.
struct Login<'a> {
    sender: &'a RequestSender,
    context: &'a CallContext,
    _paused: PausedTimeouts,
}

impl<'a> Login<'a> {
    fn start(sender: &'a RequestSender, context: &'a CallContext) -> Self {
        context.login.0.store(true, Ordering::Relaxed);
        if context.call.is_some() {
            sender.state().waiting_calls += 1;
        }
        // What belongs to no call may be what the server needs to continue with one.
        Self { sender, context, _paused: sender.responses.pause_timeouts(context.call) }
    }
}

impl Drop for Login<'_> {
    fn drop(&mut self) {
        self.context.login.0.store(false, Ordering::Relaxed);
        if self.context.call.is_some() {
            self.sender.state().waiting_calls -= 1;
        }
    }
}

/// Limits how long a request takes, not counting a login. Returns `None` if it takes longer.
pub(crate) async fn within<F: Future>(limit: Duration, context: &CallContext, request: F) -> Option<F::Output> {
    let mut request = pin!(request);
    let mut timer = pin!(tokio::time::sleep(limit));
    // What was left when the login started.
    let mut left = None;
    poll_fn(|cx| {
        if let Poll::Ready(output) = request.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        let now = Instant::now();
        if context.login.0.load(Ordering::Relaxed) {
            left.get_or_insert_with(|| timer.deadline().saturating_duration_since(now));
            return Poll::Pending;
        }
        if let Some(left) = left.take() {
            timer.as_mut().reset(now + left);
        }
        timer.as_mut().poll(cx).map(|()| None)
    })
    .await
}
