//! What waits to be written, and what is known to be lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use mcp_session::{SessionId, StoredEvent};

type Stream = (SessionId, u64);

/// Between those who send events, who never wait, and the one who writes them.
pub(crate) struct Queue {
    state: Mutex<State>,
    limits: QueueLimits,
    wake: Notify,
    /// The last ticket of which everything has been written, or given up.
    done: watch::Sender<u64>,
    dropped: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
    /// How many streams are remembered, of each kind.
    pub(crate) streams: usize,
}

#[derive(Default)]
struct State {
    /// How often something was asked for.
    ticket: u64,
    items: VecDeque<Item>,
    /// Of what waits and what is being written.
    events: usize,
    bytes: usize,
    /// The greatest number that each stream has lost, to be told to Redis.
    lost: BTreeMap<Stream, u64>,
    /// The sessions to forget. Nothing of what waits is older than that.
    forgotten: BTreeSet<SessionId>,
    /// There is too much to tell: nothing in Redis can be relied on.
    distrusts_all: bool,
    /// The last number that each stream has used here.
    used: BTreeMap<Stream, u64>,
    /// The last of `used` that had to go, once one had to.
    evicted: Option<Stream>,
    is_closed: bool,
}

/// An event to be written.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    ticket: u64,
    pub(crate) session: SessionId,
    pub(crate) stream: u64,
    pub(crate) previous: Previous,
    pub(crate) event: StoredEvent,
}

/// What came before an event in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Previous {
    /// Nothing that this process knows of.
    None,
    Number(u64),
    /// This process knew once.
    Forgotten,
}

/// What is written at once, in this order. Doing it twice is doing it once.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) distrusts_all: bool,
    pub(crate) forgotten: BTreeSet<SessionId>,
    pub(crate) lost: BTreeMap<Stream, u64>,
    pub(crate) items: Vec<Item>,
    /// All up to here has been done then, unless there is more of it.
    ticket: Option<u64>,
}

impl Batch {
    /// What there is to send, more or less.
    pub(crate) fn bytes(&self) -> usize {
        let short = self.forgotten.len() + self.lost.len();
        self.items.iter().map(|item| cost(&item.event)).sum::<usize>() + short * size_of::<Item>()
    }
}

impl Queue {
    pub(crate) fn new(limits: QueueLimits) -> Self {
        let (state, wake, done, dropped) = Default::default();
        Self { state, limits, wake, done: watch::Sender::new(done), dropped }
    }

