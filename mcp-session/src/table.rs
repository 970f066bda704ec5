//! The table of sessions, with the order in which they became idle.

use std::collections::HashMap;
use std::sync::Arc;

use mcp_kernel::server::Principal;
use tokio::time::Instant;

use crate::deadlines::Deadlines;
use crate::live_metrics::{LiveMetrics, OwnedMetrics};
use crate::manager::EndedSession;
use crate::slab::{Link, List, Slab, shrink};
use crate::{EndReason, SessionId, SessionOptions};

/// All sessions.
///
/// *Invariant:* a session is in a list of idle sessions if and only if it has no lease. Lists are ordered by the time at
/// which the last lease was dropped, so the oldest session of a list expires first.
pub(crate) struct Table<T> {
    sessions: Slab<Session<T>>,
    by_id: HashMap<SessionId, u32>,
    by_owner: HashMap<Principal, OwnerSessions>,
    /// The idle sessions that were used after their handshake.
    used: List,
    /// The idle sessions that were not.
    unused: List,
    /// All idle sessions.
    idle: Amount,
    deadlines: Deadlines,
    /// The sessions in `unused`.
    idle_unused: Amount,
    /// The bytes in all sessions, as of when they were last measured.
    bytes: usize,
    serial: u64,
    /// Sessions that ended in a call that failed; the next sweep returns them.
    pub(crate) unreported: Vec<EndedSession<T>>,
    pub(crate) is_closed: bool,
    /// The number of sessions evicted since the limits were first exceeded, and whether there were any since the last sweep.
    pub(crate) evicted: (u64, bool),
    /// The last field, so that the metrics are final when all sessions are dropped.
    pub(crate) metrics: OwnedMetrics,
}

/// A number of sessions, and the bytes in them.
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
    idle_since: Instant,
    /// Distinguishes it from earlier sessions in the same slot.
    serial: u64,
    leases: u32,
    is_used: bool,
    /// Its size when a lease was last dropped.
    bytes: usize,
    /// The link in `used` or `unused`.
    in_all: Link,
    /// The link in the idle sessions of its owner.
    in_own: Link,
}

/// The sessions of a principal.
struct OwnerSessions {
    live: usize,
    idle: List,
}

