//! Events in memory.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::time::Instant;

use crate::slab::{Link, List, Slab};
use crate::{EventStore, Replay, SessionId, StoreError, StoredEvent};

/// The limits of [`MemoryEventStore`]. The oldest events are evicted first.
///
/// | setting | default | a greater value |
/// |---|---|---|
/// | [`max_session_events`](Self::max_session_events) | 1,024 | lets a client miss more |
/// | [`max_session_bytes`](Self::max_session_bytes) | 1 MiB | lets a client miss more, and one session take more of the whole |
/// | [`max_bytes`](Self::max_bytes) | 64 MiB | takes more memory |
/// | [`max_age`](Self::max_age) | 30 min | lets a client be away for longer |
#[derive(Clone, Debug)]
pub struct MemoryEventLimits {
    max_session_events: usize,
    max_session_bytes: usize,
    max_bytes: usize,
    max_age: Duration,
}

impl Default for MemoryEventLimits {
    fn default() -> Self {
        Self {
            max_session_events: 1024,
            max_session_bytes: 1024 * 1024,
            max_bytes: 64 * 1024 * 1024,
            max_age: Duration::from_secs(30 * 60),
        }
    }
}

impl MemoryEventLimits {
    /// Sets the maximum number of events of one session.
    #[must_use]
    pub fn max_session_events(mut self, count: usize) -> Self {
        self.max_session_events = count;
        self
    }

    /// Sets the maximum number of bytes in the events of one session. An event counts as its message and
    /// [`EVENT_OVERHEAD`](Self::EVENT_OVERHEAD).
    #[must_use]
    pub fn max_session_bytes(mut self, bytes: usize) -> Self {
        self.max_session_bytes = bytes;
        self
    }

    /// Sets the maximum number of bytes in all events.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the maximum age of an event.
    #[must_use]
    pub fn max_age(mut self, time: Duration) -> Self {
        self.max_age = time;
        self
    }

    /// The bytes that an event counts beside its message, which also limits the number of small events.
    pub const EVENT_OVERHEAD: usize = 160;
}

/// The usage of [`MemoryEventStore`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventUsage {
    /// The number of events.
    pub events: usize,
    /// The number of bytes in them.
    pub bytes: usize,
    /// The number of sessions with events.
    pub sessions: usize,
    /// The number of events that were evicted because of a limit.
    pub dropped: u64,
    /// The number of events that were refused because they were too large or out of order.
    pub lost: u64,
}

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
    sessions: HashMap<SessionId, Session>,
    all: List,
    usage: EventUsage,
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
    streams: HashMap<u64, Stream>,
    order: List,
    events: usize,
    bytes: usize,
}

