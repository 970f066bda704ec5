//! The tasks that wait for a session.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use mcp_kernel::RequestKey;
use mcp_kernel::server::Route;
use mcp_server::RouteWaker;
use mcp_session::SessionId;

use super::few::Few;

/// The tasks of all open responses of a session, and whether one of them runs its handlers.
///
/// A handler that can continue wakes the reader of its response only. While a task runs the session, no other is woken:
/// that task runs the session once more before it stops, and wakes the readers for which there are messages. A reader that
/// is polled for any other reason, as its connection can send more, finds nothing due and does not run the session.
pub(crate) struct Readers {
    /// The id of the session, whose connection shares this value.
    session: SessionId,
    /// Whether a task runs the session, and has to run it once more.
    running: AtomicU8,
    /// What the next reader that is polled has to do for the session. Set before a reader is woken.
    due: AtomicU8,
    waiting: Mutex<Waiting>,
}

/// What has to be done for a session, which no task does yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    Nothing,
    /// Messages that belong to no request have to be delivered, which needs no handler.
    Messages,
    /// The session has to run.
    Run,
}

const STOPPED: u8 = 0;
const RUNNING: u8 = 1;
/// A task runs the session, and has to run it once more.
const RUN_AGAIN: u8 = 2;

#[derive(Default)]
struct Waiting {
    /// Sorted by reader number, which increases.
    tasks: Few<Task>,
    last: u64,
}

struct Task {
    reader: u64,
    /// What it reads, unless a later reader does.
    reads: Option<ReaderTarget>,
    waker: Option<Waker>,
}

/// What a task reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReaderTarget {
    /// The standalone stream.
    Standalone,
    /// All requests without a reader.
    Orphans,
    /// The response to a request.
    Request(RequestKey),
}

impl Readers {
    /// Creates the readers of a session.
    pub(crate) fn of(session: SessionId) -> Self {
        let (running, due) = (AtomicU8::new(STOPPED), AtomicU8::new(Due::Nothing as u8));
        Self { session, running, due, waiting: Mutex::default() }
    }

    /// Returns the id of the session.
    pub(crate) fn session(&self) -> SessionId {
        self.session
    }

    /// Adds a reader, which replaces an earlier one of the same target. Returns its number.
    pub(crate) fn add(&self, reads: Option<ReaderTarget>) -> u64 {
        // What happened while there was no reader is due now.
        self.set_due(Due::Run);
        let mut waiting = self.lock();
        waiting.last += 1;
        let reader = waiting.last;
        if let Some(replaced) = reads.and_then(|reads| waiting.reading(reads)) {
            replaced.reads = None;
        }
        let index = waiting.tasks.len();
        waiting.tasks.insert(index, Task { reader, reads, waker: None });
        reader
    }

    /// Registers the waker of a reader.
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

    /// Removes a reader.
    pub(crate) fn leave(&self, reader: u64) {
        let mut waiting = self.lock();
        let index = waiting.tasks.binary_search_by_key(&reader, |task| task.reader);
        let task = index.ok().and_then(|index| waiting.tasks.remove(index));
        drop(waiting);
        drop(task);
    }

    /// Wakes all readers. Returns whether there were any.
    pub(crate) fn wake_all(&self) -> bool {
        let tasks: Vec<Waker> = self.lock().tasks.iter().filter_map(|task| task.waker.clone()).collect();
        let was_any = !tasks.is_empty();
        tasks.into_iter().for_each(Waker::wake);
        was_any
    }

