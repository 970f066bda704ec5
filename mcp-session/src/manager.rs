//! The manager of sessions.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_kernel::server::Principal;
use tokio::time::Instant;

use crate::lease::SessionLease;
use crate::table::{SessionSlot, Table};
use crate::{EndReason, LiveMetrics, SessionError, SessionId, SessionMetrics, SessionOptions};

/// The sessions of a server, each with a state `T` of the transport.
///
/// ```text
///   create, adopt ──> active ──last lease dropped──> idle ──sweep, limits──> ended
///                        ^                            │                        ^
///                        └───────────enter────────────┘                        │
///                        └───────────────end, shutdown─────────────────────────┘
/// ```
///
/// A session is *active* while there is a [`SessionLease`] of it: requests in flight and open streams hold one. When the last
/// lease is dropped it becomes *idle*. It ends when it was idle for the [idle timeout](SessionOptions::idle_timeout), when it is idle
/// at its [deadline](Self::with_deadlines), or when it is evicted because there are [too many](SessionOptions::idle_limit) idle sessions or too many
/// [bytes](SessionOptions::idle_bytes_limit) in them.
///
/// The manager has no task and no timer. The transport calls [`sweep`](Self::sweep), and releases the resources of
/// each [`EndedSession`]. Every session ends exactly once, and the call that ends it returns it.
///
/// An idle session takes about 300 bytes beside `T` if its owner has no other session, and about 220 without an owner
/// (measured with 10,000 sessions).
///
/// Clones share the sessions.
pub struct SessionManager<T> {
    shared: Arc<Shared<T>>,
}

pub(crate) struct Shared<T> {
    options: SessionOptions,
    pub(crate) bytes_of: fn(&T) -> usize,
    pub(crate) deadline_of: fn(&T) -> Option<Instant>,
    /// No code of `T` runs while it is locked, as that could call the manager.
    table: Mutex<Table<T>>,
}

impl<T> Shared<T> {
    pub(crate) fn table(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that has ended, whose resources the transport has to release.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "the state of the session has to be torn down"]
pub struct EndedSession<T> {
    /// The id, which is no longer valid.
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
        Self::with_deadlines(options, bytes_of, |_| None)
    }

    /// Creates a manager as [`measured`](Self::measured), whose sessions can have a deadline at which they end unless they are
    /// active, such as the expiry of an access token.
    ///
    /// `deadline_of` is called whenever a lease is dropped, and again when the deadline has passed, as there may be a later one
    /// then. It must not block.
    #[must_use]
    pub fn with_deadlines(
        options: SessionOptions,
        bytes_of: fn(&T) -> usize,
        deadline_of: fn(&T) -> Option<Instant>,
    ) -> Self {
        Self { shared: Arc::new(Shared { options, bytes_of, deadline_of, table: Mutex::new(Table::new()) }) }
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
        let id = SessionId::random().map_err(|_| self.refuse(&self.table(), SessionError::NoRandomness))?;
        let reservation = Reservation::new(self, principal)?;
        reservation.complete(id, Arc::new(make(id)), SessionOrigin::Created)
    }

