//! Proofs that were used.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use mcp_server::Principal;

use crate::UnixTime;

/// Records which DPoP proofs were used, so that each is accepted once.
///
/// Instances that serve the same clients must share a ledger, or a proof is good once at each of them. Implementations can be
/// tested with `mcp_auth::server::ledger_tests` (feature `store-tests`).
#[async_trait]
pub trait ProofLedger: Send + Sync {
    /// Records the use of a proof, and returns whether it is the first. The record may be dropped once it has expired.
    ///
    /// Of concurrent calls with one id, only one may return `true`. An implementation that cannot decide, for example because
    /// its store is unavailable or full, must return `false`. One that is limited should not let the proofs of one user take
    /// all of it.
    async fn claim(&self, proof: UsedProof<'_>) -> bool;
}

/// The use of a proof that is valid otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsedProof<'a> {
    /// Identifies the proof among those of all keys.
    pub id: [u8; 32],
    /// The thumbprint of the key that it was signed with (RFC 7638), and that the token is bound to.
    pub key: &'a str,
    /// The user of the token. One user can have many keys.
    pub principal: &'a Principal,
    /// When the proof is not valid any more.
    pub expires: UnixTime,
    /// The time at which it was used.
    pub now: UnixTime,
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
    /// The number of proofs of each key.
    by_key: HashMap<Arc<str>, usize>,
    /// The number of proofs of each user, with all keys.
    by_principal: HashMap<Principal, usize>,
    by_expiry: BTreeMap<UnixTime, Vec<Entry>>,
    refusals: Refusals,
}

/// Counts the proofs that are refused, so that a client cannot fill the log with them.
#[derive(Debug, Default)]
struct Refusals {
    since_logged: u64,
    logged_at: Option<UnixTime>,
}

/// The minimum time between two log messages about proofs that are refused.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

impl Refusals {
    /// Counts one. Returns the number since the last log message, if another one is due.
    fn add(&mut self, now: UnixTime) -> Option<u64> {
        self.since_logged += 1;
        if self.logged_at.is_some_and(|logged_at| now < logged_at.after(LOG_INTERVAL)) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.since_logged))
    }
}

/// The part of a ledger that one key can have.
const KEY_SHARE: usize = 32;
/// The part of a ledger that one user can have. It is larger: a service with many instances is one user with a key for each.
const PRINCIPAL_SHARE: usize = 8;

/// A proof, its key and its user.
type Entry = ([u8; 32], Arc<str>, Principal);

impl MemoryProofLedger {
    /// Creates a ledger of up to `limit` proofs. When it is full, further proofs are refused until others have expired.
    ///
    /// One key can have at most a 32nd of the limit, and one user an eighth, but at least one proof each, so a client that sends
    /// as many as it can leaves room for the proofs of others, with as many keys as it likes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { used: Mutex::default(), limit }
    }

    fn claim_now(&self, proof: UsedProof<'_>) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.expire(proof.now);
        if used.ids.contains(&proof.id) {
            return false;
        }
        let (key, of_key) = counted(&used.by_key, proof.key, || proof.key.into());
        let (principal, of_user) = counted(&used.by_principal, proof.principal, || proof.principal.clone());
        let is_above = |count: usize, share: usize| count >= (self.limit / share).max(1);
        if used.ids.len() >= self.limit || is_above(of_key, KEY_SHARE) || is_above(of_user, PRINCIPAL_SHARE) {
            if let Some(refused) = used.refusals.add(proof.now) {
                let (limit, key) = (self.limit, proof.key);
                tracing::warn!(target: "mcp", limit, refused, key, of_key, of_user, "too many DPoP proofs");
            }
            return false;
        }
        used.ids.insert(proof.id);
        used.by_expiry.entry(proof.expires).or_default().push((proof.id, Arc::clone(&key), principal.clone()));
        used.by_key.insert(key, of_key + 1);
        used.by_principal.insert(principal, of_user + 1);
        true
    }
}

impl Used {
    /// Removes the proofs that have expired.
    fn expire(&mut self, now: UnixTime) {
        while let Some(entry) = self.by_expiry.first_entry().filter(|entry| *entry.key() <= now) {
            for (id, key, principal) in entry.remove() {
                self.ids.remove(&id);
                discount(&mut self.by_key, &*key);
                discount(&mut self.by_principal, &principal);
            }
        }
    }
}

