//! The round of a request, as its handler and middleware share it.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};

use mcp_mrtr::Round;

use crate::asking::error::AskError;
use crate::asking::state_claim::StateClaim;
use crate::serve::endpoint::BoxFuture;

/// The round of a multi round-trip request, and its end.
///
/// An input request without a response ends the round: the future of the handler or middleware that made it is pending
/// after that poll, and whatever polled it takes the round, drops it, and has the input requests as its result.
///
/// Middleware may poll the rest of its chain in another task. Then two threads poll futures of the request at the same time,
/// and the one on which input is requested ends the round: otherwise the middleware would be dropped while its chain ends, and
/// would not see that. See [`PollScope`].
#[derive(Default)]
pub(crate) struct RoundSlot {
    slot: Mutex<Slot>,
    /// Whether the round is to be ended by the thread that requested input, so that most polls end without the lock.
    is_claimed: AtomicBool,
}

#[derive(Default)]
struct Slot {
    phase: Phase,
    /// Whether the round has to end, because input was requested.
    ending: Option<EndedBy>,
    /// Futures that end the round, if a task requests input while they are not polled; and input requests that wait for
    /// the end. Sorted by the number of the [`RoundWaiter`].
    wakers: Vec<(u64, Waker)>,
    last_waiter: u64,
}

#[derive(Default)]
enum Phase {
    /// No input was requested, and no step was taken.
    #[default]
    Unused,
    /// The state of the request is claimed, so that it is used once.
    Claiming(Arc<StateClaim>, Box<Round>),
    Open(Box<Round>),
    Ended,
}

/// A round that was opened.
pub(crate) struct OpenedRound {
    pub(crate) round: Round,
    /// Claims the state of the round, which may be used if it returns true.
    pub(crate) claim: Option<BoxFuture<bool>>,
}

/// Which future ends a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndedBy {
    /// The innermost one that this thread polls at the moment.
    Thread(ThreadId),
    /// The one that is polled first, as input was requested by a task of the handler.
    Any,
}

/// A future that waits for the end of a round. Each has one waker, so that there are no more of them than futures.
#[derive(Default)]
pub(crate) struct RoundWaiter(
    /// Zero before it is first registered.
    u64,
);

impl RoundWaiter {
    /// The future around all others of a request, of which there is one.
    pub(crate) fn outermost() -> Self {
        Self(OUTERMOST)
    }
}

/// The number of the outermost future. Others have greater ones.
const OUTERMOST: u64 = 1;

impl RoundSlot {
    /// Opens the round, unless it is open. Returns what has to be awaited before the round is used.
    pub(crate) fn begin(
        &self,
        open: impl FnOnce() -> Result<OpenedRound, AskError>,
    ) -> Result<Option<Arc<StateClaim>>, AskError> {
        let mut slot = self.lock();
        match &slot.phase {
            Phase::Unused => {}
            Phase::Claiming(claim, _) => return Ok(Some(Arc::clone(claim))),
            Phase::Open(_) | Phase::Ended => return Ok(None),
        }
        let OpenedRound { round, claim } = open()?;
        let Some(claim) = claim else {
            slot.phase = Phase::Open(Box::new(round));
            return Ok(None);
        };
        let claim = Arc::new(StateClaim::new(claim));
        slot.phase = Phase::Claiming(Arc::clone(&claim), Box::new(round));
        Ok(Some(claim))
    }

