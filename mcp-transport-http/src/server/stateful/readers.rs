//! Who waits for a session.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use mcp_kernel::{RequestKey, Route};

/// The tasks of all responses that a session has open, and whether one of them runs its handlers.
///
/// A handler that can go on wakes who reads its answer, and nobody else. While a task runs the session nobody is woken at
/// all: that task looks once more before it leaves, and wakes those for whom there are messages.
#[derive(Default)]
pub(crate) struct Readers {
    /// Whether a task runs the session, and has to look once more.
    running: AtomicU8,
    waiting: Mutex<Waiting>,
}

const FREE: u8 = 0;
const RUNNING: u8 = 1;
/// It runs, and somebody wants it to run once more.
const WANTED: u8 = 2;

#[derive(Default)]
struct Waiting {
    /// By number; numbers grow.
    tasks: Vec<Task>,
    /// The latest reader of each, in order.
    readers: Vec<(ReaderTarget, u64)>,
    last: u64,
}

struct Task {
    reader: u64,
    reads: Option<ReaderTarget>,
    waker: Option<Waker>,
}

/// What somebody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReaderTarget {
    /// What belongs to the session as a whole.
    Standalone,
    /// What nobody else reads.
    Orphans,
    /// The answer to a request.
    Request(RequestKey),
}

impl Readers {
    /// A number for somebody who will wait, and reads this from now on.
    pub(crate) fn add(&self, reads: Option<ReaderTarget>) -> u64 {
        let mut waiting = self.lock();
        waiting.last += 1;
        let reader = waiting.last;
        waiting.tasks.push(Task { reader, reads, waker: None });
        if let Some(reads) = reads {
            match waiting.place(reads) {
                Ok(index) => {
                    if let Some((_, latest)) = waiting.readers.get_mut(index) {
                        *latest = reader;
                    }
                }
                Err(index) => waiting.readers.insert(index, (reads, reader)),
            }
        }
        reader
    }

    /// Notes who is to be woken.
    pub(crate) fn register(&self, reader: u64, waker: &Waker) {
        let is_there = |task: &Task| task.waker.as_ref().is_some_and(|other| other.will_wake(waker));
        if self.lock().task(reader).is_none_or(|task| is_there(task)) {
            return;
        }
        // Wakers are cloned and dropped without the lock.
        let mut waker = Some(waker.clone());
        if let Some(task) = self.lock().task(reader) {
            std::mem::swap(&mut task.waker, &mut waker);
        }
    }

    /// Forgets somebody who does not wait any more.
    pub(crate) fn leave(&self, reader: u64) {
        let mut waiting = self.lock();
        let index = waiting.tasks.binary_search_by_key(&reader, |task| task.reader);
        let task = index.ok().map(|index| waiting.tasks.remove(index));
        if let Some(reads) = task.as_ref().and_then(|task| task.reads)
            && let Ok(index) = waiting.place(reads)
            && waiting.readers.get(index).is_some_and(|(_, other)| *other == reader)
        {
            waiting.readers.remove(index);
        }
        drop(waiting);
        drop(task);
    }

    /// Wakes all; returns whether there was anybody.
    pub(crate) fn wake_all(&self) -> bool {
        let tasks: Vec<Waker> = self.lock().tasks.iter().filter_map(|task| task.waker.clone()).collect();
        let was_any = !tasks.is_empty();
        tasks.into_iter().for_each(Waker::wake);
        was_any
    }

    /// Wakes some.
    pub(crate) fn wake(&self, readers: &[u64]) {
        for reader in readers {
            let waker = self.lock().task(*reader).and_then(|task| task.waker.clone());
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Wakes who reads something, if anybody does.
    pub(crate) fn wake_reader(&self, reads: ReaderTarget) {
        let reader = self.lock().reader(reads);
        self.wake(reader.as_slice());
    }

    /// Has the session run, because there is something to do for a route, or for any.
    pub(crate) fn wake_route(&self, route: Option<Route>) {
        if self.want() {
            return;
        }
        let reads = route.map(|route| match route {
            Route::Reply(key) | Route::Related(key) | Route::Listen(key) => ReaderTarget::Request(key),
            Route::Standalone => ReaderTarget::Standalone,
        });
        // One who has not begun to wait looks before it does.
        let reader = reads.and_then(|reads| {
            let waiting = self.lock();
            waiting.reader(reads).or_else(|| waiting.reader(ReaderTarget::Orphans))
        });
        match reader {
            Some(reader) => self.wake(&[reader]),
            None => {
                self.wake_all();
            }
        }
    }

    /// Has whoever runs the session run it once more; returns whether anybody does.
    pub(crate) fn want(&self) -> bool {
        self.running
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |running| (running != FREE).then_some(WANTED))
            .is_ok()
    }

    /// Begins to run the session, unless another task does, who then does so once more.
    pub(crate) fn try_run(&self) -> bool {
        let next = |running: u8| Some(if running == FREE { RUNNING } else { WANTED });
        self.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) == Ok(FREE)
    }

    /// Stops running the session; returns whether it did, and not if somebody wants it to run once more.
    pub(crate) fn try_stop(&self) -> bool {
        let is_stopped = self.running.compare_exchange(RUNNING, FREE, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !is_stopped {
            self.running.store(RUNNING, Ordering::Release);
        }
        is_stopped
    }

    /// Stops running the session, whoever wants it.
    pub(crate) fn stop(&self) {
        self.running.store(FREE, Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn task(&mut self, reader: u64) -> Option<&mut Task> {
        let index = self.tasks.binary_search_by_key(&reader, |task| task.reader).ok()?;
        self.tasks.get_mut(index)
    }

    fn place(&self, reads: ReaderTarget) -> Result<usize, usize> {
        self.readers.binary_search_by_key(&reads, |(other, _)| *other)
    }

    fn reader(&self, reads: ReaderTarget) -> Option<u64> {
        let index = self.place(reads).ok()?;
        self.readers.get(index).map(|(_, reader)| *reader)
    }
}

impl Wake for Readers {
    fn wake(self: Arc<Self>) {
        self.wake_route(None);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_route(None);
    }
}
