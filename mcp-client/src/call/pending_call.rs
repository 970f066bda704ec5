//! Where what comes of a call waits for the one who made it.

use std::collections::VecDeque;
use std::task::Waker;

use mcp_kernel::client::Outcome;
use mcp_kernel::{CallError, Change};
use mcp_types::{ProgressNotificationParams, SubscriptionFilter};

use crate::listen::changes::Changes;
use crate::state::memory_size;

/// How many reports of progress wait for somebody who does not look; older ones say nothing that newer ones do not.
const MOST_PROGRESS: usize = 64;

/// How much they may weigh together.
const MOST_PROGRESS_BYTES: usize = 256 * 1024;

/// What came of a call so far.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) outcome: Option<Result<Outcome, CallError>>,
    /// Why there was no answer on the stream of the call, if the transport knows.
    pub(crate) why: Option<String>,
    progress: VecDeque<ProgressNotificationParams>,
    progress_bytes: usize,
    /// What the server agreed to tell, if this is a subscription.
    pub(crate) filter: Option<SubscriptionFilter>,
    pub(crate) changes: Changes,
    pub(crate) waker: Option<Waker>,
}

impl Slot {
    pub(crate) fn progressed(&mut self, progress: ProgressNotificationParams) -> Option<Waker> {
        self.progress_bytes += memory_size::of_progress(&progress);
        self.progress.push_back(progress);
        while self.progress.len() > MOST_PROGRESS
            || (self.progress.len() > 1 && self.progress_bytes > MOST_PROGRESS_BYTES)
        {
            let Some(oldest) = self.progress.pop_front() else { break };
            self.progress_bytes -= memory_size::of_progress(&oldest);
        }
        self.waker.take()
    }

    /// Takes the reports that were not looked at yet.
    pub(crate) fn take_progress(&mut self) -> VecDeque<ProgressNotificationParams> {
        self.progress_bytes = 0;
        std::mem::take(&mut self.progress)
    }

    pub(crate) fn acknowledged(&mut self, filter: SubscriptionFilter) -> Option<Waker> {
        self.filter = Some(filter);
        self.waker.take()
    }

    pub(crate) fn changed(&mut self, change: Change) -> Option<Waker> {
        self.changes.add(change);
        self.waker.take()
    }
}