/// Returns the count of a name, and the name as it is kept, so that all entries share it.
fn counted<K, Q>(counts: &HashMap<K, usize>, name: &Q, keep: impl FnOnce() -> K) -> (K, usize)
where
    K: Borrow<Q> + Clone + Eq + Hash,
    Q: Eq + Hash + ?Sized,
{
    counts.get_key_value(name).map_or_else(|| (keep(), 0), |(kept, count)| (kept.clone(), *count))
}

fn discount<K, Q>(counts: &mut HashMap<K, usize>, name: &Q)
where
    K: Borrow<Q> + Eq + Hash,
    Q: Eq + Hash + ?Sized,
{
    if let Some(count) = counts.get_mut(name) {
        *count -= 1;
        if *count == 0 {
            counts.remove(name);
        }
    }
}

/// A ledger of 100,000 proofs, which is 800 requests with proofs per second, 100 of one user, and 26 with one key.
impl Default for MemoryProofLedger {
    fn default() -> Self {
        Self::new(100_000)
    }
}

#[async_trait]
impl ProofLedger for MemoryProofLedger {
    async fn claim(&self, proof: UsedProof<'_>) -> bool {
        self.claim_now(proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ledger_tests::check_proof_ledger;

    fn claim(ledger: &MemoryProofLedger, key: &str, id: u64, expires: u64, now: u64) -> bool {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&id.to_ne_bytes());
        let (expires, now) = (UnixTime::from_secs(expires), UnixTime::from_secs(now));
        // The user is the part before the slash.
        let principal = Principal::new(Some("issuer"), key.split('/').next().unwrap_or_default());
        ledger.claim_now(UsedProof { id: bytes, key, principal: &principal, expires, now })
    }

    /// Claims proofs until one is refused, and returns their number.
    fn fill(ledger: &MemoryProofLedger, key: &str, next: &mut u64) -> usize {
        let ids = std::iter::from_fn(|| {
            *next += 1;
            Some(*next)
        });
        ids.take_while(|id| claim(ledger, key, *id, 20, 5)).count()
    }

    #[test]
    fn each_proof_is_used_once_and_forgotten_in_time() {
        let ledger = MemoryProofLedger::new(2);
        assert!(claim(&ledger, "a", 1, 10, 0));
        assert!(!claim(&ledger, "a", 1, 10, 5));
        assert!(claim(&ledger, "b", 2, 20, 5));
        assert!(!claim(&ledger, "c", 3, 20, 5), "it is full, so it cannot be decided");
        assert!(claim(&ledger, "c", 3, 20, 10), "the first has expired");
        let used = ledger.used.lock().unwrap();
        assert_eq!((used.ids.len(), used.by_key.len()), (2, 2));
    }

    #[tokio::test]
    async fn memory_does_what_ledgers_do() {
        check_proof_ledger(async |limit| MemoryProofLedger::new(limit), 1_000_000).await;
    }

    /// The first refusal is logged, and then their number once a minute.
    #[test]
    fn refusals_are_logged_at_intervals() {
        let mut refusals = Refusals::default();
        let logged: Vec<_> = (0..=120).map(|second| refusals.add(UnixTime::from_secs(second))).collect();
        assert_eq!(logged.iter().flatten().copied().collect::<Vec<_>>(), [1, 60, 60]);
    }

    /// Clients that send as many proofs as they can leave room for others.
    #[test]
    fn no_key_takes_all() {
        let ledger = MemoryProofLedger::new(1216);
        let mut next = 0;
        let mut fill = |key: &str| fill(&ledger, key, &mut next);
        for key in 0..32 {
            assert_eq!(fill(&key.to_string()), 1216 / 32, "{key}");
            assert_eq!(fill("0"), 0);
        }
        assert_eq!(fill("further"), 0, "it is full");
        assert!(claim(&ledger, "a", 0, 40, 20), "all have expired");
        let used = ledger.used.lock().unwrap();
        assert_eq!((used.ids.len(), used.by_key.len(), used.by_principal.len()), (1, 1, 1));
    }

    /// However many keys it has.
    #[test]
    fn no_user_takes_all() {
        let ledger = MemoryProofLedger::new(3200);
        let mut next = 0;
        let mut fill = |key: &str| fill(&ledger, key, &mut next);
        let filled: Vec<usize> = (0..6).map(|key| fill(&format!("ann/{key}"))).collect();
        assert_eq!(filled, [100, 100, 100, 100, 0, 0], "an eighth");
        assert_eq!(fill("bob/0"), 100);
    }
}
