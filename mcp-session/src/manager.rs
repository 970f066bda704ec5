//! Who has a session, and for how long.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_kernel::server::Principal;
use tokio::time::Instant;

use crate::table::{Place, Table};
use crate::{Reason, Refused, SessionId, SessionMetrics, SessionOptions};

/// All sessions of a server, each with the state `T` that its transport has for it.
///
/// ```text
///   create, adopt ──> active ──last lease dropped──> idle ──sweep, cap──> ended
///                        ^                            │                     ^
///                        └───────────enter────────────┘                     │
///                        └───────────────end, shutdown──────────────────────┘
/// ```
///
/// A session is *active* as long as somebody has a [`Lease`] of it, which is whoever answers a request or sends on a
/// stream; such a session is never idle, however silent it is. With its last lease it becomes *idle*, and ends when it
/// was that for [too long](SessionOptions::idle_time), or when there are [too many](SessionOptions::idle_limit), or too
/// many [bytes](SessionOptions::idle_bytes_limit) in them, and it is the first to go.
///
/// The manager has no task and no timer. Whoever runs the server calls [`sweep`](Self::sweep), and tears down what has
/// [`Ended`]; every session that is created ends exactly once, and whoever makes it end gets it.
///
/// An idle session takes about 300 bytes beside `T` if its owner has no other one, and about 220 if nobody owns it
/// (measured with 10,000 of them).
///
/// Clones are the same manager.
pub struct SessionManager<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    options: SessionOptions,
    bytes_of: fn(&T) -> usize,
    /// Nothing of `T` is run while it is locked: what is dropped or made there could come back here.
    table: Mutex<Table<T>>,
}

/// A session that has ended: whoever gets it tears down what belongs to it.
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "what belongs to the session has to be torn down"]
pub struct Ended<T> {
    /// Its name, which nobody can enter any more.
    pub id: SessionId,
    /// Its state; whoever has a lease has it as well.
    pub value: Arc<T>,
    /// Why.
    pub reason: Reason,
}

/// A session that is there now.
#[derive(Debug)]
#[non_exhaustive]
pub struct Created<T> {
    /// The right to use it.
    pub lease: Lease<T>,
    /// The sessions that had to end for it.
    pub evicted: Vec<Ended<T>>,
}

impl<T> SessionManager<T> {
    /// Begins without sessions. What they keep in `T` is not measured: their number bounds it.
    #[must_use]
    pub fn new(options: SessionOptions) -> Self {
        Self::measured(options, |_| 0)
    }

    /// Begins without sessions, and bounds the bytes that idle ones [keep](SessionOptions::idle_bytes_limit). `bytes_of`
    /// measures one whenever it was used; it must not wait for anything.
    #[must_use]
    pub fn measured(options: SessionOptions, bytes_of: fn(&T) -> usize) -> Self {
        Self { shared: Arc::new(Shared { options, bytes_of, table: Mutex::new(Table::new()) }) }
    }

    /// Creates a session, for a client whose handshake is known to be good: what is refused must leave nothing behind.
    ///
    /// If there is a principal, the session is its own, and nobody else can enter it; otherwise whoever knows the id
    /// can. `make` runs when it is sure that there is room.
    ///
    /// # Errors
    ///
    /// Fails if the principal has too many sessions that are all active, if no id can be made up, or after
    /// [`shutdown`](Self::shutdown).
    // RB-53, S4.69, S4.72
    pub fn create(
        &self,
        principal: Option<Principal>,
        make: impl FnOnce(SessionId) -> T,
    ) -> Result<Created<T>, Refused> {
        let id = SessionId::random().map_err(|_| self.refuse(&mut self.table(), Refused::NoRandomness))?;
        let room = Room::take(self, principal)?;
        room.fill(id, Arc::new(make(id)), Origin::Here)
    }

    /// Goes on with a session that began elsewhere, under the id that it had there.
    ///
    /// `principal` is whose session it is by its record; that whoever asks for it is that one is for the caller to
    /// check before. If the session is here already, nothing is made, and this is [`enter`](Self::enter).
    ///
    /// # Errors
    ///
    /// Fails like [`create`](Self::create), and if the session is here and belongs to somebody else.
    // S4.115
    pub fn adopt(
        &self,
        id: SessionId,
        principal: Option<Principal>,
        make: impl FnOnce(SessionId) -> T,
    ) -> Result<Created<T>, Refused> {
        if self.knows(&id) {
            match self.enter(&id, principal.as_ref()) {
                Ok(lease) => return Ok(Created { lease, evicted: Vec::new() }),
                // It ended in between.
                Err(Refused::Unknown) if !self.knows(&id) => {}
                Err(refused) => return Err(refused),
            }
        }
        let room = Room::take(self, principal)?;
        room.fill(id, Arc::new(make(id)), Origin::Elsewhere)
    }

