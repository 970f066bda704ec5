//! Records of used states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use crate::seal::NONCE_BYTES;

/// Records which states were used, so that each is accepted once.
///
/// Instances that serve the same clients must share a replay guard.
pub trait ReplayGuard: Send + Sync {
    /// Records the use of a state, and returns whether it is the first. `now` and `expires` are in seconds since the Unix
    /// epoch; the record may be dropped once it has expired.
    ///
    /// Of concurrent calls with one nonce, only one may return `true`. An implementation that cannot decide, for example
    /// because its store is unavailable, must return `false`.
    fn claim(&self, now: u64, nonce: [u8; NONCE_BYTES], expires: u64) -> bool;

    /// Returns whether the use of a state is recorded, without recording one.
    ///
    /// An implementation that cannot decide must return `true`.
    fn is_claimed(&self, now: u64, nonce: &[u8; NONCE_BYTES]) -> bool;
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

impl ReplayGuard for MemoryReplayGuard {
    fn claim(&self, now: u64, nonce: [u8; NONCE_BYTES], expires: u64) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let later = used.by_expiry.split_off(&now.saturating_add(1));
        for expired in std::mem::replace(&mut used.by_expiry, later).into_values().flatten() {
            used.nonces.remove(&expired);
        }
        if used.nonces.len() >= self.limit || !used.nonces.insert(nonce) {
            return false;
        }
        used.by_expiry.entry(expires).or_default().push(nonce);
        true
    }

    fn is_claimed(&self, _: u64, nonce: &[u8; NONCE_BYTES]) -> bool {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).nonces.contains(nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_used_once_and_forgotten_in_time() {
        let guard = MemoryReplayGuard::new(2);
        let nonce = |byte| [byte; NONCE_BYTES];
        assert!(!guard.is_claimed(0, &nonce(1)), "it was not used yet");
        assert!(guard.claim(0, nonce(1), 10));
        assert!(guard.is_claimed(5, &nonce(1)) && !guard.is_claimed(5, &nonce(2)));
        assert!(!guard.claim(5, nonce(1), 10));
        assert!(guard.claim(5, nonce(2), 20));
        assert!(!guard.claim(5, nonce(3), 20), "full, so it cannot be decided");
        assert!(guard.claim(10, nonce(3), 20), "the first has expired");
        assert_eq!(guard.used.lock().unwrap().nonces.len(), 2);
    }
}
