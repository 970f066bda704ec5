//! One request and its response.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_kernel::client::Outcome;
use mcp_kernel::{CallError, CallId, CallOptions};
use mcp_types::{Method, ProgressNotificationParams, RawObject, Revision};

use crate::call::headers::Headers;
use crate::closed::Closed;
use crate::error::Error;
use crate::state::timers::Sleep;
use crate::state::waiters::Place;
use crate::state::{Phase, Shared, Started};
use crate::transport::TransportKind;

/// One request, until it is answered; dropping it cancels the call.
///
/// Without a connection, or without room in it, it waits for as long as the server might be silent.
pub(crate) struct Exchange<'a> {
    shared: &'a Arc<Shared>,
    method: &'a Method,
    params: &'a RawObject,
    options: CallOptions,
    call: Option<(CallId, Revision)>,
    patience: Option<Sleep>,
    place: Option<Place>,
    on_progress: Option<&'a mut (dyn FnMut(ProgressNotificationParams) + Send)>,
}

/// How an exchange fails.
pub(crate) enum Failure {
    /// The call was made in this revision, and came to nothing; why, if more is known than the error says.
    Call { error: CallError, revision: Revision, why: Option<String> },
    /// The call was not made.
    Local(Error),
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(
        shared: &'a Arc<Shared>,
        method: &'a Method,
        params: &'a RawObject,
        options: CallOptions,
        on_progress: Option<&'a mut (dyn FnMut(ProgressNotificationParams) + Send)>,
    ) -> Self {
        Self { shared, method, params, options, call: None, patience: None, place: None, on_progress }
    }

    /// Makes the call; pending if it is made, or has to wait.
    fn start(&mut self, cx: &mut Context<'_>) -> Poll<Failure> {
        let (shared, method, params, options) = (self.shared, self.method, self.params, self.options);
        let place = &mut self.place;
        let with_headers = shared.settings.kind == TransportKind::Requests;
        let started = shared.with(|core, now| {
            let headers = if with_headers { core.tools.headers(method, params) } else { Headers::default() };
            let started = core.start_call(now, method, params, options, headers);
            match &started {
                Started::Call(call, _) => {
                    if let Some(slot) = core.slots.get_mut(call) {
                        slot.waker = Some(cx.waker().clone());
                    }
                }
                Started::Wait => {
                    let place = place.get_or_insert_with(|| Place::new(shared, |core| &mut core.waiting));
                    place.wait(core, cx.waker());
                }
                Started::Misuse(_) | Started::Closed(_) => {}
            }
            started
        });
        match started {
            Started::Call(call, revision) => {
                (self.patience, self.place) = (None, None);
                self.call = Some((call, revision));
                Poll::Pending
            }
            Started::Misuse(misuse) => Poll::Ready(Failure::Local(misuse.into())),
            Started::Closed(why) => Poll::Ready(Failure::Local(why.into())),
            Started::Wait => {
                let limit = self.options.idle.into_iter().chain(self.options.limit).min();
                if self.patience.is_none() {
                    self.patience = limit.map(|limit| Sleep::new(self.shared, limit));
                }
                match &mut self.patience {
                    Some(patience) => match Pin::new(patience).poll(cx) {
                        Poll::Ready(()) => Poll::Ready(Failure::Local(Error::TimedOut)),
                        Poll::Pending => Poll::Pending,
                    },
                    None => Poll::Pending,
                }
            }
        }
    }
}

impl Future for Exchange<'_> {
    type Output = Result<Outcome, Failure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some((call, revision)) = self.call else { return self.start(cx).map(Err) };
        let (progress, outcome, why, closed) = self.shared.with(|core, _| {
            let closed = match &core.phase {
                Phase::Over(why) => Some(why.clone()),
                Phase::Closing => Some(Closed::ByClient),
                Phase::Connecting | Phase::Ready(_) => None,
            };
            let Some(slot) = core.slots.get_mut(&call) else {
                return (Default::default(), Some(Err(CallError::Disconnected)), core.lost.clone(), closed);
            };
            let progress = slot.take_progress();
            let (outcome, mut why) = (slot.outcome.take(), slot.why.take());
            if let Some(outcome) = &outcome {
                why = why.or_else(|| core.lost.clone()).filter(|_| *outcome == Err(CallError::Disconnected));
                core.slots.remove(&call);
            } else {
                slot.waker = Some(cx.waker().clone());
            }
            (progress, outcome, why, closed)
        });
        if let Some(listener) = &mut self.on_progress {
            progress.into_iter().for_each(listener);
        }
        let Some(outcome) = outcome else { return Poll::Pending };
        self.call = None;
        Poll::Ready(outcome.map_err(|error| match (error, closed) {
            (CallError::Disconnected, Some(why)) => Failure::Local(why.into()),
            (error, _) => Failure::Call { error, revision, why },
        }))
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        if let Some((call, _)) = self.call {
            self.shared.with(|core, _| core.abandon(call));
        }
    }
}
