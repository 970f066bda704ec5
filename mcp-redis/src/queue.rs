//! The queue of events to write, and the events that are known to be lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use mcp_session::{DroppedEvents, SessionId, StoredEvent};

use crate::options::RedisOptions;

type Stream = (SessionId, u64);

/// The queue between callers, which never wait, and the writer.
pub(crate) struct Queue {
    state: Mutex<State>,
    options: RedisOptions,
    wake: Notify,
    /// All operations up to this ticket were written, or dropped.
    done: watch::Sender<u64>,
    dropped: DroppedEvents,
}

#[derive(Default)]
struct State {
    /// The number of operations so far.
    ticket: u64,
    items: VecDeque<Item>,
    /// The number of events that are queued or being written, and their bytes.
    events: usize,
    bytes: usize,
    /// The greatest number that each stream has lost, to be recorded in Redis.
    lost: BTreeMap<Stream, u64>,
    /// The sessions to remove; the queue has only later events of them.
    forgotten: BTreeSet<SessionId>,
    /// Whether too much was lost to record it: all streams in Redis have to be treated as incomplete.
    invalidates_all: bool,
    /// The last number of each stream in this process.
    last_numbers: BTreeMap<Stream, u64>,
    /// The stream that was last evicted from `last_numbers`.
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

/// The number before an event in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Previous {
    /// There is none in this process.
    None,
    Number(u64),
    /// It was evicted.
    Evicted,
}

/// The commands of one pipeline, in this order. They are idempotent.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) invalidates_all: bool,
    pub(crate) forgotten: BTreeSet<SessionId>,
    pub(crate) lost: BTreeMap<Stream, u64>,
    pub(crate) items: Vec<Item>,
    /// The last ticket that the batch completes, if it completes one.
    ticket: Option<u64>,
}

impl Batch {
    /// The approximate size of the commands.
    pub(crate) fn bytes(&self) -> usize {
        let short = self.forgotten.len() + self.lost.len();
        self.items.iter().map(|item| cost(&item.event)).sum::<usize>() + short * size_of::<Item>()
    }
}

impl Queue {
    pub(crate) fn new(options: RedisOptions) -> Self {
        let (state, wake, done, dropped) = Default::default();
        Self { state, options, wake, done: watch::Sender::new(done), dropped }
    }

