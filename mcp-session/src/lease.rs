//! Leases of sessions.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use crate::manager::{EndedSession, Shared, log};
use crate::table::SessionSlot;
use crate::{EndReason, SessionId};

/// A lease of a session, which is active while there is one.
///
/// A state must not hold a lease of its own session, which would never become idle.
pub struct SessionLease<T> {
    pub(crate) shared: Arc<Shared<T>>,
    pub(crate) value: Arc<T>,
    pub(crate) id: SessionId,
    pub(crate) slot: SessionSlot,
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
        !self.shared.table().has(self.slot)
    }

    /// Returns a pointer to the state of the session, which does not keep the session active or in memory.
    #[must_use]
    pub fn downgrade(&self) -> Weak<T> {
        Arc::downgrade(&self.value)
    }

    /// Ends the session; returns `None` if it has ended already. Remaining leases keep its state, but it cannot be
    /// entered.
    pub fn end(&self, reason: EndReason) -> Option<EndedSession<T>> {
        let ended = self.shared.table().end(self.slot, reason);
        log(ended.as_slice());
        ended
    }
}

impl<T> Clone for SessionLease<T> {
    fn clone(&self) -> Self {
        // A lease of a session that has ended does not count.
        drop(self.shared.table().lease(self.slot));
        let (shared, value) = (Arc::clone(&self.shared), Arc::clone(&self.value));
        Self { shared, value, id: self.id, slot: self.slot }
    }
}

impl<T> Drop for SessionLease<T> {
    fn drop(&mut self) {
        // Measured before the table is locked, as no code of `T` runs there.
        let (bytes, deadline) = ((self.shared.bytes_of)(&self.value), (self.shared.deadline_of)(&self.value));
        self.shared.table().release_lease(self.slot, bytes, deadline);
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
