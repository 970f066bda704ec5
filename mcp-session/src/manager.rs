//! The manager of sessions.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_kernel::server::Principal;
use tokio::time::Instant;

use crate::table::{Place, Table};
use crate::{EndReason, SessionError, SessionId, SessionMetrics, SessionOptions};

/// The sessions of a server, each with a state `T` of the transport.
///
/// ```text
///   create, adopt ──> active ──last lease dropped──> idle ──sweep, cap──> ended
///                        ^                            │                     ^
///                        └───────────enter────────────┘                     │
///                        └───────────────end, shutdown──────────────────────┘
/// ```
///
/// A session is *active* while there is a [`SessionLease`] of it: requests in flight and open streams hold one. When the last lease
/// is dropped it becomes *idle*. It ends when it was idle for the [idle timeout](SessionOptions::idle_timeout), or when it is
/// evicted because there are [too many](SessionOptions::idle_limit) idle sessions or too many
/// [bytes](SessionOptions::idle_bytes_limit) in them.
///
/// The manager has no task and no timer. The transport calls [`sweep`](Self::sweep), and tears down the sessions that have
/// [`EndedSession`]. Every session ends exactly once, and the call that ends it returns it.
///
/// An idle session takes about 300 bytes beside `T` if its owner has no other session, and about 220 without an owner
/// (measured with 10,000 sessions).
///
/// Clones share the sessions.
pub struct SessionManager<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    options: SessionOptions,
    bytes_of: fn(&T) -> usize,
    /// No code of `T` runs while it is locked, as that could call the manager.
    table: Mutex<Table<T>>,
}

/// A session that has ended, for the transport to tear down.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "what belongs to the session has to be torn down"]
pub struct EndedSession<T> {
    /// The id, which is not valid any more.
    pub id: SessionId,
    /// The state, which remaining leases share.
    pub value: Arc<T>,
    /// Why it ended.
    pub reason: EndReason,
}

/// A new or adopted session.
#[derive(Debug)]
#[non_exhaustive]
pub struct CreatedSession<T> {
    /// A lease of the session.
    pub lease: SessionLease<T>,
    /// The sessions that were evicted for it.
    pub evicted: Vec<EndedSession<T>>,
}

impl<T> SessionManager<T> {
    /// Creates a manager that limits the number of sessions, but does not measure the bytes in `T`.
    #[must_use]
    pub fn new(options: SessionOptions) -> Self {
        Self::measured(options, |_| 0)
    }

    /// Creates a manager that also limits the [bytes](SessionOptions::idle_bytes_limit) in idle sessions. `bytes_of` measures
    /// a session whenever a lease is dropped; it must not block.
    #[must_use]
    pub fn measured(options: SessionOptions, bytes_of: fn(&T) -> usize) -> Self {
        Self { shared: Arc::new(Shared { options, bytes_of, table: Mutex::new(Table::new()) }) }
    }

    /// Creates a session for a client whose `initialize` was accepted.
    ///
    /// If there is a principal, it owns the session, and no other principal can enter it; otherwise every client that knows
    /// the id can. `make` creates the state, and is only called if there is room.
    ///
    /// # Errors
    ///
    /// Returns an error if the principal has too many active sessions, if the random source fails, or after
    /// [`shutdown`](Self::shutdown).
    // RB-53, S4.69, S4.72
    pub fn create(
        &self,
        principal: Option<Principal>,
        make: impl FnOnce(SessionId) -> T,
    ) -> Result<CreatedSession<T>, SessionError> {
        let id = SessionId::random().map_err(|_| self.refuse(&mut self.table(), SessionError::NoRandomness))?;
        let room = Room::take(self, principal)?;
        room.fill(id, Arc::new(make(id)), Origin::Here)
    }

    /// Adds a session of another process, with its id there.
    ///
    /// `principal` is the owner in its record; the caller has to check before that the request comes from this principal. If
    /// the session is here already, this is [`enter`](Self::enter).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`create`](Self::create), and an error if the session is here and belongs to another principal.
    // S4.115
    pub fn adopt(
        &self,
        id: SessionId,
        principal: Option<Principal>,
        make: impl FnOnce(SessionId) -> T,
    ) -> Result<CreatedSession<T>, SessionError> {
        if self.contains(&id) {
            match self.enter(&id, principal.as_ref()) {
                Ok(lease) => return Ok(CreatedSession { lease, evicted: Vec::new() }),
                // It ended meanwhile.
                Err(SessionError::Unknown) if !self.contains(&id) => {}
                Err(refused) => return Err(refused),
            }
        }
        let room = Room::take(self, principal)?;
        room.fill(id, Arc::new(make(id)), Origin::Elsewhere)
    }

    /// Returns a lease of a session, which counts as a use of it.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such session, or if it belongs to another principal.
    // S0.26, S4.35
    pub fn enter(&self, id: &SessionId, principal: Option<&Principal>) -> Result<SessionLease<T>, SessionError> {
        let mut table = self.table();
        let place = self.find(&mut table, id, principal)?;
        self.lease(&mut table, *id, place)
    }

