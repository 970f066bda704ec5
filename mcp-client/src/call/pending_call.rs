//! The state of a call that is in flight.

use std::collections::VecDeque;
use std::task::Waker;

use mcp_kernel::client::CallResult;
use mcp_kernel::{CallError, Change};
use mcp_types::{ProgressNotificationParams, SubscriptionFilter};

use crate::context::CallContext;
use crate::error::Error;
use crate::listen::changes::ChangeQueue;
use crate::state::memory_size;
use crate::transport::CredentialFingerprint;

/// Maximum number of queued progress notifications; the oldest are dropped.
const MAX_PROGRESS: usize = 64;

/// Maximum size of queued progress notifications.
const MAX_PROGRESS_BYTES: usize = 256 * 1024;

/// What was received for a call and not taken yet.
#[derive(Default)]
pub(crate) struct PendingCall {
    pub(crate) outcome: Option<Result<CallResult, CallError>>,
    /// Why the stream of the call ended without a response, if the transport knows.
    pub(crate) stream_error: Option<String>,
    /// Why the transport did not send the call, if there is more to say than that the stream ended.
    pub(crate) send_error: Option<Box<Error>>,
    /// The credentials of the request, if they may change.
    pub(crate) sent_with: Option<CredentialFingerprint>,
    progress: VecDeque<ProgressNotificationParams>,
    progress_bytes: usize,
    /// The filter that the server acknowledged, if this is a subscription.
    pub(crate) acknowledged: Option<SubscriptionFilter>,
    pub(crate) changes: ChangeQueue,
    pub(crate) waker: Option<Waker>,
    /// Whether the outcome is not needed any more.
    pub(crate) is_forgotten: bool,
    /// What the caller attached to the call. The call itself has another handle, so that the last one is not dropped
    /// under the lock.
    pub(crate) context: CallContext,
}

impl PendingCall {
    pub(crate) fn new(context: CallContext) -> Self {
        Self { context, ..Self::default() }
    }

    pub(crate) fn push_progress(&mut self, progress: ProgressNotificationParams) -> Option<Waker> {
        self.progress_bytes += memory_size::of_progress(&progress);
        self.progress.push_back(progress);
        while self.progress.len() > MAX_PROGRESS
            || (self.progress.len() > 1 && self.progress_bytes > MAX_PROGRESS_BYTES)
        {
            let Some(oldest) = self.progress.pop_front() else { break };
            self.progress_bytes -= memory_size::of_progress(&oldest);
        }
        self.waker.take()
    }

    /// Takes the queued progress notifications.
    pub(crate) fn take_progress(&mut self) -> VecDeque<ProgressNotificationParams> {
        self.progress_bytes = 0;
        std::mem::take(&mut self.progress)
    }

    pub(crate) fn acknowledge(&mut self, filter: SubscriptionFilter) -> Option<Waker> {
        self.acknowledged = Some(filter);
        self.waker.take()
    }

    pub(crate) fn push_change(&mut self, change: Change) -> Option<Waker> {
        self.changes.push(change);
        self.waker.take()
    }
}