    /// Finds a session for somebody who names it, which is a use of it.
    ///
    /// # Errors
    ///
    /// Fails if there is no such session (any more), or if it belongs to somebody else.
    // S0.26, S4.35
    pub fn enter(&self, id: &SessionId, principal: Option<&Principal>) -> Result<Lease<T>, Refused> {
        let mut table = self.table();
        let place = self.find(&mut table, id, principal)?;
        self.lease(&mut table, *id, place)
    }

    /// Returns a lease of each session that is active. That is no use of it: only whoever has another lease uses it.
    ///
    /// This is for whoever keeps sessions elsewhere as well, to see whether they have ended there.
    #[must_use]
    pub fn active(&self) -> Vec<Lease<T>> {
        let leases = self.table().lease_active();
        let shared = &self.shared;
        leases.into_iter().map(|(id, place, value)| Lease { shared: Arc::clone(shared), value, id, place }).collect()
    }

    /// Whether a session is here, whoever may enter it. To ask is no use of it, and is not counted.
    #[must_use]
    pub fn knows(&self, id: &SessionId) -> bool {
        self.table().find(id).is_some()
    }

    /// Ends a session because somebody asks for it. Whoever has a lease keeps the state, but nobody finds it any more.
    ///
    /// # Errors
    ///
    /// Fails like [`enter`](Self::enter).
    pub fn end(&self, id: &SessionId, principal: Option<&Principal>, reason: Reason) -> Result<Ended<T>, Refused> {
        let ended = {
            let mut table = self.table();
            let place = self.find(&mut table, id, principal)?;
            let ended = table.end(place, reason);
            ended.ok_or_else(|| self.refuse(&mut table, Refused::Unknown))?
        };
        log(std::slice::from_ref(&ended));
        Ok(ended)
    }

    /// Ends all sessions whose time is over, and the oldest of those that are idle beyond the limit. Takes time for
    /// what ends, and none for the rest.
    pub fn sweep(&self, now: Instant) -> Vec<Ended<T>> {
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

    /// When to [`sweep`](Self::sweep) next: in a [while](SessionOptions::sweep_interval), or later if nothing can end
    /// before, but within a minute.
    #[must_use]
    pub fn next_sweep(&self, now: Instant) -> Instant {
        let options = &self.shared.options;
        let soon = now.checked_add(options.sweep_interval).unwrap_or(now);
        let (first, is_quiet) = {
            let table = self.table();
            let is_quiet = table.is_within(options) && table.pruned.0 == 0 && table.unseen.is_empty();
            (table.first_deadline(options), is_quiet)
        };
        // What is not idle yet, or not there yet, has the whole time, but may be more than there is room for.
        let others = now.checked_add(options.idle_time.unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE));
        match others.filter(|_| is_quiet) {
            Some(others) => first.map_or(others, |first| first.min(others)).max(soon),
            None => soon,
        }
    }

    /// Ends all sessions, and takes on no more.
    // S4.42
    pub fn shutdown(&self) -> Vec<Ended<T>> {
        let ended = {
            let mut table = self.table();
            table.is_closed = true;
            let mut ended = std::mem::take(&mut table.unseen);
            ended.extend(table.clear(Reason::Shutdown));
            ended
        };
        log(&ended);
        ended
    }

    /// Counts somebody who asks for a session that is not here and, by its record, belongs to somebody else; returns
    /// what they hear.
    pub fn refuse_stranger(&self) -> Refused {
        self.refuse(&mut self.table(), Refused::WrongOwner)
    }

    /// How many sessions there are, and what happened to the others.
    #[must_use]
    pub fn metrics(&self) -> SessionMetrics {
        self.table().metrics()
    }

    fn table(&self) -> MutexGuard<'_, Table<T>> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds a session for somebody who may have it.
    fn find(&self, table: &mut Table<T>, id: &SessionId, principal: Option<&Principal>) -> Result<Place, Refused> {
        match table.find(id) {
            Some((place, owner)) if owner.is_none() || owner == principal => Ok(place),
            Some(_) => Err(self.refuse(table, Refused::WrongOwner)),
            None => Err(self.refuse(table, Refused::Unknown)),
        }
    }

