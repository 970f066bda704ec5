//! Which sessions there are, and in which order they have become idle.

use std::collections::HashMap;
use std::sync::Arc;

use mcp_kernel::server::Principal;
use tokio::time::Instant;

use crate::manager::EndedSession;
use crate::slab::{Link, List, Slab};
use crate::{EndReason, SessionId, SessionMetrics, SessionOptions};

/// All sessions.
///
/// *Invariant:* a session is in an order of idle ones if and only if nobody has a lease of it. Orders are by the time
/// at which the last lease was given back, so whoever is first in one has to end first.
pub(crate) struct Table<T> {
    sessions: Slab<Session<T>>,
    by_id: HashMap<SessionId, u32>,
    by_owner: HashMap<Principal, Owned>,
    used: List,
    unused: List,
    /// All that are idle.
    idle: Amount,
    /// Those of them that were never used.
    idle_unused: Amount,
    /// How many bytes all sessions keep, as far as is known.
    bytes: usize,
    serial: u64,
    /// Counters; how many there are is not among them.
    pub(crate) counted: SessionMetrics,
    /// Sessions that ended, of which the one who made them end has not heard.
    pub(crate) unseen: Vec<EndedSession<T>>,
    pub(crate) is_closed: bool,
    /// How many had to end since there are too many, and whether some did since the last sweep.
    pub(crate) pruned: (u64, bool),
}

/// How many sessions, and how many bytes they keep.
#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    count: usize,
    bytes: usize,
}

impl Amount {
    fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, bytes: usize) {
        self.count -= 1;
        self.bytes -= bytes;
    }
}

struct Session<T> {
    id: SessionId,
    value: Arc<T>,
    owner: Option<Principal>,
    /// Since when it is idle, if it is.
    since: Instant,
    /// Tells it from others that had the same place.
    serial: u64,
    leases: u32,
    is_used: bool,
    /// How much it keeps, as of when it was last given back.
    bytes: usize,
    /// Among all that are idle, and were used or not.
    in_all: Link,
    /// Among the idle ones of its owner.
    in_own: Link,
}

/// What a principal has.
struct Owned {
    live: usize,
    idle: List,
}

/// Where a session is, for whoever has a lease of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    place: u32,
    serial: u64,
}

impl<T> Table<T> {
    pub(crate) fn new() -> Self {
        Self {
            sessions: Slab::new(),
            by_id: HashMap::new(),
            by_owner: HashMap::new(),
            used: List::EMPTY,
            unused: List::EMPTY,
            idle: Amount::default(),
            idle_unused: Amount::default(),
            bytes: 0,
            serial: 0,
            counted: SessionMetrics::default(),
            unseen: Vec::new(),
            is_closed: false,
            pruned: (0, false),
        }
    }

    pub(crate) fn metrics(&self) -> SessionMetrics {
        let (live, Amount { count: idle, bytes: idle_bytes }) = (self.by_id.len(), self.idle);
        SessionMetrics { live, idle, idle_bytes, active: live - idle, ..self.counted }
    }

    /// Finds a session: where it is, and whose.
    pub(crate) fn find(&self, id: &SessionId) -> Option<(Place, Option<&Principal>)> {
        let place = *self.by_id.get(id)?;
        let session = self.sessions.get(place)?;
        Some((Place { place, serial: session.serial }, session.owner.as_ref()))
    }

    pub(crate) fn has(&self, place: Place) -> bool {
        self.sessions.get(place.place).is_some_and(|session| session.serial == place.serial)
    }

    /// Whether all sessions together are within the limits, so that they are if some become idle.
    pub(crate) fn is_within(&self, options: &SessionOptions) -> bool {
        self.by_id.len() <= options.idle_limit && self.bytes <= options.idle_bytes_limit
    }

    /// Adds a session with one lease. There is none with this id, and its owner has [taken](Self::take_room) the room.
    pub(crate) fn insert(
        &mut self,
        id: SessionId,
        owner: Option<Principal>,
        value: Arc<T>,
        bytes: usize,
        is_used: bool,
    ) -> Place {
        let (serial, since) = (self.serial, Instant::now());
        self.serial += 1;
        let (in_all, in_own) = (Link::LOOSE, Link::LOOSE);
        let session = Session { id, value, owner, since, serial, leases: 1, is_used, bytes, in_all, in_own };
        self.bytes += bytes;
        let place = self.sessions.insert(session);
        self.by_id.insert(id, place);
        Place { place, serial }
    }

