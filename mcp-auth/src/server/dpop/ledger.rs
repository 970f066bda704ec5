//! Proofs that were used.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use crate::UnixTime;

/// Records which DPoP proofs were used, so that each is accepted once.
///
/// Instances that serve the same clients must share a ledger, or a proof is good once at each of them.
#[async_trait]
pub trait ProofLedger: Send + Sync {
    /// Records the use of a proof, and returns whether it is the first. The record may be dropped once it has expired.
    ///
    /// Of concurrent calls with one id, only one may return `true`. An implementation that cannot decide, for example because
    /// its store is unavailable, must return `false`.
    async fn claim(&self, id: [u8; 32], expires: UnixTime, now: UnixTime) -> bool;
}

/// A ledger in memory, for a single instance.
#[derive(Debug)]
pub struct MemoryProofLedger {
    used: Mutex<Used>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Used {
    ids: HashSet<[u8; 32]>,
    by_expiry: BTreeMap<UnixTime, Vec<[u8; 32]>>,
}

impl MemoryProofLedger {
    /// Creates a ledger of up to `limit` proofs. When it is full, further proofs are refused until others have expired.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { used: Mutex::default(), limit }
    }

    fn claim_now(&self, id: [u8; 32], expires: UnixTime, now: UnixTime) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(entry) = used.by_expiry.first_entry().filter(|entry| *entry.key() <= now) {
            for expired in entry.remove() {
                used.ids.remove(&expired);
            }
        }
        if used.ids.len() >= self.limit {
            tracing::warn!(target: "mcp", limit = self.limit, "the ledger of DPoP proofs is full");
            return false;
        }
        if !used.ids.insert(id) {
            return false;
        }
        used.by_expiry.entry(expires).or_default().push(id);
        true
    }
}

/// A ledger of 100,000 proofs, which is 800 requests with proofs per second.
impl Default for MemoryProofLedger {
    fn default() -> Self {
        Self::new(100_000)
    }
}

#[async_trait]
impl ProofLedger for MemoryProofLedger {
    async fn claim(&self, id: [u8; 32], expires: UnixTime, now: UnixTime) -> bool {
        self.claim_now(id, expires, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_proof_is_used_once_and_forgotten_in_time() {
        let time = UnixTime::from_secs;
        let ledger = MemoryProofLedger::new(2);
        assert!(ledger.claim_now([1; 32], time(10), time(0)));
        assert!(!ledger.claim_now([1; 32], time(10), time(5)));
        assert!(ledger.claim_now([2; 32], time(20), time(5)));
        assert!(!ledger.claim_now([3; 32], time(20), time(5)), "it is full, so it cannot be decided");
        assert!(ledger.claim_now([3; 32], time(20), time(10)), "the first has expired");
        assert_eq!(ledger.used.lock().unwrap().ids.len(), 2);
    }
}