    /// Adds a session that another process created, with the same id.
    ///
    /// `principal` is the owner in its record; the caller has to check before that the request comes from this principal. If
    /// the session is in this process already, [`enter`](Self::enter)s it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`create`](Self::create), and an error if the session is in this process and belongs to another principal.
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
        let reservation = Reservation::new(self, principal)?;
        reservation.complete(id, Arc::new(make(id)), SessionOrigin::Adopted)
    }

    /// Returns a lease of a session, which counts as a use of it.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such session, or if it belongs to another principal.
    // S0.26, S4.35
    pub fn enter(&self, id: &SessionId, principal: Option<&Principal>) -> Result<SessionLease<T>, SessionError> {
        let mut table = self.table();
        let slot = self.find(&table, id, principal)?;
        if let Some(value) = table.if_overdue(slot) {
            drop(table);
            let deadline = (self.shared.deadline_of)(&value);
            drop(value);
            table = self.table();
            // The next sweep returns it.
            let ended = table.settle_deadline(slot, deadline, Instant::now());
            log(ended.as_slice());
            table.unreported.extend(ended);
        }
        self.lease(&mut table, *id, slot)
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
            .map(|(id, slot, value)| SessionLease { shared: Arc::clone(shared), value, id, slot })
            .collect()
    }

    /// Returns whether a session is in this process, for any owner. This does not count as a use of it.
    #[must_use]
    pub fn contains(&self, id: &SessionId) -> bool {
        self.table().find(id).is_some()
    }

    /// Ends a session. Remaining leases keep its state, but it cannot be entered.
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
            let slot = self.find(&table, id, principal)?;
            let ended = table.end(slot, reason);
            ended.ok_or_else(|| self.refuse(&table, SessionError::Unknown))?
        };
        log(std::slice::from_ref(&ended));
        Ok(ended)
    }

    /// Ends expired sessions, and evicts idle sessions beyond the limits. The time that it takes is proportional to the
    /// number of sessions that end or whose deadline was moved.
    pub fn sweep(&self, now: Instant) -> Vec<EndedSession<T>> {
        let overdue = self.table().overdue(now);
        let deadline_of = |(slot, value): (SessionSlot, Arc<T>)| (slot, (self.shared.deadline_of)(&value));
        let overdue: Vec<_> = overdue.into_iter().map(deadline_of).collect();
        let (ended, is_first, evicted) = {
            let mut table = self.table();
            let mut ended = std::mem::take(&mut table.unreported);
            for (slot, deadline) in overdue {
                ended.extend(table.settle_deadline(slot, deadline, now));
            }
            table.expire(now, &self.shared.options, &mut ended);
            let is_first = table.evict(&self.shared.options, &mut ended);
            let evicted = match std::mem::replace(&mut table.evicted.1, false) {
                true => 0,
                false => std::mem::take(&mut table.evicted.0),
            };
            (ended, is_first, evicted)
        };
        if is_first {
            self.warn();
        }
        if evicted > 0 {
            tracing::warn!(target: "mcp", evicted, "there is room for idle sessions again");
        }
        log(&ended);
        ended
    }

    /// Returns when to [`sweep`](Self::sweep) next: after the [interval](SessionOptions::sweep_interval), or up to a
    /// minute from `now` if that is later and no session expires before.
    #[must_use]
    pub fn next_sweep(&self, now: Instant) -> Instant {
        let options = &self.shared.options;
        let soon = now.checked_add(options.sweep_interval).unwrap_or(now);
        let (first, is_quiet) = {
            let table = self.table();
            let is_quiet = table.is_within(options) && table.evicted.0 == 0 && table.unreported.is_empty();
            (table.first_deadline(options), is_quiet)
        };
        // Active and future sessions have the whole timeout, but may exceed the limits.
        let others = now.checked_add(options.idle_timeout.unwrap_or(MAX_SWEEP_INTERVAL).min(MAX_SWEEP_INTERVAL));
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
            let mut ended = std::mem::take(&mut table.unreported);
            ended.extend(table.clear(EndReason::Shutdown));
            ended
        };
        log(&ended);
        ended
    }

    /// Records an access attempt by a non-owner to a session that is not in this process; returns the
    /// [configured](SessionOptions::wrong_owner) error.
    pub fn refuse_wrong_owner(&self) -> SessionError {
        self.refuse(&self.table(), SessionError::WrongOwner)
    }

    /// Returns the current metrics.
    #[must_use]
    pub fn metrics(&self) -> SessionMetrics {
        self.table().metrics().read()
    }

    /// Returns a view of the metrics that can be read without the sessions, such as by a task that collects metrics.
    #[must_use]
    pub fn live_metrics(&self) -> Arc<LiveMetrics> {
        Arc::clone(self.table().metrics())
    }

    fn table(&self) -> MutexGuard<'_, Table<T>> {
        self.shared.table()
    }

    /// Finds a session, and checks its owner.
    fn find(
        &self,
        table: &Table<T>,
        id: &SessionId,
        principal: Option<&Principal>,
    ) -> Result<SessionSlot, SessionError> {
        match table.find(id) {
            Some((slot, owner)) if owner.is_none() || owner == principal => Ok(slot),
            Some(_) => Err(self.refuse(table, SessionError::WrongOwner)),
            None => Err(self.refuse(table, SessionError::Unknown)),
        }
    }

    fn lease(&self, table: &mut Table<T>, id: SessionId, slot: SessionSlot) -> Result<SessionLease<T>, SessionError> {
        let Some(value) = table.lease(slot) else { return Err(self.refuse(table, SessionError::Unknown)) };
        table.set_used(slot);
        Ok(SessionLease { shared: Arc::clone(&self.shared), value, id, slot })
    }

    /// Counts a refusal; returns the one for the client.
    fn refuse(&self, table: &Table<T>, refused: SessionError) -> SessionError {
        table.metrics().count_refused(refused);
        if refused == SessionError::WrongOwner { self.shared.options.wrong_owner_error() } else { refused }
    }

    fn warn(&self) {
        let SessionOptions { idle_limit, idle_bytes_limit, .. } = self.shared.options;
        tracing::error!(target: "mcp", idle_limit, idle_bytes_limit, "too many sessions are idle: some are evicted");
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
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(60);

pub(crate) fn log<T>(ended: &[EndedSession<T>]) {
    for EndedSession { id, reason, .. } in ended {
        tracing::debug!(target: "mcp", session = ?id, ?reason, "a session has ended");
    }
}

/// The origin of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionOrigin {
    Created,
    Adopted,
}

