//! The round of a request, as its handler and middleware share it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_mrtr::Round;

use crate::asking::error::AskError;

/// The round of a multi round-trip request, and its end.
///
/// An input request without a response ends the round: the future of the handler or middleware that made it is pending
/// after that poll, and whatever polled it takes the round, drops it, and has the input requests as its result.
#[derive(Default)]
pub(crate) struct RoundSlot(Mutex<Slot>);

#[derive(Default)]
struct Slot {
    phase: Phase,
    /// Whether the round has to end, because input was requested.
    is_ending: bool,
    /// Futures that end the round, if a task requests input while they are not polled; and input requests that wait for
    /// the end.
    wakers: Vec<Waker>,
}

#[derive(Default)]
enum Phase {
    /// No input was requested, and no step was taken.
    #[default]
    Unused,
    Open(Box<Round>),
    Ended,
}

/// The maximum number of wakers, in case that a future is polled with ever different ones.
const MAX_WAKERS: usize = 16;

impl RoundSlot {
    /// Uses the round, which `open` creates when it is first needed.
    pub(crate) fn with<R>(
        &self,
        open: impl FnOnce() -> Result<Round, AskError>,
        use_round: impl FnOnce(&mut Round) -> R,
    ) -> Result<R, AskError> {
        let mut slot = self.lock();
        if matches!(slot.phase, Phase::Unused) {
            slot.phase = Phase::Open(Box::new(open()?));
        }
        match &mut slot.phase {
            Phase::Open(round) => Ok(use_round(round)),
            Phase::Unused | Phase::Ended => Err(AskError::NoBackChannel("the round has ended".into())),
        }
    }

    /// Whether a round was opened, and has not ended.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.lock().phase, Phase::Open(_))
    }

    /// Lets the round end with the current poll of the handler.
    pub(crate) fn end_with_poll(&self) {
        let mut slot = self.lock();
        // It may have ended meanwhile, with this input request.
        slot.is_ending = matches!(slot.phase, Phase::Open(_));
        wake(slot);
    }

    /// Ends the round and returns it, if it was open.
    pub(crate) fn take(&self) -> Option<Box<Round>> {
        let mut slot = self.lock();
        slot.is_ending = false;
        let phase = std::mem::replace(&mut slot.phase, Phase::Ended);
        wake(slot);
        if let Phase::Open(round) = phase { Some(round) } else { None }
    }

    /// Is ready if the round has to end.
    pub(crate) fn poll_ending(&self, cx: &Context<'_>) -> Poll<()> {
        self.poll(cx, |slot| slot.is_ending)
    }

    /// Is ready when the round has ended.
    pub(crate) fn poll_ended(&self, cx: &Context<'_>) -> Poll<()> {
        self.poll(cx, |slot| matches!(slot.phase, Phase::Ended))
    }

    fn poll(&self, cx: &Context<'_>, is_ready: impl Fn(&Slot) -> bool) -> Poll<()> {
        let is_known = |slot: &Slot| slot.wakers.iter().any(|waker| waker.will_wake(cx.waker()));
        let slot = self.lock();
        if is_ready(&slot) {
            return Poll::Ready(());
        }
        if is_known(&slot) {
            return Poll::Pending;
        }
        drop(slot);
        // Cloned without the lock, as that may be code of the application.
        let waker = cx.waker().clone();
        let mut slot = self.lock();
        if is_ready(&slot) {
            return Poll::Ready(());
        }
        slot.wakers.push(waker);
        if slot.wakers.len() > MAX_WAKERS {
            // They come back with their next poll.
            wake(slot);
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes all, without the lock.
fn wake(mut slot: MutexGuard<'_, Slot>) {
    let wakers = std::mem::take(&mut slot.wakers);
    drop(slot);
    wakers.into_iter().for_each(Waker::wake);
}