    /// Adds a lease of a session that is there.
    pub(crate) fn lease(&mut self, place: Place) -> Option<Arc<T>> {
        let session = self.sessions.get_mut(place.place).filter(|session| session.serial == place.serial)?;
        session.leases += 1;
        let (value, is_first) = (Arc::clone(&session.value), session.leases == 1);
        if is_first {
            self.unlink(place.place);
        }
        Some(value)
    }

    /// Adds a lease of each session that has one.
    pub(crate) fn lease_active(&mut self) -> Vec<(SessionId, Place, Arc<T>)> {
        let mut leases = Vec::new();
        for place in self.sessions.taken() {
            if let Some(session) = self.sessions.get_mut(place).filter(|session| session.leases > 0) {
                session.leases += 1;
                leases.push((session.id, Place { place, serial: session.serial }, Arc::clone(&session.value)));
            }
        }
        leases
    }

    /// Notes that a session is used after its handshake.
    pub(crate) fn set_used(&mut self, place: Place) {
        if let Some(session) = self.sessions.get_mut(place.place)
            && session.leases > 0
        {
            session.is_used = true;
        }
    }

    /// Takes a lease back of a session that keeps so many bytes, if it is still there.
    pub(crate) fn give_back(&mut self, place: Place, bytes: usize) {
        let Some(session) = self.sessions.get_mut(place.place).filter(|session| session.serial == place.serial) else {
            return;
        };
        session.leases -= 1;
        self.bytes = self.bytes - session.bytes + bytes;
        session.bytes = bytes;
        if session.leases > 0 {
            return;
        }
        session.since = Instant::now();
        let list = if session.is_used { &mut self.used } else { &mut self.unused };
        self.idle.add(bytes);
        if !session.is_used {
            self.idle_unused.add(bytes);
        }
        let owned = session.owner.as_ref().and_then(|owner| self.by_owner.get_mut(owner));
        list.push(&mut self.sessions, place.place, |session| &mut session.in_all);
        if let Some(owned) = owned {
            owned.idle.push(&mut self.sessions, place.place, |session| &mut session.in_own);
        }
    }

    /// Takes a session out of the orders of idle ones.
    fn unlink(&mut self, place: u32) {
        let Some(session) = self.sessions.get(place) else { return };
        let list = if session.is_used { &mut self.used } else { &mut self.unused };
        self.idle.remove(session.bytes);
        if !session.is_used {
            self.idle_unused.remove(session.bytes);
        }
        let owned = session.owner.as_ref().and_then(|owner| self.by_owner.get_mut(owner));
        list.remove(&mut self.sessions, place, |session| &mut session.in_all);
        if let Some(owned) = owned {
            owned.idle.remove(&mut self.sessions, place, |session| &mut session.in_own);
        }
    }

    /// Ends a session, whoever uses it.
    pub(crate) fn end(&mut self, place: Place, reason: EndReason) -> Option<EndedSession<T>> {
        if !self.has(place) {
            return None;
        }
        self.end_at(place.place, reason)
    }

    fn end_at(&mut self, place: u32, reason: EndReason) -> Option<EndedSession<T>> {
        if self.sessions.get(place)?.leases == 0 {
            self.unlink(place);
        }
        let Session { id, value, owner, bytes, .. } = self.sessions.remove(place)?;
        self.bytes -= bytes;
        self.by_id.remove(&id);
        if let Some(owner) = &owner {
            self.give_room(owner);
        }
        self.counted.count_ended(reason);
        Some(EndedSession { id, value, reason })
    }