/// Identifies a session in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionSlot {
    slot: u32,
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
            deadlines: Deadlines::default(),
            idle_unused: Amount::default(),
            bytes: 0,
            serial: 0,
            unreported: Vec::new(),
            is_closed: false,
            evicted: (0, false),
            metrics: OwnedMetrics::default(),
        }
    }

    pub(crate) fn metrics(&self) -> &Arc<LiveMetrics> {
        &self.metrics.0
    }

    /// Finds a session and its owner.
    pub(crate) fn find(&self, id: &SessionId) -> Option<(SessionSlot, Option<&Principal>)> {
        let slot = *self.by_id.get(id)?;
        let session = self.sessions.get(slot)?;
        Some((SessionSlot { slot, serial: session.serial }, session.owner.as_ref()))
    }

    pub(crate) fn has(&self, slot: SessionSlot) -> bool {
        self.sessions.get(slot.slot).is_some_and(|session| session.serial == slot.serial)
    }

    /// Returns whether the limits hold even if all sessions become idle.
    pub(crate) fn is_within(&self, options: &SessionOptions) -> bool {
        self.by_id.len() <= options.idle_limit && self.bytes <= options.idle_bytes_limit
    }

    /// Adds a session with one lease. There must be none with this id, and its owner must have a
    /// [reservation](Self::reserve).
    pub(crate) fn insert(
        &mut self,
        id: SessionId,
        owner: Option<Principal>,
        value: Arc<T>,
        bytes: usize,
        is_used: bool,
    ) -> SessionSlot {
        let (serial, idle_since) = (self.serial, Instant::now());
        self.serial += 1;
        let (in_all, in_own) = (Link::UNLINKED, Link::UNLINKED);
        let session = Session { id, value, owner, idle_since, serial, leases: 1, is_used, bytes, in_all, in_own };
        self.bytes += bytes;
        let slot = self.sessions.insert(session);
        self.by_id.insert(id, slot);
        self.metrics().set_live(self.by_id.len());
        SessionSlot { slot, serial }
    }

    /// Adds a lease of a session, unless it has ended.
    pub(crate) fn lease(&mut self, slot: SessionSlot) -> Option<Arc<T>> {
        let session = self.sessions.get_mut(slot.slot).filter(|session| session.serial == slot.serial)?;
        session.leases += 1;
        let (value, is_first) = (Arc::clone(&session.value), session.leases == 1);
        if is_first {
            self.unlink(slot.slot);
        }
        Some(value)
    }

    /// Adds a lease of each active session.
    pub(crate) fn lease_active(&mut self) -> Vec<(SessionId, SessionSlot, Arc<T>)> {
        let mut leases = Vec::new();
        for slot in self.sessions.occupied() {
            if let Some(session) = self.sessions.get_mut(slot).filter(|session| session.leases > 0) {
                session.leases += 1;
                leases.push((session.id, SessionSlot { slot, serial: session.serial }, Arc::clone(&session.value)));
            }
        }
        leases
    }

    /// Records a use of a session after its handshake.
    pub(crate) fn set_used(&mut self, slot: SessionSlot) {
        if let Some(session) = self.sessions.get_mut(slot.slot)
            && session.leases > 0
        {
            session.is_used = true;
        }
    }

    /// Drops a lease of a session that has this size and deadline, unless it has ended.
    pub(crate) fn release_lease(&mut self, slot: SessionSlot, bytes: usize, deadline: Option<Instant>) {
        let Some(session) = self.sessions.get_mut(slot.slot).filter(|session| session.serial == slot.serial) else {
            return;
        };
        session.leases -= 1;
        self.bytes = self.bytes - session.bytes + bytes;
        session.bytes = bytes;
        if session.leases > 0 {
            return;
        }
        session.idle_since = Instant::now();
        if deadline.is_some() {
            self.deadlines.set(slot.slot, deadline);
        }
        let list = if session.is_used { &mut self.used } else { &mut self.unused };
        self.idle.add(bytes);
        self.metrics.0.set_idle(self.idle.count, self.idle.bytes);
        if !session.is_used {
            self.idle_unused.add(bytes);
        }
        let owned = session.owner.as_ref().and_then(|owner| self.by_owner.get_mut(owner));
        list.push(&mut self.sessions, slot.slot, |session| &mut session.in_all);
        if let Some(owned) = owned {
            owned.idle.push(&mut self.sessions, slot.slot, |session| &mut session.in_own);
        }
    }

    /// Removes a session from the lists of idle sessions.
    fn unlink(&mut self, slot: u32) {
        let Some(session) = self.sessions.get(slot) else { return };
        self.deadlines.set(slot, None);
        let list = if session.is_used { &mut self.used } else { &mut self.unused };
        self.idle.remove(session.bytes);
        self.metrics.0.set_idle(self.idle.count, self.idle.bytes);
        if !session.is_used {
            self.idle_unused.remove(session.bytes);
        }
        let owned = session.owner.as_ref().and_then(|owner| self.by_owner.get_mut(owner));
        list.remove(&mut self.sessions, slot, |session| &mut session.in_all);
        if let Some(owned) = owned {
            owned.idle.remove(&mut self.sessions, slot, |session| &mut session.in_own);
        }
    }

    /// Ends a session, idle or active.
    pub(crate) fn end(&mut self, slot: SessionSlot, reason: EndReason) -> Option<EndedSession<T>> {
        if !self.has(slot) {
            return None;
        }
        self.end_at(slot.slot, reason)
    }

    fn end_at(&mut self, slot: u32, reason: EndReason) -> Option<EndedSession<T>> {
        if self.sessions.get(slot)?.leases == 0 {
            self.unlink(slot);
        }
        let Session { id, value, owner, bytes, .. } = self.sessions.remove(slot)?;
        self.bytes -= bytes;
        self.by_id.remove(&id);
        self.metrics().set_live(self.by_id.len());
        if let Some(owner) = &owner {
            self.release(owner);
        }
        self.metrics().count_ended(reason);
        Some(EndedSession { id, value, reason })
    }

    /// Reserves one more session for a principal. At the limit its oldest idle session ends, or it fails if none is idle.
    pub(crate) fn reserve(
        &mut self,
        owner: &Principal,
        limit: usize,
    ) -> Result<Option<EndedSession<T>>, TooManyActive> {
        let Some(owned) = self.by_owner.get_mut(owner) else {
            if limit == 0 {
                return Err(TooManyActive);
            }
            self.by_owner.insert(owner.clone(), OwnerSessions { live: 1, idle: List::EMPTY });
            return Ok(None);
        };
        // Counted first, so that the entry of the principal is not removed with its last session.
        owned.live += 1;
        if owned.live <= limit {
            return Ok(None);
        }
        match owned.idle.oldest() {
            Some(oldest) => Ok(self.end_at(oldest, EndReason::Evicted)),
            None => {
                owned.live -= 1;
                Err(TooManyActive)
            }
        }
    }

    /// Releases the reservation of a session that has ended, or was not created.
    pub(crate) fn release(&mut self, owner: &Principal) {
        if let Some(owned) = self.by_owner.get_mut(owner) {
            owned.live -= 1;
            if owned.live == 0 {
                self.by_owner.remove(owner);
            }
        }
    }

    /// Evicts idle sessions beyond the limits; returns whether these are the first.
    ///
    /// Unused sessions are evicted first, so that clients that only send `initialize` do not evict sessions of others. But
    /// if these take less than a tenth of the limit, the oldest session is evicted, used or not: otherwise new sessions
    /// would end before they can be used.
    // RB-53
    pub(crate) fn evict(&mut self, options: &SessionOptions, ended: &mut Vec<EndedSession<T>>) -> bool {
        let before = self.evicted.0;
        loop {
            let is_flood = if self.idle.count > options.idle_limit {
                self.idle_unused.count > (options.idle_limit / 10).max(1)
            } else if self.idle.bytes > options.idle_bytes_limit {
                self.idle_unused.bytes > options.idle_bytes_limit / 10
            } else {
                break;
            };
            let idle_since =
                |list: List| list.oldest().and_then(|slot| self.sessions.get(slot)).map(|oldest| oldest.idle_since);
            let list = match (idle_since(self.used), idle_since(self.unused)) {
                (_, Some(_)) if is_flood => self.unused,
                (Some(used), Some(unused)) if unused <= used => self.unused,
                (Some(_), _) => self.used,
                (None, _) => self.unused,
            };
            let Some(oldest) = list.oldest() else { break };
            ended.extend(self.end_at(oldest, EndReason::Evicted));
            self.evicted = (self.evicted.0 + 1, true);
        }
        before == 0 && self.evicted.0 > 0
    }

    /// Returns the idle sessions whose deadline has passed.
    pub(crate) fn overdue(&self, now: Instant) -> Vec<(SessionSlot, Arc<T>)> {
        let session_of = |slot| {
            let session = self.sessions.get(slot)?;
            Some((SessionSlot { slot, serial: session.serial }, Arc::clone(&session.value)))
        };
        self.deadlines.passed(now).filter_map(session_of).collect()
    }

    /// Returns the value of a session that is idle and whose deadline has passed.
    pub(crate) fn if_overdue(&self, slot: SessionSlot) -> Option<Arc<T>> {
        // Most sessions have none, and need no clock.
        self.deadlines.get(slot.slot).filter(|deadline| *deadline <= Instant::now())?;
        self.sessions.get(slot.slot).map(|session| Arc::clone(&session.value))
    }

    /// Ends a session at its deadline, unless it is in use. A deadline in the future replaces the one before.
    pub(crate) fn settle_deadline(
        &mut self,
        slot: SessionSlot,
        deadline: Option<Instant>,
        now: Instant,
    ) -> Option<EndedSession<T>> {
        if !self.has(slot) || self.deadlines.get(slot.slot).is_none() {
            return None;
        }
        if deadline.is_some_and(|deadline| deadline <= now) {
            return self.end_at(slot.slot, EndReason::Expired);
        }
        self.deadlines.set(slot.slot, deadline);
        None
    }

    /// Ends the sessions whose idle timeout is over.
    pub(crate) fn expire(&mut self, now: Instant, options: &SessionOptions, ended: &mut Vec<EndedSession<T>>) {
        while let Some(slot) = self.oldest_expired(self.unused, now, options) {
            ended.extend(self.end_at(slot, EndReason::NeverUsed));
        }
        while let Some(slot) = self.oldest_expired(self.used, now, options) {
            ended.extend(self.end_at(slot, EndReason::Idle));
        }
        self.deadlines.shrink();
        shrink(&mut self.by_id);
        shrink(&mut self.by_owner);
    }

    /// The oldest session of a list, if it has expired.
    fn oldest_expired(&self, list: List, now: Instant, options: &SessionOptions) -> Option<u32> {
        list.oldest().filter(|_| self.deadline(list, options).is_some_and(|deadline| deadline <= now))
    }

    /// When the oldest session of a list expires.
    fn deadline(&self, list: List, options: &SessionOptions) -> Option<Instant> {
        let oldest = self.sessions.get(list.oldest()?)?;
        oldest.idle_since.checked_add(options.idle_timeout?)
    }

    /// When the first of the idle sessions expires.
    pub(crate) fn first_deadline(&self, options: &SessionOptions) -> Option<Instant> {
        let by_timeout = [self.used, self.unused].into_iter().filter_map(|list| self.deadline(list, options));
        by_timeout.chain(self.deadlines.first()).min()
    }

    /// Ends all sessions.
    pub(crate) fn clear(&mut self, reason: EndReason) -> Vec<EndedSession<T>> {
        let all = self.sessions.occupied();
        let ended = all.into_iter().filter_map(|slot| self.end_at(slot, reason)).collect();
        self.deadlines.shrink();
        shrink(&mut self.by_id);
        shrink(&mut self.by_owner);
        ended
    }
}

/// A principal has the maximum number of sessions, and all are active.
#[derive(Debug)]
pub(crate) struct TooManyActive;