    /// Wakes some readers.
    pub(crate) fn wake(&self, readers: &[u64]) {
        for reader in readers {
            let waker = self.lock().task(*reader).and_then(|task| task.waker.clone());
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Wakes the reader of a target, if there is one.
    pub(crate) fn wake_reader(&self, reads: ReaderTarget) {
        let reader = self.lock().reading(reads).map(|task| task.reader);
        self.wake(reader.as_slice());
    }

    /// Wakes a reader to run the session, because there is work for a route or for any.
    pub(crate) fn wake_route(&self, route: Option<Route>) {
        if self.request_run() {
            return;
        }
        // The standalone stream has notifications only.
        self.set_due(if route == Some(Route::Standalone) { Due::Messages } else { Due::Run });
        let reads = route.map(|route| match route {
            Route::Reply(key) | Route::Related(key) | Route::Listen(key) => ReaderTarget::Request(key),
            Route::Standalone => ReaderTarget::Standalone,
        });
        // A reader without a waker checks for work before it waits.
        let reader = reads.and_then(|reads| {
            let mut waiting = self.lock();
            let reader = waiting.reading(reads).map(|task| task.reader);
            reader.or_else(|| waiting.reading(ReaderTarget::Orphans).map(|task| task.reader))
        });
        match reader {
            Some(reader) => self.wake(&[reader]),
            None => {
                self.wake_all();
            }
        }
    }

    /// Makes the next reader that is polled do at least this.
    pub(crate) fn set_due(&self, due: Due) {
        self.due.fetch_max(due as u8, Ordering::AcqRel);
    }

    /// Returns what is due, which the caller then does.
    pub(crate) fn take_due(&self) -> Due {
        const NOTHING: u8 = Due::Nothing as u8;
        const MESSAGES: u8 = Due::Messages as u8;
        if self.due.load(Ordering::Acquire) == NOTHING {
            return Due::Nothing;
        }
        match self.due.swap(NOTHING, Ordering::AcqRel) {
            NOTHING => Due::Nothing,
            MESSAGES => Due::Messages,
            _ => Due::Run,
        }
    }

    /// Makes the task that runs the session run it once more. Returns whether there is one.
    pub(crate) fn request_run(&self) -> bool {
        self.running
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |running| (running != STOPPED).then_some(RUN_AGAIN))
            .is_ok()
    }

    /// Begins to run the session, unless another task does, which then runs it once more.
    pub(crate) fn try_run(&self) -> bool {
        let next = |running: u8| Some(if running == STOPPED { RUNNING } else { RUN_AGAIN });
        self.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) == Ok(STOPPED)
    }

    /// Stops running the session. Returns `false` if it has to run once more.
    pub(crate) fn try_stop(&self) -> bool {
        let is_stopped = self.running.compare_exchange(RUNNING, STOPPED, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !is_stopped {
            self.running.store(RUNNING, Ordering::Release);
        }
        is_stopped
    }

    /// Stops running the session unconditionally. It has to run again.
    pub(crate) fn stop(&self) {
        self.set_due(Due::Run);
        self.running.store(STOPPED, Ordering::Release);
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

    /// The reader of a target. There are few, and the youngest ones are woken most.
    fn reading(&mut self, reads: ReaderTarget) -> Option<&mut Task> {
        self.tasks.iter_mut().rev().find(|task| task.reads == Some(reads))
    }
}

/// The id of the session, as handlers get it from their connection.
impl fmt::Display for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.session.fmt(f)
    }
}

impl RouteWaker for Readers {
    fn wake_route(&self, route: Option<Route>) {
        self.wake_route(route);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn readers() -> Readers {
        Readers::of(SessionId::random().expect("randomness"))
    }

    /// Only what is due makes a reader run the session, and messages alone need no handler.
    #[test]
    fn readers_run_what_is_due() {
        let (readers, wakes) = (Arc::new(readers()), Arc::new(Wakes::default()));
        let reader = readers.add(Some(ReaderTarget::Standalone));
        readers.register(reader, &Waker::from(Arc::clone(&wakes)));
        assert_eq!((readers.take_due(), readers.take_due()), (Due::Run, Due::Nothing), "a new reader runs it once");
        readers.wake_route(Some(Route::Standalone));
        assert_eq!((readers.take_due(), readers.take_due()), (Due::Messages, Due::Nothing));
        readers.wake_route(None);
        readers.wake_route(Some(Route::Standalone));
        assert_eq!((readers.take_due(), readers.take_due()), (Due::Run, Due::Nothing));
        Readers::wake(&readers, &[reader]);
        assert_eq!(readers.take_due(), Due::Nothing, "its messages were delivered");
        assert!(readers.try_run());
        readers.wake_route(Some(Route::Standalone));
        assert_eq!(readers.take_due(), Due::Nothing, "the task that runs the session does it");
        readers.stop();
        assert_eq!(readers.take_due(), Due::Run, "what that task left");
        assert_eq!(wakes.0.load(Ordering::Relaxed), 4);
    }

    /// There is no memory for readers while there are none.
    #[test]
    fn readers_that_left_take_no_memory() {
        let readers = readers();
        let numbers =
            [None, Some(ReaderTarget::Standalone), Some(ReaderTarget::Orphans)].map(|reads| readers.add(reads));
        numbers.into_iter().for_each(|reader| readers.leave(reader));
        let waiting = readers.lock();
        assert!(matches!(waiting.tasks, Few::One(None)));
    }
}