    /// Returns a lease of each active session, which does not count as a use of it.
    ///
    /// A transport with a shared store uses it to check whether sessions have ended in another process.
    #[must_use]
    pub fn active(&self) -> Vec<SessionLease<T>> {
        let leases = self.table().lease_active();
        let shared = &self.shared;
        leases
            .into_iter()
            .map(|(id, place, value)| SessionLease { shared: Arc::clone(shared), value, id, place })
            .collect()
    }

    /// Returns whether a session is here, whoever owns it. This does not count as a use of it.
    #[must_use]
    pub fn contains(&self, id: &SessionId) -> bool {
        self.table().find(id).is_some()
    }

    /// Ends a session. Remaining leases keep its state, but it cannot be entered any more.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`enter`](Self::enter).
    pub fn end(
        &self,
        id: &SessionId,
        principal: Option<&Principal>,
        reason: EndReason,
    ) -> Result<EndedSession<T>, SessionError> {
        let ended = {
            let mut table = self.table();
            let place = self.find(&mut table, id, principal)?;
            let ended = table.end(place, reason);
            ended.ok_or_else(|| self.refuse(&mut table, SessionError::Unknown))?
        };
        log(std::slice::from_ref(&ended));
        Ok(ended)
    }

    /// Ends expired sessions, and evicts idle sessions beyond the limits. The time that it takes is proportional to the
    /// number of sessions that end.
    pub fn sweep(&self, now: Instant) -> Vec<EndedSession<T>> {
        let (ended, is_first, pruned) = {
            let mut table = self.table();
            let mut ended = std::mem::take(&mut table.unseen);
            table.expire(now, &self.shared.options, &mut ended);
            let is_first = table.prune(&self.shared.options, &mut ended);
            let pruned = match std::mem::replace(&mut table.pruned.1, false) {
                true => 0,
                false => std::mem::take(&mut table.pruned.0),
            };
            (ended, is_first, pruned)
        };
        if is_first {
            self.warn();
        }
        if pruned > 0 {
            tracing::warn!(target: "mcp", pruned, "there is room for idle sessions again; these ended before their time");
        }
        log(&ended);
        ended
    }

    /// Returns when to [`sweep`](Self::sweep) next: after the [interval](SessionOptions::sweep_interval), or later if nothing
    /// can expire before, but within a minute.
    #[must_use]
    pub fn next_sweep(&self, now: Instant) -> Instant {
        let options = &self.shared.options;
        let soon = now.checked_add(options.sweep_interval).unwrap_or(now);
        let (first, is_quiet) = {
            let table = self.table();
            let is_quiet = table.is_within(options) && table.pruned.0 == 0 && table.unseen.is_empty();
            (table.first_deadline(options), is_quiet)
        };
        // Active and future sessions have the whole timeout, but may exceed the limits.
        let others = now.checked_add(options.idle_timeout.unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE));
        match others.filter(|_| is_quiet) {
            Some(others) => first.map_or(others, |first| first.min(others)).max(soon),
            None => soon,
        }
    }

    /// Ends all sessions, and refuses new ones.
    // S4.42
    pub fn shutdown(&self) -> Vec<EndedSession<T>> {
        let ended = {
            let mut table = self.table();
            table.is_closed = true;
            let mut ended = std::mem::take(&mut table.unseen);
            ended.extend(table.clear(EndReason::Shutdown));
            ended
        };
        log(&ended);
        ended
    }

    /// Records an access attempt by a non-owner to a session that is not in this process; returns the configured refusal.
    pub fn refuse_wrong_owner(&self) -> SessionError {
        self.refuse(&mut self.table(), SessionError::WrongOwner)
    }

    /// Returns the current metrics.
    #[must_use]
    pub fn metrics(&self) -> SessionMetrics {
        self.table().metrics()
    }

    fn table(&self) -> MutexGuard<'_, Table<T>> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a session, and checks its owner.
    fn find(&self, table: &mut Table<T>, id: &SessionId, principal: Option<&Principal>) -> Result<Place, SessionError> {
        match table.find(id) {
            Some((place, owner)) if owner.is_none() || owner == principal => Ok(place),
            Some(_) => Err(self.refuse(table, SessionError::WrongOwner)),
            None => Err(self.refuse(table, SessionError::Unknown)),
        }
    }

    fn lease(&self, table: &mut Table<T>, id: SessionId, place: Place) -> Result<SessionLease<T>, SessionError> {
        let Some(value) = table.lease(place) else { return Err(self.refuse(table, SessionError::Unknown)) };
        table.set_used(place);
        Ok(SessionLease { shared: Arc::clone(&self.shared), value, id, place })
    }

    /// Counts a refusal; returns the one for the client.
    fn refuse(&self, table: &mut Table<T>, refused: SessionError) -> SessionError {
        table.counted.count_refused(refused);
        if refused == SessionError::WrongOwner { self.shared.options.wrong_owner_error() } else { refused }
    }

    fn warn(&self) {
        let SessionOptions { idle_limit, idle_bytes_limit, .. } = self.shared.options;
        tracing::error!(target: "mcp", idle_limit, idle_bytes_limit, "too many sessions are idle: some end before their time");
    }
}

