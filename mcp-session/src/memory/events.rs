//! Events in memory.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use mcp_kernel::observe::MetricSource;
use tokio::time::Instant;

use super::event_limits::{EventUsage, MemoryEventLimits};
use crate::id_map::IdMap;
use crate::slab::{Link, List, Slab, shrink};
use crate::{DroppedEvents, EventStore, Replay, SessionId, StoreError, StoredEvent};

/// An [`EventStore`] in memory. Clones share the events.
///
/// Appending takes constant time. A session without events takes no memory.
#[derive(Clone, Default)]
pub struct MemoryEventStore(Arc<Shared>);

#[derive(Default)]
struct Shared {
    limits: MemoryEventLimits,
    log: Mutex<Log>,
}

/// All events in the order of their arrival: in total, by session, and by stream.
struct Log {
    events: Slab<Event>,
    sessions: IdMap<SessionId, Session>,
    all: List,
    usage: EventUsage,
    dropped: DroppedEvents,
    /// The sessions that ended last, whose events are refused.
    ended: VecDeque<SessionId>,
}

struct Event {
    session: SessionId,
    stream: u64,
    number: u64,
    message: Bytes,
    at: Instant,
    in_all: Link,
    in_session: Link,
    in_stream: Link,
}

struct Session {
    streams: IdMap<u64, Stream>,
    order: List,
    events: usize,
    bytes: usize,
}

struct Stream {
    order: List,
    /// Events up to this number were evicted, or are unknown.
    lost: Option<u64>,
}

impl MemoryEventStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new(limits: MemoryEventLimits) -> Self {
        Self(Arc::new(Shared { limits, log: Mutex::default() }))
    }

    /// Returns the current usage.
    #[must_use]
    pub fn usage(&self) -> EventUsage {
        let log = self.0.log();
        EventUsage { sessions: log.sessions.len(), dropped: log.dropped.count(), ..log.usage }
    }
}

impl fmt::Debug for MemoryEventStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryEventStore").field(&self.usage()).finish()
    }
}

#[async_trait]
impl EventStore for MemoryEventStore {
    fn append(&self, session: SessionId, stream: u64, event: StoredEvent) {
        self.0.log().append(session, stream, event, Instant::now(), &self.0.limits);
    }

    async fn replay(&self, session: SessionId, stream: u64, after: u64) -> Result<Replay, StoreError> {
        let mut log = self.0.log();
        log.expire(Instant::now(), &self.0.limits);
        Ok(log.replay(session, stream, after).unwrap_or_default())
    }

    fn forget(&self, session: SessionId) {
        let mut log = self.0.log();
        log.forget(session);
        log.end(session);
    }

