//! Spares HTTP/1 connections a needless wake-up per request.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// Wakes the task of an HTTP/1 connection, except for wake-ups that are [held back](hold_back).
///
/// Hyper reads the body of a request before the service takes it. When the service does, hyper wakes the task to read the
/// rest, even if there is none: each request would poll its connection twice.
pub(crate) struct QuietWaker(Waker);

thread_local! {
    /// What happens to wake-ups on this thread.
    static MODE: Cell<Mode> = const { Cell::new(Mode::Wake) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Wake,
    HoldBack,
    /// A wake-up was held back.
    HeldBack,
}

impl QuietWaker {
    /// Wraps the waker of a task.
    pub(crate) fn wrap(waker: &Waker) -> Waker {
        Waker::from(Arc::new(Self(waker.clone())))
    }
}

impl Wake for QuietWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if MODE.get() == Mode::Wake {
            self.0.wake_by_ref();
        } else {
            MODE.set(Mode::HeldBack);
        }
    }
}

/// Calls a function, and holds back wake-ups on this thread meanwhile. Returns whether there was one.
pub(crate) fn hold_back<R>(function: impl FnOnce() -> R) -> (R, bool) {
    /// Ends the holding back, even if the function panics.
    struct End;

    impl Drop for End {
        fn drop(&mut self) {
            MODE.set(Mode::Wake);
        }
    }

    let _end = End;
    MODE.set(Mode::HoldBack);
    let returned = function();
    (returned, MODE.get() == Mode::HeldBack)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Only wake-ups on the same thread are held back, and only for as long as the function runs.
    #[test]
    fn wake_ups_are_held_back() {
        let count = Arc::new(Count::default());
        let waker = QuietWaker::wrap(&Waker::from(Arc::clone(&count)));
        let woken = || count.0.load(Ordering::Relaxed);
        assert_eq!(hold_back(|| waker.wake_by_ref()), ((), true));
        assert_eq!(hold_back(|| ()), ((), false));
        assert_eq!(woken(), 0);
        let ((), is_held_back) = hold_back(|| {
            std::thread::scope(|scope| {
                scope.spawn(|| waker.wake_by_ref());
            })
        });
        assert_eq!((woken(), is_held_back), (1, false));
        let panicked = std::panic::catch_unwind(|| hold_back(|| panic!("of the function")));
        assert!(panicked.is_err());
        waker.wake();
        assert_eq!(woken(), 2);
    }
}
