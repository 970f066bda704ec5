//! The time that following a task may take.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::error::Error;
use crate::state::Shared;
use crate::state::pauses::Timeout;

/// What is left of the total timeout of a call. Only the time in [`run`](Self::run) counts, so that users have all the time
/// they need for input requests.
pub(super) struct Budget(Option<Duration>);

impl Budget {
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Self(limit)
    }

    /// Runs a future within the time that is left.
    pub(super) async fn run<T>(&mut self, shared: &Arc<Shared>, future: impl Future<Output = T>) -> Result<T, Error> {
        let Some(left) = self.0 else { return Ok(future.await) };
        let start = shared.unpaused_time();
        let outcome = match select(pin!(future), Timeout::new(shared, left)).await {
            Either::Left((output, _)) => Ok(output),
            Either::Right(_) => Err(Error::TimedOut),
        };
        self.0 = Some(left.saturating_sub(shared.unpaused_time().duration_since(start)));
        outcome
    }
}