    fn metrics(&self) -> Option<Arc<dyn MetricSource>> {
        Some(self.0.log().dropped.source())
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Log {
    fn default() -> Self {
        let (usage, dropped) = (EventUsage::default(), DroppedEvents::default());
        Self {
            events: Slab::new(),
            sessions: IdMap::default(),
            all: List::EMPTY,
            usage,
            dropped,
            ended: VecDeque::new(),
        }
    }
}

impl Log {
    fn append(&mut self, id: SessionId, stream: u64, event: StoredEvent, now: Instant, limits: &MemoryEventLimits) {
        self.expire(now, limits);
        if self.ended.contains(&id) {
            self.usage.lost += 1;
            return;
        }
        let StoredEvent { number, message } = event;
        let size = size(&message);
        let session = self.sessions.entry(id).or_default();
        // The events before the first may have been evicted.
        let new = || Stream { order: List::EMPTY, lost: number.checked_sub(1) };
        let known = session.streams.entry(stream).or_insert_with(new);
        let last = known.order.youngest().and_then(|slot| self.events.get(slot)).map(|event| event.number);
        if last.max(known.lost).is_some_and(|last| number <= last) {
            self.usage.lost += 1;
            return;
        }
        if size > limits.max_session_bytes.min(limits.max_bytes) || limits.max_session_events == 0 {
            self.usage.lost += 1;
            known.lost = Some(number);
            self.remove_if_empty(id, stream);
            return;
        }
        let (in_all, in_session, in_stream) = (Link::UNLINKED, Link::UNLINKED, Link::UNLINKED);
        let event = Event { session: id, stream, number, message, at: now, in_all, in_session, in_stream };
        let slot = self.events.insert(event);
        self.all.push(&mut self.events, slot, |event| &mut event.in_all);
        session.order.push(&mut self.events, slot, |event| &mut event.in_session);
        known.order.push(&mut self.events, slot, |event| &mut event.in_stream);
        session.events += 1;
        session.bytes += size;
        self.usage.events += 1;
        self.usage.bytes += size;
        let is_over =
            |session: &Session| session.events > limits.max_session_events || session.bytes > limits.max_session_bytes;
        let mut oldest = session.order.oldest().filter(|_| is_over(session));
        while let Some(slot) = oldest {
            self.drop_event(slot);
            let session = self.sessions.get(&id).filter(|session| is_over(session));
            oldest = session.and_then(|session| session.order.oldest());
        }
        while self.usage.bytes > limits.max_bytes
            && let Some(oldest) = self.all.oldest()
        {
            self.drop_event(oldest);
        }
    }

    fn replay(&self, session: SessionId, stream: u64, after: u64) -> Option<Replay> {
        let stream = self.sessions.get(&session)?.streams.get(&stream)?;
        let is_whole = stream.lost.is_none_or(|lost| lost <= after);
        let (mut events, mut next) = (Vec::new(), stream.order.oldest());
        while let Some(event) = next.and_then(|slot| self.events.get(slot)) {
            if event.number > after {
                events.push(StoredEvent { number: event.number, message: event.message.clone() });
            }
            next = event.in_stream.younger();
        }
        Some(Replay { events, is_whole })
    }

    fn forget(&mut self, session: SessionId) {
        let Some(Session { order, .. }) = self.sessions.remove(&session) else { return };
        let mut next = order.oldest();
        while let Some(slot) = next {
            next = self.events.get(slot).and_then(|event| event.in_session.younger());
            self.all.remove(&mut self.events, slot, |event| &mut event.in_all);
            if let Some(event) = self.events.remove(slot) {
                self.usage.events -= 1;
                self.usage.bytes -= size(&event.message);
            }
        }
        shrink(&mut self.sessions);
    }

    /// Records that a session has ended. Late events of it arrive soon, so the last sessions are enough.
    fn end(&mut self, session: SessionId) {
        if self.ended.contains(&session) {
            return;
        }
        if self.ended.len() >= MAX_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(session);
    }

    fn expire(&mut self, now: Instant, limits: &MemoryEventLimits) {
        while let Some(oldest) = self.all.oldest()
            && let Some(event) = self.events.get(oldest)
            && event.at.checked_add(limits.max_age).is_some_and(|end| end <= now)
        {
            self.drop_event(oldest);
        }
    }

    /// Drops an event that is the oldest of its stream, and the stream with its last one.
    fn drop_event(&mut self, slot: u32) {
        self.all.remove(&mut self.events, slot, |event| &mut event.in_all);
        let Some(event) = self.events.get(slot) else { return };
        let (id, number, size) = (event.stream, event.number, size(&event.message));
        let session_id = event.session;
        self.dropped.add_one();
        self.usage.events -= 1;
        self.usage.bytes -= size;
        if let Some(session) = self.sessions.get_mut(&session_id) {
            session.events -= 1;
            session.bytes -= size;
            session.order.remove(&mut self.events, slot, |event| &mut event.in_session);
            if let Some(stream) = session.streams.get_mut(&id) {
                stream.order.remove(&mut self.events, slot, |event| &mut event.in_stream);
                stream.lost = stream.lost.max(Some(number));
            }
            self.remove_if_empty(session_id, id);
        }
        self.events.remove(slot);
    }

    /// Removes a stream without events, and a session without streams.
    fn remove_if_empty(&mut self, id: SessionId, stream: u64) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.streams.get(&stream).is_some_and(|stream| stream.order.oldest().is_none()) {
            session.streams.remove(&stream);
        }
        if session.streams.is_empty() {
            self.sessions.remove(&id);
            shrink(&mut self.sessions);
        }
    }
}

/// The number of ended sessions that are remembered.
const MAX_ENDED: usize = 32;

impl Default for Session {
    fn default() -> Self {
        Self { streams: IdMap::default(), order: List::EMPTY, events: 0, bytes: 0 }
    }
}

fn size(message: &Bytes) -> usize {
    message.len().saturating_add(MemoryEventLimits::EVENT_OVERHEAD)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store_tests::check_event_store;

    fn session() -> SessionId {
        SessionId::random().unwrap()
    }

    fn event(number: u64, length: usize) -> StoredEvent {
        StoredEvent { number, message: vec![b'x'; length].into() }
    }

    /// The numbers of the stored events, if none is missing.
    async fn numbers(store: &MemoryEventStore, session: SessionId, stream: u64, after: u64) -> Option<Vec<u64>> {
        let is_whole = store.replay(session, stream, after).await.unwrap().is_whole;
        let numbers = rest(store, session, stream, after).await;
        is_whole.then_some(numbers)
    }

    async fn rest(store: &MemoryEventStore, session: SessionId, stream: u64, after: u64) -> Vec<u64> {
        let found = store.replay(session, stream, after).await.unwrap();
        found.events.into_iter().map(|event| event.number).collect()
    }

    /// It passes the tests for all event stores.
    // covers: S4.117, RB-54
    #[tokio::test(start_paused = true)]
    async fn events_are_kept() {
        check_event_store(async || MemoryEventStore::default()).await;
    }

    /// A session has a maximum of events; a replay that misses some returns the rest.
    // covers: S4.117, RB-55
    #[tokio::test(start_paused = true)]
    async fn events_of_a_session_are_bounded() {
        let store = MemoryEventStore::new(MemoryEventLimits::default().max_session_events(3));
        let (mine, yours) = (session(), session());
        store.append(yours, 1, event(1, 1));
        for number in 1..=5 {
            store.append(mine, 1, event(number, 1));
        }
        assert_eq!(numbers(&store, mine, 1, 1).await, None);
        assert_eq!(rest(&store, mine, 1, 1).await, [3, 4, 5]);
        assert_eq!(numbers(&store, mine, 1, 2).await, Some(vec![3, 4, 5]));
        assert_eq!(numbers(&store, mine, 1, 4).await, Some(vec![5]));
        assert_eq!(numbers(&store, yours, 1, 0).await, Some(vec![1]), "other sessions are not affected");
        for number in 1..=3 {
            store.append(mine, 2, event(number, 1));
        }
        assert_eq!(numbers(&store, mine, 1, 5).await, None, "the stream was evicted");
        store.append(mine, 1, event(9, 1));
        assert_eq!(numbers(&store, mine, 1, 5).await, None, "earlier events may be missing");
        assert_eq!(numbers(&store, mine, 1, 8).await, Some(vec![9]));
        store.append(mine, 1, event(9, 1));
        assert_eq!(numbers(&store, mine, 1, 8).await, Some(vec![9]), "numbers grow");
        store.append(mine, 3, event(5, 1));
        assert_eq!(numbers(&store, mine, 3, 4).await, Some(vec![5]), "a new stream may begin with any number");
        assert_eq!((store.usage().lost, store.usage().events), (1, 4));
    }

    /// Bytes are bounded for a session, and for all of them; the oldest events are evicted first.
    // covers: S4.117, RB-55
    #[tokio::test(start_paused = true)]
    async fn bytes_are_bounded() {
        let kib = 1024 - MemoryEventLimits::EVENT_OVERHEAD;
        let store = MemoryEventStore::new(MemoryEventLimits::default().max_session_bytes(4096).max_bytes(8192));
        let sessions = [session(), session(), session()];
        for number in 1..=5 {
            for session in sessions {
                store.append(session, 1, event(number, kib));
                assert!(store.usage().bytes <= 8192);
            }
        }
        let usage = store.usage();
        assert_eq!((usage.events, usage.bytes, usage.dropped, usage.sessions), (8, 8192, 7, 3));
        assert_eq!(numbers(&store, sessions[0], 1, 2).await, None);
        assert_eq!(numbers(&store, sessions[0], 1, 3).await, Some(vec![4, 5]));
        assert_eq!(numbers(&store, sessions[2], 1, 2).await, Some(vec![3, 4, 5]));
        store.append(sessions[2], 2, event(1, 10));
        store.append(sessions[2], 1, event(6, 5000));
        assert_eq!(numbers(&store, sessions[2], 1, 5).await, None, "too large for any session");
        assert_eq!(rest(&store, sessions[2], 1, 2).await, [3, 4, 5], "earlier events stay");
        assert_eq!(numbers(&store, sessions[2], 2, 0).await, Some(vec![1]), "other streams are not affected");
        store.append(sessions[2], 1, event(7, 10));
        assert_eq!(numbers(&store, sessions[2], 1, 5).await, None);
        assert_eq!(numbers(&store, sessions[2], 1, 6).await, Some(vec![7]));
        sessions.into_iter().for_each(|session| store.forget(session));
        let EventUsage { events, bytes, sessions, lost, .. } = store.usage();
        assert_eq!((events, bytes, sessions, lost), (0, 0, 0, 1));
        assert!(store.0.log().all.oldest().is_none());
    }

    /// Events expire.
    // covers: S4.98, S4.117, RB-55
    #[tokio::test(start_paused = true)]
    async fn events_expire() {
        let (store, mine) = (MemoryEventStore::default(), session());
        store.append(mine, 1, event(1, 1));
        tokio::time::advance(Duration::from_secs(20 * 60)).await;
        store.append(mine, 1, event(2, 1));
        assert_eq!(numbers(&store, mine, 1, 0).await, Some(vec![1, 2]));
        tokio::time::advance(Duration::from_secs(10 * 60)).await;
        assert_eq!(numbers(&store, mine, 1, 0).await, None);
        assert_eq!(numbers(&store, mine, 1, 1).await, Some(vec![2]));
        tokio::time::advance(Duration::from_secs(20 * 60)).await;
        assert_eq!(numbers(&store, mine, 1, 1).await, None);
        let usage = store.usage();
        assert_eq!(
            (usage.events, usage.bytes, usage.sessions, usage.dropped),
            (0, 0, 0, 2),
            "the session is removed, too"
        );
    }
}
