//! Where what comes of a call waits for the one who made it.

use std::collections::VecDeque;
use std::task::Waker;

use mcp_kernel::client::Outcome;
use mcp_kernel::{CallError, Change};
use mcp_types::{ProgressNotificationParams, SubscriptionFilter};

use crate::changes::Changes;

/// How many reports of progress wait for somebody who does not look; older ones say nothing that newer ones do not.
const MOST_PROGRESS: usize = 64;

/// What came of a call so far.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) outcome: Option<Result<Outcome, CallError>>,
    /// Why there was no answer on the stream of the call, if the transport knows.
    pub(crate) why: Option<String>,
    pub(crate) progress: VecDeque<ProgressNotificationParams>,
    /// What the server agreed to tell, if this is a subscription.
    pub(crate) filter: Option<SubscriptionFilter>,
    pub(crate) changes: Changes,
    pub(crate) waker: Option<Waker>,
}

impl Slot {
    pub(crate) fn progressed(&mut self, progress: ProgressNotificationParams) -> Option<Waker> {
        if self.progress.len() >= MOST_PROGRESS {
            self.progress.pop_front();
        }
        self.progress.push_back(progress);
        self.waker.take()
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