    pub(crate) fn append(&self, session: SessionId, stream: u64, event: StoredEvent) {
        let mut state = self.state();
        state.ticket += 1;
        let previous = state.use_number((session, stream), event.number, self.limits.streams);
        let cost = cost(&event);
        if state.is_closed || state.events >= self.limits.events || state.bytes.saturating_add(cost) > self.limits.bytes
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            state.lose((session, stream), event.number, self.limits.streams);
        } else {
            state.events += 1;
            state.bytes += cost;
            let ticket = state.ticket;
            state.items.push_back(Item { ticket, session, stream, previous, event });
        }
        drop(state);
        self.wake.notify_one();
    }

    pub(crate) fn forget(&self, session: SessionId) {
        let mut state = self.state();
        state.ticket += 1;
        let State { items, events, bytes, .. } = &mut *state;
        items.retain(|item| {
            let stays = item.session != session;
            if !stays {
                *events -= 1;
                *bytes -= cost(&item.event);
            }
            stays
        });
        remove_session(&mut state.lost, session);
        remove_session(&mut state.used, session);
        state.forgotten.insert(session);
        if state.forgotten.len() > self.limits.streams {
            state.forgotten.clear();
            state.distrusts_all = true;
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Waits until all that was asked for so far has been written or given up; false if that will never be.
    pub(crate) async fn flushed(&self) -> bool {
        let ticket = self.state().ticket;
        let mut done = self.done.subscribe();
        loop {
            if *done.borrow_and_update() >= ticket {
                return true;
            }
            if self.state().is_closed || done.changed().await.is_err() {
                return false;
            }
        }
    }

    /// Waits for something to write; nothing once the queue is closed and empty.
    pub(crate) async fn next(&self) -> Option<Batch> {
        loop {
            let waiting = self.wake.notified();
            {
                let mut state = self.state();
                if let Some(batch) = state.take() {
                    return Some(batch);
                }
                // Otherwise nothing is left, also of what was asked for and came to nothing.
                self.done.send_replace(state.ticket);
                if state.is_closed {
                    return None;
                }
            }
            waiting.await;
        }
    }

    /// Says that a batch has been written, except for these items.
    pub(crate) fn finish(&self, batch: &Batch, refused: &[usize]) {
        let mut state = self.state();
        for item in &batch.items {
            state.events -= 1;
            state.bytes -= cost(&item.event);
        }
        for item in refused.iter().filter_map(|index| batch.items.get(*index)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            state.lose((item.session, item.stream), item.event.number, self.limits.streams);
        }
        // Otherwise the loss has to be written down first, which the next batch does.
        if let (Some(ticket), []) = (batch.ticket, refused) {
            self.done.send_replace(ticket);
        }
    }

    /// Nothing more will come, or nobody is left to write it.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.wake.notify_one();
        self.done.send_modify(|_| ());
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// How many events wait or are being written, and their bytes.
    pub(crate) fn queued(&self) -> (usize, usize) {
        let state = self.state();
        (state.events, state.bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Option<Batch> {
        if self.items.is_empty() && self.lost.is_empty() && self.forgotten.is_empty() && !self.distrusts_all {
            return None;
        }
        let (forgotten, lost) = (take_set(&mut self.forgotten), take_map(&mut self.lost));
        let distrusts_all = mem::take(&mut self.distrusts_all);
        if !self.forgotten.is_empty() || !self.lost.is_empty() {
            return Some(Batch { distrusts_all, forgotten, lost, ..Batch::default() });
        }
        let mut bytes = 0;
        let count = self.items.iter().take(BATCH_EVENTS).take_while(|item| {
            let fits = bytes < BATCH_BYTES;
            bytes += cost(&item.event);
            fits
        });
        let count = count.count();
        let items: Vec<_> = self.items.drain(..count).collect();
        let ticket = match items.last() {
            Some(last) if !self.items.is_empty() => last.ticket,
            _ => self.ticket,
        };
        Some(Batch { distrusts_all, forgotten, lost, items, ticket: Some(ticket) })
    }

    fn lose(&mut self, stream: Stream, number: u64, limit: usize) {
        let lost = self.lost.entry(stream).or_insert(number);
        *lost = number.max(*lost);
        if self.lost.len() > limit {
            self.lost.clear();
            self.distrusts_all = true;
        }
    }

    /// Notes that a stream uses a number; returns the one before.
    fn use_number(&mut self, stream: Stream, number: u64, limit: usize) -> Previous {
        let previous = match self.used.get_mut(&stream) {
            Some(last) => {
                let previous = Previous::Number(*last);
                *last = number.max(*last);
                return previous;
            }
            None if self.evicted.is_some() => Previous::Forgotten,
            None => Previous::None,
        };
        if self.used.len() >= limit {
            // The hand of a clock: each one's turn comes, without a list of who was used when.
            let after = self.evicted.map_or(Bound::Unbounded, Bound::Excluded);
            let next = self.used.range((after, Bound::Unbounded)).next().or_else(|| self.used.first_key_value());
            if let Some(next) = next.map(|(stream, _)| *stream) {
                self.used.remove(&next);
                self.evicted = Some(next);
            }
        }
        self.used.insert(stream, number);
        previous
    }
}

fn remove_session(streams: &mut BTreeMap<Stream, u64>, session: SessionId) {
    while let Some(stream) = streams.range((session, 0)..=(session, u64::MAX)).next().map(|(stream, _)| *stream) {
        streams.remove(&stream);
    }
}

/// The first so many of a set.
fn take_set(set: &mut BTreeSet<SessionId>) -> BTreeSet<SessionId> {
    match set.iter().nth(BATCH_EVENTS).copied() {
        Some(next) => {
            let rest = set.split_off(&next);
            mem::replace(set, rest)
        }
        None => mem::take(set),
    }
}

/// The first so many of a map.
fn take_map(map: &mut BTreeMap<Stream, u64>) -> BTreeMap<Stream, u64> {
    match map.keys().nth(BATCH_EVENTS).copied() {
        Some(next) => {
            let rest = map.split_off(&next);
            mem::replace(map, rest)
        }
        None => mem::take(map),
    }
}

/// What an event takes of the bytes that may wait.
fn cost(event: &StoredEvent) -> usize {
    event.message.len() + size_of::<Item>()
}

/// So many events, losses and sessions to forget go to Redis at once,
const BATCH_EVENTS: usize = 256;
/// as long as those before the last have less than this.
const BATCH_BYTES: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;

    const LIMITS: QueueLimits = QueueLimits { events: 4, bytes: 4096, streams: 3 };

    fn event(number: u64) -> StoredEvent {
        StoredEvent { number, message: Bytes::from_static(b"{}") }
    }

    fn id() -> SessionId {
        SessionId::random().unwrap()
    }

    #[tokio::test]
    async fn what_does_not_fit_is_counted_and_known() {
        let (queue, session) = (Queue::new(LIMITS), id());
        for number in 1..=7 {
            queue.append(session, 0, event(number));
        }
        queue.append(session, 1, StoredEvent { number: 8, message: vec![0; 5000].into() });
        assert_eq!((queue.dropped(), queue.queued().0), (4, 4));
        let batch = queue.next().await.unwrap();
        let numbers: Vec<_> = batch.items.iter().map(|item| (item.event.number, item.previous)).collect();
        let previous = [Previous::None, Previous::Number(1), Previous::Number(2), Previous::Number(3)];
        assert_eq!(numbers, (1..=4).zip(previous).collect::<Vec<_>>());
        assert_eq!(batch.lost, BTreeMap::from([((session, 0), 7), ((session, 1), 8)]));
        assert_eq!(queue.queued().0, 4, "what is being written counts");
        queue.finish(&batch, &[]);
        assert_eq!(queue.queued(), (0, 0));
        assert!(queue.flushed().await);
    }

    #[tokio::test]
    async fn what_is_known_of_streams_is_bounded() {
        let queue = Queue::new(LIMITS);
        for _ in 0..4 {
            queue.append(id(), 0, event(1));
        }
        for _ in 0..3 {
            queue.append(id(), 0, event(1));
        }
        assert!(!queue.state().distrusts_all);
        queue.append(id(), 0, event(1));
        let batch = queue.next().await.unwrap();
        assert!(batch.distrusts_all && batch.lost.is_empty());
        assert_eq!(queue.state().used.len(), 3);
        queue.finish(&batch, &[]);
        for _ in 0..4 {
            queue.forget(id());
        }
        let batch = queue.next().await.unwrap();
        assert!(batch.distrusts_all && batch.forgotten.is_empty());
        queue.finish(&batch, &[]);
        queue.append(id(), 0, event(9));
        assert_eq!(queue.next().await.unwrap().items[0].previous, Previous::Forgotten);
    }

    #[tokio::test]
    async fn forgetting_comes_before_what_follows_it() {
        let (queue, session, other) = (Queue::new(LIMITS), id(), id());
        queue.append(session, 0, event(1));
        queue.append(other, 0, event(1));
        queue.forget(session);
        queue.append(session, 0, event(2));
        let batch = queue.next().await.unwrap();
        let items: Vec<_> = batch.items.iter().map(|item| (item.session, item.event.number, item.previous)).collect();
        assert_eq!(items, [(other, 1, Previous::None), (session, 2, Previous::None)]);
        assert_eq!(batch.forgotten, BTreeSet::from([session]));
        queue.finish(&batch, &[1]);
        assert_eq!((queue.queued(), queue.dropped()), ((0, 0), 1));
        let flushed = tokio::time::timeout(Duration::from_millis(10), queue.flushed());
        assert!(flushed.await.is_err(), "that something was refused is not written down yet");
        let batch = queue.next().await.unwrap();
        assert_eq!(batch.lost, BTreeMap::from([((session, 0), 2)]));
        queue.finish(&batch, &[]);
        assert!(queue.flushed().await);
    }

    #[tokio::test]
    async fn nobody_waits_for_a_writer_that_is_gone() {
        let queue = Queue::new(LIMITS);
        queue.append(id(), 0, event(1));
        let (flushed, ()) = tokio::join!(queue.flushed(), async { queue.close() });
        assert!(!flushed);
    }
}