/// A reservation for a new session, which is released if the session is not created.
struct Reservation<'a, T> {
    manager: &'a SessionManager<T>,
    owner: Option<Principal>,
    evicted: Vec<EndedSession<T>>,
}

impl<'a, T> Reservation<'a, T> {
    fn new(manager: &'a SessionManager<T>, owner: Option<Principal>) -> Result<Self, SessionError> {
        let options = &manager.shared.options;
        let mut evicted = Vec::new();
        let is_first = {
            let mut table = manager.table();
            if table.is_closed {
                return Err(manager.refuse(&table, SessionError::Closed));
            }
            if let Some(owner) = &owner {
                match table.reserve(owner, options.limit_per_principal) {
                    Ok(ended) => evicted.extend(ended),
                    Err(_) => return Err(manager.refuse(&table, SessionError::TooMany)),
                }
            }
            table.evict(options, &mut evicted)
        };
        if is_first {
            manager.warn();
        }
        log(&evicted);
        Ok(Self { manager, owner, evicted })
    }

    fn complete(
        mut self,
        id: SessionId,
        value: Arc<T>,
        origin: SessionOrigin,
    ) -> Result<CreatedSession<T>, SessionError> {
        let bytes = (self.manager.shared.bytes_of)(&value);
        let lease = {
            let mut table = self.manager.table();
            if table.is_closed {
                return Err(self.manager.refuse(&table, SessionError::Closed));
            }
            if table.find(&id).is_some() {
                // Another call added the session meanwhile. The new state and the reservation are dropped.
                let slot = self.manager.find(&table, &id, self.owner.as_ref())?;
                self.manager.lease(&mut table, id, slot)?
            } else {
                let slot =
                    table.insert(id, self.owner.take(), Arc::clone(&value), bytes, origin == SessionOrigin::Adopted);
                match origin {
                    SessionOrigin::Created => table.metrics().count_created(),
                    SessionOrigin::Adopted => table.metrics().count_adopted(),
                }
                SessionLease { shared: Arc::clone(&self.manager.shared), value, id, slot }
            }
        };
        tracing::debug!(target: "mcp", session = ?id, ?origin, "a session has begun");
        Ok(CreatedSession { lease, evicted: std::mem::take(&mut self.evicted) })
    }
}

impl<T> Drop for Reservation<'_, T> {
    fn drop(&mut self) {
        if self.owner.is_none() && self.evicted.is_empty() {
            return;
        }
        let mut table = self.manager.table();
        if let Some(owner) = self.owner.take() {
            table.release(&owner);
        }
        // The next sweep returns them.
        table.unreported.append(&mut self.evicted);
    }
}