struct Stream {
    order: List,
    /// Events up to this number were evicted, or are unknown.
    gone: Option<u64>,
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
        EventUsage { sessions: log.sessions.len(), ..log.usage }
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
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Log {
    fn default() -> Self {
        let usage = EventUsage::default();
        Self { events: Slab::new(), sessions: HashMap::new(), all: List::EMPTY, usage, ended: VecDeque::new() }
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
        // It may have been there before.
        let new = || Stream { order: List::EMPTY, gone: number.checked_sub(1) };
        let known = session.streams.entry(stream).or_insert_with(new);
        let last = known.order.youngest().and_then(|place| self.events.get(place)).map(|event| event.number);
        if last.max(known.gone).is_some_and(|last| number <= last) {
            self.usage.lost += 1;
            return;
        }
        if size > limits.max_session_bytes.min(limits.max_bytes) || limits.max_session_events == 0 {
            self.usage.lost += 1;
            known.gone = Some(number);
            self.forget_if_empty(id, stream);
            return;
        }
        let (in_all, in_session, in_stream) = (Link::LOOSE, Link::LOOSE, Link::LOOSE);
        let event = Event { session: id, stream, number, message, at: now, in_all, in_session, in_stream };
        let place = self.events.insert(event);
        self.all.push(&mut self.events, place, |event| &mut event.in_all);
        session.order.push(&mut self.events, place, |event| &mut event.in_session);
        known.order.push(&mut self.events, place, |event| &mut event.in_stream);
        session.events += 1;
        session.bytes += size;
        self.usage.events += 1;
        self.usage.bytes += size;
        while let Some(session) = self.sessions.get(&id)
            && (session.events > limits.max_session_events || session.bytes > limits.max_session_bytes)
            && let Some(oldest) = session.order.oldest()
        {
            self.drop_event(oldest);
        }
        while self.usage.bytes > limits.max_bytes
            && let Some(oldest) = self.all.oldest()
        {
            self.drop_event(oldest);
        }
    }

    fn replay(&self, session: SessionId, stream: u64, after: u64) -> Option<Replay> {
        let stream = self.sessions.get(&session)?.streams.get(&stream)?;
        let is_whole = stream.gone.is_none_or(|gone| gone <= after);
        let (mut events, mut next) = (Vec::new(), stream.order.oldest());
        while let Some(event) = next.and_then(|place| self.events.get(place)) {
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
        while let Some(place) = next {
            next = self.events.get(place).and_then(|event| event.in_session.younger());
            self.all.remove(&mut self.events, place, |event| &mut event.in_all);
            if let Some(event) = self.events.remove(place) {
                self.usage.events -= 1;
                self.usage.bytes -= size(&event.message);
            }
        }
        self.shrink();
    }

    /// Notes that a session has ended. Others hear of that soon, so that the last ones are enough.
    fn end(&mut self, session: SessionId) {
        if self.ended.contains(&session) {
            return;
        }
        if self.ended.len() >= MOST_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(session);
    }

    fn shrink(&mut self) {
        if self.sessions.capacity() / 4 > self.sessions.len() + 16 {
            self.sessions.shrink_to(self.sessions.len() * 2);
        }
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
    fn drop_event(&mut self, place: u32) {
        self.all.remove(&mut self.events, place, |event| &mut event.in_all);
        let Some(event) = self.events.get(place) else { return };
        let (id, number, size) = (event.stream, event.number, size(&event.message));
        let session_id = event.session;
        self.usage.dropped += 1;
        self.usage.events -= 1;
        self.usage.bytes -= size;
        if let Some(session) = self.sessions.get_mut(&session_id) {
            session.events -= 1;
            session.bytes -= size;
            session.order.remove(&mut self.events, place, |event| &mut event.in_session);
            if let Some(stream) = session.streams.get_mut(&id) {
                stream.order.remove(&mut self.events, place, |event| &mut event.in_stream);
                stream.gone = stream.gone.max(Some(number));
            }
            self.forget_if_empty(session_id, id);
        }
        self.events.remove(place);
    }

    /// Forgets a stream without events, and a session without streams.
    fn forget_if_empty(&mut self, id: SessionId, stream: u64) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if session.streams.get(&stream).is_some_and(|stream| stream.order.oldest().is_none()) {
            session.streams.remove(&stream);
        }
        if session.streams.is_empty() {
            self.sessions.remove(&id);
            self.shrink();
        }
    }
}

/// The number of ended sessions that are remembered.
const MOST_ENDED: usize = 32;

impl Default for Session {
    fn default() -> Self {
        Self { streams: HashMap::new(), order: List::EMPTY, events: 0, bytes: 0 }
    }
}

fn size(message: &Bytes) -> usize {
    message.len().saturating_add(MemoryEventLimits::EVENT_OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store_tests::check_event_store;

    fn session() -> SessionId {
        SessionId::random().unwrap()
    }

    fn event(number: u64, length: usize) -> StoredEvent {
        StoredEvent { number, message: vec![b'x'; length].into() }
    }

    /// What is left, if that is all.
    async fn numbers(store: &MemoryEventStore, session: SessionId, stream: u64, after: u64) -> Option<Vec<u64>> {
        let is_whole = store.replay(session, stream, after).await.unwrap().is_whole;
        let numbers = rest(store, session, stream, after).await;
        is_whole.then_some(numbers)
    }

    async fn rest(store: &MemoryEventStore, session: SessionId, stream: u64, after: u64) -> Vec<u64> {
        let found = store.replay(session, stream, after).await.unwrap();
        found.events.into_iter().map(|event| event.number).collect()
    }

    /// What every store of events does.
    // covers: S4.117, RB-54
    #[tokio::test(start_paused = true)]
    async fn events_are_kept() {
        check_event_store(async || MemoryEventStore::default()).await;
    }

    /// A session keeps so many events, and who asks for one that is gone gets the rest.
    // covers: S4.117, RB-55
    #[tokio::test(start_paused = true)]
    async fn sessions_keep_so_many() {
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
        assert_eq!(numbers(&store, yours, 1, 0).await, Some(vec![1]), "others keep theirs");
        for number in 1..=3 {
            store.append(mine, 2, event(number, 1));
        }
        assert_eq!(numbers(&store, mine, 1, 5).await, None, "nothing is known about it any more");
        store.append(mine, 1, event(9, 1));
        assert_eq!(numbers(&store, mine, 1, 5).await, None, "something may have been there");
        assert_eq!(numbers(&store, mine, 1, 8).await, Some(vec![9]));
        store.append(mine, 1, event(9, 1));
        assert_eq!(numbers(&store, mine, 1, 8).await, Some(vec![9]), "numbers grow");
        store.append(mine, 3, event(5, 1));
        assert_eq!(numbers(&store, mine, 3, 4).await, Some(vec![5]), "a new stream may begin anywhere");
        assert_eq!((store.usage().lost, store.usage().events), (1, 4));
    }

    /// Bytes are bounded for a session, and for all of them; the oldest goes first.
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
        assert_eq!(rest(&store, sessions[2], 1, 2).await, [3, 4, 5], "what came before it stays");
        assert_eq!(numbers(&store, sessions[2], 2, 0).await, Some(vec![1]), "which harms no other stream");
        store.append(sessions[2], 1, event(7, 10));
        assert_eq!(numbers(&store, sessions[2], 1, 5).await, None);
        assert_eq!(numbers(&store, sessions[2], 1, 6).await, Some(vec![7]));
        sessions.into_iter().for_each(|session| store.forget(session));
        let EventUsage { events, bytes, sessions, lost, .. } = store.usage();
        assert_eq!((events, bytes, sessions, lost), (0, 0, 0, 1));
        assert!(store.0.log().all.oldest().is_none());
    }

    /// What is too old is gone.
    // covers: S4.98, S4.117, RB-55
    #[tokio::test(start_paused = true)]
    async fn events_grow_old() {
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
        assert_eq!((usage.events, usage.bytes, usage.sessions, usage.dropped), (0, 0, 0, 2), "nor is the session");
    }
}