    /// Uses the round, which `open` creates when it is first needed.
    pub(crate) fn with<R>(
        &self,
        open: impl FnOnce() -> Result<Round, AskError>,
        use_round: impl FnOnce(&mut Round) -> R,
    ) -> Result<R, AskError> {
        let mut slot = self.lock();
        slot.phase = match std::mem::take(&mut slot.phase) {
            Phase::Unused => Phase::Open(Box::new(open()?)),
            Phase::Claiming(claim, round) if claim.is_granted() => Phase::Open(round),
            phase @ (Phase::Claiming(..) | Phase::Open(_) | Phase::Ended) => phase,
        };
        match &mut slot.phase {
            Phase::Open(round) => Ok(use_round(round)),
            Phase::Unused | Phase::Claiming(..) | Phase::Ended => {
                Err(AskError::NoBackChannel("the round has ended".into()))
            }
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
        if matches!(slot.phase, Phase::Open(_)) && slot.ending.is_none() {
            let is_polled_here = PollScope::is_inside(self);
            slot.ending = Some(if is_polled_here { EndedBy::Thread(thread::current().id()) } else { EndedBy::Any });
            self.is_claimed.store(is_polled_here, Ordering::Release);
        }
        wake(slot);
    }

    /// Ends the round and returns it, if it was open.
    pub(crate) fn take(&self) -> Option<Box<Round>> {
        let mut slot = self.lock();
        slot.ending = None;
        self.is_claimed.store(false, Ordering::Release);
        let phase = std::mem::replace(&mut slot.phase, Phase::Ended);
        wake(slot);
        if let Phase::Open(round) = phase { Some(round) } else { None }
    }

    /// Is ready if the future that polls this has to end the round.
    pub(crate) fn poll_ending(&self, waiter: &mut RoundWaiter, cx: &Context<'_>) -> Poll<()> {
        self.poll(waiter, cx, |slot| match slot.ending {
            None => false,
            Some(EndedBy::Any) => true,
            Some(EndedBy::Thread(id)) => id == thread::current().id(),
        })
    }

    /// Returns what waits for the end of the round.
    pub(crate) fn end(&self) -> RoundEnd<'_> {
        RoundEnd { round: self, waiter: RoundWaiter::default() }
    }

    fn poll(&self, waiter: &mut RoundWaiter, cx: &Context<'_>, is_ready: impl Fn(&Slot) -> bool) -> Poll<()> {
        let slot = self.lock();
        if is_ready(&slot) {
            return Poll::Ready(());
        }
        if slot.find(waiter).is_ok_and(|index| slot.wakers[index].1.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        drop(slot);
        // Cloned without the lock, as that may be code of the application.
        let waker = cx.waker().clone();
        let mut slot = self.lock();
        if is_ready(&slot) {
            return Poll::Ready(());
        }
        if waiter.0 == 0 {
            slot.last_waiter = slot.last_waiter.max(OUTERMOST) + 1;
            waiter.0 = slot.last_waiter;
        }
        let replaced = match slot.find(waiter) {
            Ok(index) => Some(std::mem::replace(&mut slot.wakers[index].1, waker)),
            Err(index) => {
                slot.wakers.insert(index, (waiter.0, waker));
                None
            }
        };
        drop(slot);
        drop(replaced);
        Poll::Pending
    }

    /// Forgets the waker of a future that was dropped or is ready.
    pub(crate) fn leave(&self, waiter: &mut RoundWaiter) {
        if waiter.0 == 0 {
            return;
        }
        let mut slot = self.lock();
        let left = slot.find(waiter).ok().map(|index| slot.wakers.remove(index));
        drop(slot);
        drop(left);
        waiter.0 = 0;
    }

    /// Lets any future end the round, if this thread was to end it and has not.
    fn release(&self) {
        if !self.is_claimed.load(Ordering::Acquire) {
            return;
        }
        let mut slot = self.lock();
        if slot.ending == Some(EndedBy::Thread(thread::current().id())) {
            slot.ending = Some(EndedBy::Any);
            self.is_claimed.store(false, Ordering::Release);
            wake(slot);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn find(&self, waiter: &RoundWaiter) -> Result<usize, usize> {
        self.wakers.binary_search_by_key(&waiter.0, |(number, _)| *number)
    }
}

/// The end of a round, for an input request that waits for it.
pub(crate) struct RoundEnd<'a> {
    round: &'a RoundSlot,
    waiter: RoundWaiter,
}

impl RoundEnd<'_> {
    /// Is ready when the round has ended.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.round.poll(&mut self.waiter, cx, |slot| matches!(slot.phase, Phase::Ended))
    }
}

