//! Records of used states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use crate::seal::NONCE_BYTES;

/// Records which states were used, so that each is accepted once; implemented with [`macro@async_trait`].
///
/// Instances that serve the same clients must share a replay guard. Implementations can be tested with
/// `mcp_mrtr::guard_tests` (feature `store-tests`).
#[async_trait]
pub trait ReplayGuard: Send + Sync {
    /// Records the use of a state, and returns whether it is the first. `now` and `expires` are in seconds since the Unix
    /// epoch; the record may be dropped once it has expired.
    ///
    /// Of concurrent calls with one nonce, only one may return `true`. An implementation that cannot decide, for example
    /// because its store is unavailable, must return `false`.
    async fn claim(&self, now: u64, nonce: [u8; NONCE_BYTES], expires: u64) -> bool;

    /// Returns whether the use of a state is recorded, without recording one.
    ///
    /// An implementation that cannot decide must return `true`.
    async fn is_claimed(&self, now: u64, nonce: [u8; NONCE_BYTES]) -> bool;
}

/// A replay guard in memory, for a single instance.
#[derive(Debug)]
pub struct MemoryReplayGuard {
    used: Mutex<Used>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Used {
    nonces: BTreeSet<[u8; NONCE_BYTES]>,
    by_expiry: BTreeMap<u64, Vec<[u8; NONCE_BYTES]>>,
}

impl MemoryReplayGuard {
    /// Creates a replay guard of up to `limit` states. When it is full, further states are rejected until others have expired.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { used: Mutex::default(), limit }
    }
}

impl Used {
    /// Removes the states that have expired.
    fn expire(&mut self, now: u64) {
        let later = self.by_expiry.split_off(&now.saturating_add(1));
        for expired in std::mem::replace(&mut self.by_expiry, later).into_values().flatten() {
            self.nonces.remove(&expired);
        }
    }
}

#[async_trait]
impl ReplayGuard for MemoryReplayGuard {
    async fn claim(&self, now: u64, nonce: [u8; NONCE_BYTES], expires: u64) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.expire(now);
        if used.nonces.len() >= self.limit || !used.nonces.insert(nonce) {
            return false;
        }
        used.by_expiry.entry(expires).or_default().push(nonce);
        true
    }

    async fn is_claimed(&self, now: u64, nonce: [u8; NONCE_BYTES]) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.expire(now);
        used.nonces.contains(&nonce)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::guard_tests::check_replay_guard;

    /// Nothing in memory has to wait.
    fn ready<T>(future: impl Future<Output = T>) -> T {
        let Poll::Ready(output) = pin!(future).poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("it waits")
        };
        output
    }

    #[test]
    fn memory_does_what_guards_do() {
        ready(check_replay_guard(async |limit| MemoryReplayGuard::new(limit), 1_000_000));
    }

    #[test]
    fn states_that_expired_take_no_memory() {
        let guard = MemoryReplayGuard::new(10);
        for byte in 0..5 {
            assert!(ready(guard.claim(0, [byte; NONCE_BYTES], 10)));
        }
        assert!(ready(guard.claim(10, [9; NONCE_BYTES], 20)));
        let used = guard.used.lock().unwrap();
        assert_eq!((used.nonces.len(), used.by_expiry.len()), (1, 1));
    }
}