impl<T> Clone for SessionManager<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> fmt::Debug for SessionManager<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionManager").field(&self.metrics()).finish()
    }
}

/// The maximum time between two sweeps, if there are sessions.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

fn log<T>(ended: &[EndedSession<T>]) {
    for EndedSession { id, reason, .. } in ended {
        tracing::debug!(target: "mcp", session = ?id, ?reason, "a session has ended");
    }
}

/// The origin of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Here,
    Elsewhere,
}

/// A reservation for a new session, which is released if the session is not created.
struct Room<'a, T> {
    manager: &'a SessionManager<T>,
    owner: Option<Principal>,
    evicted: Vec<EndedSession<T>>,
}

impl<'a, T> Room<'a, T> {
    fn take(manager: &'a SessionManager<T>, owner: Option<Principal>) -> Result<Self, SessionError> {
        let options = &manager.shared.options;
        let mut evicted = Vec::new();
        let is_first = {
            let mut table = manager.table();
            if table.is_closed {
                return Err(manager.refuse(&mut table, SessionError::Closed));
            }
            if let Some(owner) = &owner {
                match table.take_room(owner, options.limit_per_principal) {
                    Ok(ended) => evicted.extend(ended),
                    Err(_) => return Err(manager.refuse(&mut table, SessionError::TooMany)),
                }
            }
            table.prune(options, &mut evicted)
        };
        if is_first {
            manager.warn();
        }
        log(&evicted);
        Ok(Self { manager, owner, evicted })
    }

    fn fill(mut self, id: SessionId, value: Arc<T>, origin: Origin) -> Result<CreatedSession<T>, SessionError> {
        let bytes = (self.manager.shared.bytes_of)(&value);
        let lease = {
            let mut table = self.manager.table();
            if table.is_closed {
                return Err(self.manager.refuse(&mut table, SessionError::Closed));
            }
            if table.find(&id).is_some() {
                // Another call added the session meanwhile. The new state and the reservation are dropped.
                let place = self.manager.find(&mut table, &id, self.owner.as_ref())?;
                self.manager.lease(&mut table, id, place)?
            } else {
                let place = table.insert(id, self.owner.take(), Arc::clone(&value), bytes, origin == Origin::Elsewhere);
                match origin {
                    Origin::Here => table.counted.created += 1,
                    Origin::Elsewhere => table.counted.adopted += 1,
                }
                SessionLease { shared: Arc::clone(&self.manager.shared), value, id, place }
            }
        };
        tracing::debug!(target: "mcp", session = ?id, ?origin, "a session has begun");
        Ok(CreatedSession { lease, evicted: std::mem::take(&mut self.evicted) })
    }
}

impl<T> Drop for Room<'_, T> {
    fn drop(&mut self) {
        if self.owner.is_none() && self.evicted.is_empty() {
            return;
        }
        let mut table = self.manager.table();
        if let Some(owner) = self.owner.take() {
            table.give_room(&owner);
        }
        // The next sweep returns them.
        table.unseen.append(&mut self.evicted);
    }
}

/// A lease of a session, which is active while there is one.
///
/// A state must not hold a lease of its own session, which would never become idle.
pub struct SessionLease<T> {
    shared: Arc<Shared<T>>,
    value: Arc<T>,
    id: SessionId,
    place: Place,
}

impl<T> SessionLease<T> {
    /// Returns the id of the session.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Returns whether the session has ended.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        !self.table().has(self.place)
    }

    /// Ends the session, unless it has ended. Remaining leases keep its state, but it cannot be entered any more.
    pub fn end(&self, reason: EndReason) -> Option<EndedSession<T>> {
        let ended = self.table().end(self.place, reason);
        log(ended.as_slice());
        ended
    }

    fn table(&self) -> MutexGuard<'_, Table<T>> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for SessionLease<T> {
    fn clone(&self) -> Self {
        // A lease of a session that has ended does not count.
        drop(self.table().lease(self.place));
        let (shared, value) = (Arc::clone(&self.shared), Arc::clone(&self.value));
        Self { shared, value, id: self.id, place: self.place }
    }
}

impl<T> Drop for SessionLease<T> {
    fn drop(&mut self) {
        // Measured before the table is locked, as no code of `T` runs there.
        let bytes = (self.shared.bytes_of)(&self.value);
        self.table().give_back(self.place, bytes);
    }
}

impl<T> Deref for SessionLease<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> fmt::Debug for SessionLease<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SessionLease").field(&self.id).finish()
    }
}
