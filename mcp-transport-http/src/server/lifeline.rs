//! The end of a service: who is at work, and who has to know that it comes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Serving,
    /// Nothing new is taken on; what is at work may finish.
    Draining,
    /// What is still at work is given up.
    Cut,
}

/// What all exchanges of a service hang on.
#[derive(Default)]
pub(crate) struct Lifeline {
    stage: AtomicU8,
    changed: Arc<Notify>,
    at_work: AtomicUsize,
    all_done: Notify,
}

/// What was at work when a service had to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// How many requests finished by themselves, with streams that were ended properly.
    pub finished: usize,
    /// How many had to be given up, because they took longer than they were given.
    pub aborted: usize,
}

impl Lifeline {
    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::SeqCst) {
            0 => Stage::Serving,
            1 => Stage::Draining,
            _ => Stage::Cut,
        }
    }

    fn enter(&self, stage: Stage) {
        self.stage.fetch_max(stage as u8, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    /// Lets what is at work finish, and gives up what takes longer than `time`.
    pub(crate) async fn drain(&self, time: Duration) -> Drained {
        self.enter(Stage::Draining);
        let begin = self.at_work.load(Ordering::SeqCst);
        let cut = match tokio::time::timeout(time, self.finished()).await {
            Ok(()) => 0,
            Err(_) => self.at_work.load(Ordering::SeqCst),
        };
        self.enter(Stage::Cut);
        Drained { finished: begin.saturating_sub(cut), aborted: cut }
    }

    async fn finished(&self) {
        loop {
            let done = self.all_done.notified();
            if self.at_work.load(Ordering::SeqCst) == 0 {
                return;
            }
            done.await;
        }
    }
}

/// Something that is at work, until it is dropped.
pub(crate) struct AtWork(Arc<Lifeline>);

impl AtWork {
    pub(crate) fn new(lifeline: &Arc<Lifeline>) -> Self {
        lifeline.at_work.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(lifeline))
    }

    /// Something else that is at work, because of this.
    pub(crate) fn another(&self) -> Self {
        Self::new(&self.0)
    }

    pub(crate) fn stage(&self) -> Stage {
        self.0.stage()
    }

    /// Waits for the end to come closer than it is.
    pub(crate) fn watch(&self) -> Watch {
        let mut changed = Box::pin(Arc::clone(&self.0.changed).notified_owned());
        changed.as_mut().enable();
        Watch { changed }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if self.0.at_work.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.all_done.notify_waiters();
        }
    }
}

/// Wakes whoever looks at the [`stage`](AtWork::stage), when there is a new one.
pub(crate) struct Watch {
    changed: Pin<Box<OwnedNotified>>,
}

impl Watch {
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, at_work: &AtWork) {
        while let Poll::Ready(()) = self.changed.as_mut().poll(cx) {
            *self = at_work.watch();
        }
    }
}
