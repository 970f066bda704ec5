//! The stream on which a server reports the changes of a task.

use std::sync::Arc;
use std::task::{Context, Poll};

use mcp_kernel::{CallError, Time};
use mcp_types::SubscriptionFilter;

use super::followed::Registration;
use crate::call::exchange::Failure;
use crate::context::CallExtensions;
use crate::listen::{ChangeSource, STABLE_AFTER, open_modern};
use crate::request_handlers::BoxFuture;
use crate::state::Shared;

/// A stream of `subscriptions/listen` for one task. Without it the task is polled more often.
#[derive(Default)]
pub(super) enum Watch {
    /// There is no stream yet.
    #[default]
    Closed,
    Opening(BoxFuture<Option<ChangeSource>>),
    Open {
        source: ChangeSource,
        since: Time,
    },
    /// There will be none.
    Off,
}

impl Watch {
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Begins to open a stream, if there is none and there may be one.
    // TK-32
    pub(super) fn open(
        &mut self,
        shared: &Arc<Shared>,
        id: &str,
        extensions: &CallExtensions,
        registration: &mut Registration,
    ) {
        if matches!(self, Self::Closed) && registration.reserve_stream() {
            *self = Self::Opening(Box::pin(open(Arc::clone(shared), id.to_owned(), extensions.clone())));
        }
    }

    /// Drives the stream. Its notifications arrive elsewhere. Ready if it broke, so that changes may have been missed.
    pub(super) fn poll(&mut self, shared: &Shared, registration: &mut Registration, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let (next, has_broken) = match self {
                Self::Closed | Self::Off => return Poll::Pending,
                Self::Opening(opening) => match opening.as_mut().poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(source)) => (Self::Open { source, since: shared.now() }, false),
                    Poll::Ready(None) => (Self::Off, false),
                },
                Self::Open { source, since } => match source.poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Some(_)) => continue,
                    // A stream that breaks soon would do so again.
                    Poll::Ready(None) if shared.now().duration_since(*since) < STABLE_AFTER => (Self::Off, true),
                    Poll::Ready(None) => (Self::Closed, true),
                },
            };
            *self = next;
            if matches!(self, Self::Closed | Self::Off) {
                registration.release_stream();
            }
            if has_broken {
                return Poll::Ready(());
            }
        }
    }
}

/// Opens the stream; `None` if the server does not, or not for this task.
async fn open(shared: Arc<Shared>, id: String, extensions: CallExtensions) -> Option<ChangeSource> {
    let wanted = SubscriptionFilter::default().task_ids([id.as_str()]);
    let opened = open_modern(&shared, &wanted, &extensions).await;
    let is_refused = match &opened {
        Ok((_, acknowledged)) => {
            let accepted = acknowledged.decode_task_ids().ok().flatten().unwrap_or_default();
            if accepted.contains(&id) {
                return opened.ok().map(|(source, _)| source);
            }
            // This task may have ended; a server that leaves out all tasks has no streams for them.
            acknowledged.extra.get("taskIds").is_none()
        }
        Err(Failure::Call { error: CallError::Rejected(_), .. }) => true,
        Err(_) => false,
    };
    if is_refused {
        shared.with(|core, _| core.followed_tasks.streams_refused());
    }
    None
}
