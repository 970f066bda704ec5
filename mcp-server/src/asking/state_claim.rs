//! Claiming a `requestState` that may be used once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::serve::endpoint::BoxFuture;

/// The claim of the state of a round, which the futures of its request share: it is made once, and whichever of them is polled
/// drives it. One that is dropped meanwhile does not take it along.
pub(crate) struct StateClaim {
    inner: Mutex<Inner>,
    /// Whether it was woken while one of the futures polled it, so that others did not see that.
    was_woken: AtomicBool,
}

struct Inner {
    phase: Phase,
    wakers: Vec<Waker>,
}

enum Phase {
    Pending(BoxFuture<bool>),
    /// Another thread polls it.
    Polled,
    Done(bool),
}

impl StateClaim {
    pub(crate) fn new(claim: BoxFuture<bool>) -> Self {
        let inner = Inner { phase: Phase::Pending(claim), wakers: Vec::new() };
        Self { inner: Mutex::new(inner), was_woken: AtomicBool::new(false) }
    }

    /// Whether the state was claimed, and was not used before.
    pub(crate) fn is_granted(&self) -> bool {
        matches!(self.lock().phase, Phase::Done(true))
    }

    /// Is ready with whether the state may be used.
    pub(crate) fn poll(self: &Arc<Self>, cx: &Context<'_>) -> Poll<bool> {
        // Cloned without the lock, as that may be code of the application.
        let waker = cx.waker().clone();
        let mut claim = {
            let mut inner = self.lock();
            match std::mem::replace(&mut inner.phase, Phase::Polled) {
                Phase::Done(is_granted) => {
                    inner.phase = Phase::Done(is_granted);
                    return Poll::Ready(is_granted);
                }
                Phase::Polled => {
                    inner.add_waker(waker);
                    return Poll::Pending;
                }
                Phase::Pending(claim) => {
                    inner.add_waker(waker);
                    claim
                }
            }
        };
        // If it panics, the state was not claimed.
        let mut end = PollEnd { claim: self, phase: Phase::Done(false) };
        self.was_woken.store(false, Ordering::Release);
        let shared = Waker::from(Arc::clone(self));
        match claim.as_mut().poll(&mut Context::from_waker(&shared)) {
            Poll::Ready(is_granted) => {
                end.phase = Phase::Done(is_granted);
                Poll::Ready(is_granted)
            }
            Poll::Pending => {
                end.phase = Phase::Pending(claim);
                Poll::Pending
            }
        }
    }

    fn wake_all(&self) {
        let wakers = std::mem::take(&mut self.lock().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Adds a waker of one of the few futures of a request.
    fn add_waker(&mut self, waker: Waker) {
        if !self.wakers.iter().any(|known| known.will_wake(&waker)) {
            self.wakers.push(waker);
        }
    }
}

impl Wake for StateClaim {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.was_woken.store(true, Ordering::Release);
        self.wake_all();
    }
}

/// Ends a poll, also by a panic.
struct PollEnd<'a> {
    claim: &'a Arc<StateClaim>,
    phase: Phase,
}

impl Drop for PollEnd<'_> {
    fn drop(&mut self) {
        let phase = std::mem::replace(&mut self.phase, Phase::Done(false));
        let is_done = matches!(phase, Phase::Done(_));
        self.claim.lock().phase = phase;
        if is_done || self.claim.was_woken.load(Ordering::Acquire) {
            self.claim.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A future that is ready once it was told, and what tells it.
    fn later() -> (Arc<StateClaim>, impl Fn(bool)) {
        let told: Arc<Mutex<(Option<bool>, Option<Waker>)>> = Arc::default();
        let teller = Arc::clone(&told);
        let claim = poll_fn(move |cx| {
            let mut told = told.lock().unwrap();
            told.1 = Some(cx.waker().clone());
            told.0.map_or(Poll::Pending, Poll::Ready)
        });
        let tell = move |outcome| {
            let mut told = teller.lock().unwrap();
            told.0 = Some(outcome);
            let waker = told.1.take();
            drop(told);
            waker.into_iter().for_each(Waker::wake);
        };
        (Arc::new(StateClaim::new(Box::pin(claim))), tell)
    }

    /// All futures that wait are woken, also if the one that polled last is gone.
    #[test]
    fn all_learn_the_outcome() {
        let (claim, tell) = later();
        let tasks: [Arc<Task>; 3] = Default::default();
        let poll = |task: &Arc<Task>| claim.poll(&Context::from_waker(&Waker::from(Arc::clone(task))));
        assert!(tasks.iter().all(|task| poll(task).is_pending()));
        tell(true);
        assert!(!claim.is_granted(), "nobody has polled it since");
        assert!(tasks.iter().all(|task| task.0.load(Ordering::Relaxed) == 1));
        assert!(tasks.iter().all(|task| poll(task) == Poll::Ready(true)));
        assert!(claim.is_granted());
    }

    /// A guard that panics has not decided.
    #[test]
    fn a_panic_is_no_claim() {
        let claim = Arc::new(StateClaim::new(Box::pin(async { panic!("this is what the test wants") })));
        let cx = Context::from_waker(Waker::noop());
        catch_unwind(AssertUnwindSafe(|| claim.poll(&cx).is_pending())).unwrap_err();
        assert_eq!(claim.poll(&cx), Poll::Ready(false));
    }
}
