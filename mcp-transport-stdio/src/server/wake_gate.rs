//! Sources that are polled only after they were woken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A source that is hardly ever ready, next to others that wake the same task all the time.
///
/// It has a waker of its own, so that a task which was woken for another reason need not poll it.
pub(super) struct WakeGate<F> {
    poll: F,
    state: Arc<State>,
    /// The waker that the source gets, which is `state`.
    waker: Waker,
}

struct State {
    is_woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl<F: FnMut(&mut Context<'_>) -> Poll<()>> WakeGate<F> {
    /// Creates a gate to a source that may be ready several times.
    pub(super) fn new(poll: F) -> Self {
        let state = Arc::new(State { is_woken: AtomicBool::new(true), task: Mutex::default() });
        Self { poll, waker: Waker::from(Arc::clone(&state)), state }
    }

    /// Polls the source if it was woken since it was last polled, or was ready then.
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        // First, so that a wake that the next line misses finds the task.
        self.state.register(cx.waker());
        if !self.state.is_woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let polled = (self.poll)(&mut Context::from_waker(&self.waker));
        if polled.is_ready() {
            self.state.is_woken.store(true, Ordering::Release);
        }
        polled
    }
}

impl State {
    fn register(&self, waker: &Waker) {
        if self.task().as_ref().is_some_and(|task| task.will_wake(waker)) {
            return;
        }
        // Wakers are cloned and dropped without the lock.
        let mut task = Some(waker.clone());
        std::mem::swap(&mut *self.task(), &mut task);
    }

    fn task(&self) -> MutexGuard<'_, Option<Waker>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        let task = self.task().clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    struct Counter(std::sync::atomic::AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_source_is_polled_only_after_it_was_woken() {
        let (polls, events, waker) = (Cell::new(0), Cell::new(0), RefCell::new(None));
        let mut gate = WakeGate::new(|cx: &mut Context<'_>| {
            polls.set(polls.get() + 1);
            *waker.borrow_mut() = Some(cx.waker().clone());
            let is_ready = events.get() > 0;
            events.set(events.get() - usize::from(is_ready));
            if is_ready { Poll::Ready(()) } else { Poll::Pending }
        });
        let tasks = [0, 1].map(|_| Arc::new(Counter(0.into())));
        let wakers = tasks.clone().map(Waker::from);
        let woken = || tasks.each_ref().map(|task| task.0.load(Ordering::Relaxed));

        for _ in 0..3 {
            assert!(gate.poll(&Context::from_waker(&wakers[0])).is_pending());
        }
        assert_eq!(polls.get(), 1, "the first poll registers with the source");

        events.set(2);
        waker.borrow().as_ref().unwrap().wake_by_ref();
        assert_eq!(woken(), [1, 0]);
        for expected in [true, true, false, false] {
            assert_eq!(gate.poll(&Context::from_waker(&wakers[1])).is_ready(), expected);
        }
        assert_eq!(polls.get(), 4, "it is polled until it is no longer ready");

        waker.borrow().as_ref().unwrap().wake_by_ref();
        assert_eq!(woken(), [1, 1], "the task that polled last is woken");
    }
}