    pub(crate) fn append(&self, session: SessionId, stream: u64, event: StoredEvent) {
        let mut state = self.state();
        state.ticket += 1;
        let previous = state.use_number((session, stream), event.number, self.options.max_tracked_streams);
        let cost = cost(&event);
        let is_full = state.events >= self.options.max_queued_events
            || state.bytes.saturating_add(cost) > self.options.max_queued_bytes;
        if state.is_closed || is_full {
            self.dropped.add_one();
            state.lose((session, stream), event.number, self.options.max_tracked_streams);
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
        remove_session(&mut state.last_numbers, session);
        state.forgotten.insert(session);
        if state.forgotten.len() > self.options.max_tracked_streams {
            state.forgotten.clear();
            state.invalidates_all = true;
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Waits until all operations so far were written or dropped; returns `false` if the queue is closed before.
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

    /// Waits for the next batch; returns `None` once the queue is closed and empty.
    pub(crate) async fn next(&self) -> Option<Batch> {
        loop {
            let waiting = self.wake.notified();
            {
                let mut state = self.state();
                if let Some(batch) = state.take() {
                    return Some(batch);
                }
                // The queue is empty, so operations without a command are done as well.
                self.done.send_replace(state.ticket);
                if state.is_closed {
                    return None;
                }
            }
            waiting.await;
        }
    }

    /// Records that a batch was written, except for these items.
    pub(crate) fn finish(&self, batch: &Batch, refused: &[usize]) {
        let mut state = self.state();
        for item in &batch.items {
            state.events -= 1;
            state.bytes -= cost(&item.event);
        }
        for item in refused.iter().filter_map(|index| batch.items.get(*index)) {
            self.dropped.add_one();
            state.lose((item.session, item.stream), item.event.number, self.options.max_tracked_streams);
        }
        // Otherwise the next batch has to record the loss first.
        if let (Some(ticket), []) = (batch.ticket, refused) {
            self.done.send_replace(ticket);
        }
    }

    /// Closes the queue: there are no more operations, or no writer.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.wake.notify_one();
        self.done.send_modify(|_| ());
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    pub(crate) fn dropped(&self) -> &DroppedEvents {
        &self.dropped
    }

    /// Returns the number of events that are queued or being written, and their bytes.
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
        if self.items.is_empty() && self.lost.is_empty() && self.forgotten.is_empty() && !self.invalidates_all {
            return None;
        }
        let (forgotten, lost) = (take_set(&mut self.forgotten), take_map(&mut self.lost));
        let invalidates_all = mem::take(&mut self.invalidates_all);
        if !self.forgotten.is_empty() || !self.lost.is_empty() {
            return Some(Batch { invalidates_all, forgotten, lost, ..Batch::default() });
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
        Some(Batch { invalidates_all, forgotten, lost, items, ticket: Some(ticket) })
    }

    fn lose(&mut self, stream: Stream, number: u64, limit: usize) {
        let lost = self.lost.entry(stream).or_insert(number);
        *lost = number.max(*lost);
        if self.lost.len() > limit {
            self.lost.clear();
            self.invalidates_all = true;
        }
    }

    /// Records the number of an event; returns the one before.
    fn use_number(&mut self, stream: Stream, number: u64, limit: usize) -> Previous {
        let previous = match self.last_numbers.get_mut(&stream) {
            Some(last) => {
                let previous = Previous::Number(*last);
                *last = number.max(*last);
                return previous;
            }
            None if self.evicted.is_some() => Previous::Evicted,
            None => Previous::None,
        };
        if self.last_numbers.len() >= limit {
            // Evicts in turn (the clock algorithm), which needs no order by last use.
            let after = self.evicted.map_or(Bound::Unbounded, Bound::Excluded);
            let next = self
                .last_numbers
                .range((after, Bound::Unbounded))
                .next()
                .or_else(|| self.last_numbers.first_key_value());
            if let Some(next) = next.map(|(stream, _)| *stream) {
                self.last_numbers.remove(&next);
                self.evicted = Some(next);
            }
        }
        self.last_numbers.insert(stream, number);
        previous
    }
}

fn remove_session(streams: &mut BTreeMap<Stream, u64>, session: SessionId) {
    while let Some(stream) = streams.range((session, 0)..=(session, u64::MAX)).next().map(|(stream, _)| *stream) {
        streams.remove(&stream);
    }
}

/// Takes up to a batch from a set.
fn take_set(set: &mut BTreeSet<SessionId>) -> BTreeSet<SessionId> {
    match set.iter().nth(BATCH_EVENTS).copied() {
        Some(next) => {
            let rest = set.split_off(&next);
            mem::replace(set, rest)
        }
        None => mem::take(set),
    }
}

/// Takes up to a batch from a map.
fn take_map(map: &mut BTreeMap<Stream, u64>) -> BTreeMap<Stream, u64> {
    match map.keys().nth(BATCH_EVENTS).copied() {
        Some(next) => {
            let rest = map.split_off(&next);
            mem::replace(map, rest)
        }
        None => mem::take(map),
    }
}

/// The bytes that an event counts in the queue.
fn cost(event: &StoredEvent) -> usize {
    event.message.len() + size_of::<Item>()
}

/// The maximum number of events, of losses, and of sessions to remove in a batch.
const BATCH_EVENTS: usize = 256;
/// The maximum number of bytes in the events of a batch, not counting the last one.
const BATCH_BYTES: usize = 1024 * 1024;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;

    use super::*;

    fn queue() -> Queue {
        Queue::new(RedisOptions::default().max_queued_events(4).max_queued_bytes(4096).max_tracked_streams(3))
    }

    fn event(number: u64) -> StoredEvent {
        StoredEvent { number, message: Bytes::from_static(b"{}") }
    }

    fn id() -> SessionId {
        SessionId::random().unwrap()
    }

    #[tokio::test]
    async fn events_beyond_the_limits_are_counted_and_recorded() {
        let (queue, session) = (queue(), id());
        for number in 1..=7 {
            queue.append(session, 0, event(number));
        }
        queue.append(session, 1, StoredEvent { number: 8, message: vec![0; 5000].into() });
        assert_eq!((queue.dropped().count(), queue.queued().0), (4, 4));
        let batch = queue.next().await.unwrap();
        let numbers: Vec<_> = batch.items.iter().map(|item| (item.event.number, item.previous)).collect();
        let previous = [Previous::None, Previous::Number(1), Previous::Number(2), Previous::Number(3)];
        assert_eq!(numbers, (1..=4).zip(previous).collect::<Vec<_>>());
        assert_eq!(batch.lost, BTreeMap::from([((session, 0), 7), ((session, 1), 8)]));
        assert_eq!(queue.queued().0, 4, "events that are being written count");
        queue.finish(&batch, &[]);
        assert_eq!(queue.queued(), (0, 0));
        assert!(queue.flushed().await);
    }

    #[tokio::test]
    async fn tracked_streams_are_bounded() {
        let queue = queue();
        for _ in 0..4 {
            queue.append(id(), 0, event(1));
        }
        for _ in 0..3 {
            queue.append(id(), 0, event(1));
        }
        assert!(!queue.state().invalidates_all);
        queue.append(id(), 0, event(1));
        let batch = queue.next().await.unwrap();
        assert!(batch.invalidates_all && batch.lost.is_empty());
        assert_eq!(queue.state().last_numbers.len(), 3);
        queue.finish(&batch, &[]);
        for _ in 0..4 {
            queue.forget(id());
        }
        let batch = queue.next().await.unwrap();
        assert!(batch.invalidates_all && batch.forgotten.is_empty());
        queue.finish(&batch, &[]);
        queue.append(id(), 0, event(9));
        assert_eq!(queue.next().await.unwrap().items[0].previous, Previous::Evicted);
    }

    #[tokio::test]
    async fn sessions_are_removed_before_later_events() {
        let (queue, session, other) = (queue(), id(), id());
        queue.append(session, 0, event(1));
        queue.append(other, 0, event(1));
        queue.forget(session);
        queue.append(session, 0, event(2));
        let batch = queue.next().await.unwrap();
        let items: Vec<_> = batch.items.iter().map(|item| (item.session, item.event.number, item.previous)).collect();
        assert_eq!(items, [(other, 1, Previous::None), (session, 2, Previous::None)]);
        assert_eq!(batch.forgotten, BTreeSet::from([session]));
        queue.finish(&batch, &[1]);
        assert_eq!((queue.queued(), queue.dropped().count()), ((0, 0), 1));
        let flushed = tokio::time::timeout(Duration::from_millis(10), queue.flushed());
        assert!(flushed.await.is_err(), "the loss is not recorded yet");
        let batch = queue.next().await.unwrap();
        assert_eq!(batch.lost, BTreeMap::from([((session, 0), 2)]));
        queue.finish(&batch, &[]);
        assert!(queue.flushed().await);
    }

    #[tokio::test]
    async fn flushing_fails_without_a_writer() {
        let queue = queue();
        queue.append(id(), 0, event(1));
        let (flushed, ()) = tokio::join!(queue.flushed(), async { queue.close() });
        assert!(!flushed);
    }
}