    /// Makes room for one more session of a principal. If it has as many as it may, its oldest idle one ends.
    ///
    /// Fails if none of them is idle.
    pub(crate) fn take_room(&mut self, owner: &Principal, limit: usize) -> Result<Option<EndedSession<T>>, Full> {
        let Some(owned) = self.by_owner.get_mut(owner) else {
            if limit == 0 {
                return Err(Full);
            }
            self.by_owner.insert(owner.clone(), Owned { live: 1, idle: List::EMPTY });
            return Ok(None);
        };
        // One more first, so that what is known of the principal does not go with its last session.
        owned.live += 1;
        if owned.live <= limit {
            return Ok(None);
        }
        match owned.idle.oldest() {
            Some(oldest) => Ok(self.end_at(oldest, EndReason::Evicted)),
            None => {
                owned.live -= 1;
                Err(Full)
            }
        }
    }

    /// Gives room back that a session of a principal had, or was to have.
    pub(crate) fn give_room(&mut self, owner: &Principal) {
        if let Some(owned) = self.by_owner.get_mut(owner) {
            owned.live -= 1;
            if owned.live == 0 {
                self.by_owner.remove(owner);
            }
        }
    }

    /// Ends idle sessions until there are only as many, with as many bytes, as there may be; returns whether this has just
    /// begun to be necessary.
    ///
    /// Those that were never used go first: clients that only shake hands, however often, do not end what others use.
    /// But within a tenth of the room, or the room of one, the oldest goes first, whatever it is: or else where all are
    /// used, new sessions would end before they can be.
    // RB-53
    pub(crate) fn prune(&mut self, options: &SessionOptions, ended: &mut Vec<EndedSession<T>>) -> bool {
        let before = self.pruned.0;
        loop {
            let is_flood = if self.idle.count > options.idle_limit {
                self.idle_unused.count > (options.idle_limit / 10).max(1)
            } else if self.idle.bytes > options.idle_bytes_limit {
                self.idle_unused.bytes > options.idle_bytes_limit / 10
            } else {
                break;
            };
            let since =
                |list: List| list.oldest().and_then(|place| self.sessions.get(place)).map(|oldest| oldest.since);
            let list = match (since(self.used), since(self.unused)) {
                (_, Some(_)) if is_flood => self.unused,
                (Some(used), Some(unused)) if unused <= used => self.unused,
                (Some(_), _) => self.used,
                (None, _) => self.unused,
            };
            let Some(oldest) = list.oldest() else { break };
            ended.extend(self.end_at(oldest, EndReason::Evicted));
            self.pruned = (self.pruned.0 + 1, true);
        }
        before == 0 && self.pruned.0 > 0
    }

    /// Ends all whose time is over.
    pub(crate) fn expire(&mut self, now: Instant, options: &SessionOptions, ended: &mut Vec<EndedSession<T>>) {
        while let Some(place) = self.unused.oldest()
            && self.deadline(self.unused, options).is_some_and(|deadline| deadline <= now)
        {
            ended.extend(self.end_at(place, EndReason::NeverUsed));
        }
        while let Some(place) = self.used.oldest()
            && self.deadline(self.used, options).is_some_and(|deadline| deadline <= now)
        {
            ended.extend(self.end_at(place, EndReason::Idle));
        }
        shrink(&mut self.by_id);
        shrink(&mut self.by_owner);
    }

    /// When the first of an order has to end.
    fn deadline(&self, list: List, options: &SessionOptions) -> Option<Instant> {
        let oldest = self.sessions.get(list.oldest()?)?;
        oldest.since.checked_add(options.idle_timeout?)
    }

    /// When the first session has to end, as far as is known.
    pub(crate) fn first_deadline(&self, options: &SessionOptions) -> Option<Instant> {
        [self.used, self.unused].into_iter().filter_map(|list| self.deadline(list, options)).min()
    }

    /// Ends all.
    pub(crate) fn clear(&mut self, reason: EndReason) -> Vec<EndedSession<T>> {
        let all = self.sessions.taken();
        let ended = all.into_iter().filter_map(|place| self.end_at(place, reason)).collect();
        shrink(&mut self.by_id);
        shrink(&mut self.by_owner);
        ended
    }
}

/// Gives memory back when most of it is not needed any more; what it costs was paid by those who left.
fn shrink<K: Eq + std::hash::Hash, V>(map: &mut HashMap<K, V>) {
    if map.capacity() / 4 > map.len() + 16 {
        map.shrink_to(map.len() * 2);
    }
}

/// All that a principal may have are in use.
#[derive(Debug)]
pub(crate) struct Full;