impl Drop for RoundEnd<'_> {
    fn drop(&mut self) {
        self.round.leave(&mut self.waiter);
    }
}

/// Wakes all, without the lock.
fn wake(mut slot: MutexGuard<'_, Slot>) {
    let wakers = std::mem::take(&mut slot.wakers);
    drop(slot);
    wakers.into_iter().for_each(|(_, waker)| waker.wake());
}

thread_local! {
    /// The round whose futures this thread polls, for comparison only.
    static POLLED: Cell<*const RoundSlot> = const { Cell::new(ptr::null()) };
}

/// Marks that this thread polls a future of a request, until it is dropped.
///
/// Input that is requested inside is responded to by that future, or by one that it polls, and by no other thread.
pub(crate) struct PollScope<'a> {
    slot: &'a RoundSlot,
    outer: *const RoundSlot,
}

impl<'a> PollScope<'a> {
    pub(crate) fn enter(slot: &'a RoundSlot) -> Self {
        Self { slot, outer: POLLED.replace(slot) }
    }

    fn is_inside(slot: &RoundSlot) -> bool {
        ptr::eq(POLLED.get(), slot)
    }
}

impl Drop for PollScope<'_> {
    fn drop(&mut self) {
        POLLED.set(self.outer);
        // The outermost scope of the thread: nothing here ends the round any more.
        if !ptr::eq(self.outer, self.slot) {
            self.slot.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Task(Arc<Counter>);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            Arc::clone(&self.0).wake();
        }
    }

    fn open() -> RoundSlot {
        let slot = RoundSlot::default();
        slot.with(|| Ok(Round::default()), |_| ()).unwrap();
        slot
    }

    /// However many futures wait, none of them is woken before there is a reason.
    #[test]
    fn waiting_wakes_no_task() {
        let slot = open();
        let counter = Arc::new(Counter::default());
        // Each has a task of its own.
        let mut waiting: Vec<_> =
            (0..100).map(|_| (slot.end(), Waker::from(Arc::new(Task(counter.clone()))))).collect();
        for _ in 0..3 {
            for (end, waker) in &mut waiting {
                assert!(end.poll(&Context::from_waker(waker)).is_pending());
            }
        }
        assert_eq!(counter.0.load(Ordering::Relaxed), 0);
        waiting.truncate(90);
        assert_eq!(slot.lock().wakers.len(), 90, "those that were dropped are forgotten");
        assert!(slot.take().is_some());
        assert_eq!(counter.0.load(Ordering::Relaxed), 90);
    }

    /// A future that is polled with ever different wakers has one of them.
    #[test]
    fn wakers_do_not_pile_up() {
        let (slot, mut waiter) = (open(), RoundWaiter::default());
        let counters: Vec<_> = (0..100).map(|_| Arc::new(Counter::default())).collect();
        for counter in &counters {
            let waker = Waker::from(Arc::clone(counter));
            assert!(slot.poll_ending(&mut waiter, &Context::from_waker(&waker)).is_pending());
        }
        assert_eq!(slot.lock().wakers.len(), 1);
        slot.end_with_poll();
        assert_eq!(counters.iter().filter(|counter| counter.0.load(Ordering::Relaxed) > 0).count(), 1);
        assert_eq!(counters[99].0.load(Ordering::Relaxed), 1, "the last one");
    }

    /// What is polled inside a scope ends the round; if it does not, any future does.
    #[test]
    fn the_thread_that_requested_input_ends_the_round() {
        let slot = open();
        let is_ending = |slot: &RoundSlot| {
            slot.poll_ending(&mut RoundWaiter::default(), &Context::from_waker(Waker::noop())).is_ready()
        };
        let elsewhere = || thread::scope(|scope| scope.spawn(|| is_ending(&slot)).join().unwrap());
        let scope = PollScope::enter(&slot);
        let inner = PollScope::enter(&slot);
        slot.end_with_poll();
        drop(inner);
        assert!(is_ending(&slot) && !elsewhere());
        drop(scope);
        assert!(is_ending(&slot) && elsewhere());
    }
}