    fn lease(&self, table: &mut Table<T>, id: SessionId, place: Place) -> Result<Lease<T>, Refused> {
        let Some(value) = table.lease(place) else { return Err(self.refuse(table, Refused::Unknown)) };
        table.set_used(place);
        Ok(Lease { shared: Arc::clone(&self.shared), value, id, place })
    }

    /// Counts a refusal; returns what to say about it.
    fn refuse(&self, table: &mut Table<T>, refused: Refused) -> Refused {
        table.counted.count_refused(refused);
        if refused == Refused::WrongOwner { self.shared.options.answer_to_stranger() } else { refused }
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

/// How much time is between two sweeps at most, if there are sessions.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

fn log<T>(ended: &[Ended<T>]) {
    for Ended { id, reason, .. } in ended {
        tracing::debug!(target: "mcp", session = ?id, ?reason, "a session has ended");
    }
}

/// Where a session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Here,
    Elsewhere,
}

/// Room for a session that is not there yet; it is given back if there never is one.
struct Room<'a, T> {
    manager: &'a SessionManager<T>,
    owner: Option<Principal>,
    evicted: Vec<Ended<T>>,
}

impl<'a, T> Room<'a, T> {
    fn take(manager: &'a SessionManager<T>, owner: Option<Principal>) -> Result<Self, Refused> {
        let options = &manager.shared.options;
        let mut evicted = Vec::new();
        let is_first = {
            let mut table = manager.table();
            if table.is_closed {
                return Err(manager.refuse(&mut table, Refused::Closed));
            }
            if let Some(owner) = &owner {
                match table.take_room(owner, options.limit_per_principal) {
                    Ok(ended) => evicted.extend(ended),
                    Err(_) => return Err(manager.refuse(&mut table, Refused::TooMany)),
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

    fn fill(mut self, id: SessionId, value: Arc<T>, origin: Origin) -> Result<Created<T>, Refused> {
        let bytes = (self.manager.shared.bytes_of)(&value);
        let lease = {
            let mut table = self.manager.table();
            if table.is_closed {
                return Err(self.manager.refuse(&mut table, Refused::Closed));
            }
            if table.find(&id).is_some() {
                // Somebody was faster. What was made here is dropped with this function, and the room with it.
                let place = self.manager.find(&mut table, &id, self.owner.as_ref())?;
                self.manager.lease(&mut table, id, place)?
            } else {
                let place = table.insert(id, self.owner.take(), Arc::clone(&value), bytes, origin == Origin::Elsewhere);
                match origin {
                    Origin::Here => table.counted.created += 1,
                    Origin::Elsewhere => table.counted.adopted += 1,
                }
                Lease { shared: Arc::clone(&self.manager.shared), value, id, place }
            }
        };
        tracing::debug!(target: "mcp", session = ?id, ?origin, "a session has begun");
        Ok(Created { lease, evicted: std::mem::take(&mut self.evicted) })
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
        // The next sweep tells of them.
        table.unseen.append(&mut self.evicted);
    }
}

/// The right to use a session, which is active as long as there is one.
///
/// A state must not have a lease of its own session: that would never be idle.
pub struct Lease<T> {
    shared: Arc<Shared<T>>,
    value: Arc<T>,
    id: SessionId,
    place: Place,
}

impl<T> Lease<T> {
    /// The name of the session.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Whether the session has ended while it was used.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        !self.table().has(self.place)
    }

    /// Ends the session, if it has not ended yet. Whoever has a lease keeps the state, but nobody finds it any more.
    pub fn end(&self, reason: Reason) -> Option<Ended<T>> {
        let ended = self.table().end(self.place, reason);
        log(ended.as_slice());
        ended
    }

    fn table(&self) -> MutexGuard<'_, Table<T>> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Clone for Lease<T> {
    fn clone(&self) -> Self {
        // It counts only as long as the session is there.
        drop(self.table().lease(self.place));
        let (shared, value) = (Arc::clone(&self.shared), Arc::clone(&self.value));
        Self { shared, value, id: self.id, place: self.place }
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        // This is measured before the table is locked, as nothing of `T` runs there.
        let bytes = (self.shared.bytes_of)(&self.value);
        self.table().give_back(self.place, bytes);
    }
}

impl<T> Deref for Lease<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> fmt::Debug for Lease<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.id).finish()
    }
}
