//! Tests for implementations of [`ProofLedger`].
//!
//! # Examples
//!
//! ```
//! use mcp_auth::server::{MemoryProofLedger, ledger_tests};
//!
//! # async fn test() {
//! ledger_tests::check_proof_ledger(async |limit| MemoryProofLedger::new(limit), 1_000_000).await;
//! # }
//! ```

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use mcp_server::Principal;

use super::ledger::{ProofLedger, UsedProof};
use crate::UnixTime;

/// Tests an implementation of [`ProofLedger`]. `make` creates an empty ledger of up to so many proofs, of which one key can have
/// a 32nd and one user an eighth, but at least one. `now` is the time in seconds since the Unix epoch, which has to be the real one if the ledger has a
/// clock of its own.
///
/// # Panics
///
/// Panics if the ledger does not behave as the trait requires.
pub async fn check_proof_ledger<L: ProofLedger>(make: impl AsyncFn(usize) -> L, now: u64) {
    proofs_are_used_once(&make(2).await, now).await;
    no_key_takes_all(&make(64).await, now).await;
    no_user_takes_all(&make(64).await, now).await;
    one_of_many_is_first(&make(64).await, now).await;
}

/// The key and the user of proofs.
struct Proof<'a> {
    key: &'a str,
    user: Principal,
}

impl<'a> Proof<'a> {
    fn of(user: &str, key: &'a str) -> Self {
        Self { key, user: Principal::new(None, user) }
    }

    fn used(&self, number: u64, now: u64, expires: u64) -> UsedProof<'_> {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let (now, expires) = (UnixTime::from_secs(now), UnixTime::from_secs(expires));
        UsedProof { id, key: self.key, principal: &self.user, expires, now }
    }
}

async fn proofs_are_used_once(ledger: &impl ProofLedger, now: u64) {
    let [a, b, c] = ["a", "b", "c"].map(|name| Proof::of(name, name));
    assert!(ledger.claim(a.used(1, now, now + 10)).await);
    assert!(!ledger.claim(a.used(1, now + 5, now + 10)).await, "it was used before");
    assert!(ledger.claim(b.used(2, now + 5, now + 20)).await, "another one was not");
    assert!(!ledger.claim(c.used(3, now + 5, now + 20)).await, "it is full, so it cannot be decided");
    assert!(ledger.claim(c.used(3, now + 10, now + 20)).await, "the first has expired");
    assert!(!ledger.claim(c.used(3, now + 10, now + 20)).await, "and this one was used");
}

async fn no_key_takes_all(ledger: &impl ProofLedger, now: u64) {
    let [a, b] = ["a", "b"].map(|name| Proof::of(name, name));
    for number in 0..2 {
        assert!(ledger.claim(a.used(number, now, now + 60)).await, "{number}");
    }
    assert!(!ledger.claim(a.used(2, now, now + 60)).await, "one key has a 32nd");
    assert!(ledger.claim(b.used(2, now, now + 60)).await, "others have room");
    assert!(ledger.claim(a.used(3, now + 60, now + 90)).await, "the first have expired");
}

async fn no_user_takes_all(ledger: &impl ProofLedger, now: u64) {
    let keys: Vec<_> = (0..9).map(|number| format!("key {number}")).collect();
    for (number, key) in (0..).zip(&keys) {
        let is_accepted = ledger.claim(Proof::of("a", key).used(number, now, now + 60)).await;
        assert_eq!(is_accepted, number < 8, "one user has an eighth, with as many keys as it likes: {number}");
    }
    assert!(ledger.claim(Proof::of("b", "other").used(20, now, now + 60)).await, "others have room");
    assert!(ledger.claim(Proof::of("a", &keys[8]).used(21, now + 60, now + 90)).await, "the first have expired");
}

async fn one_of_many_is_first(ledger: &impl ProofLedger, now: u64) {
    let proof = Proof::of("a", "a");
    let mut claims: Vec<Pin<Box<dyn Future<Output = bool> + Send + '_>>> =
        (0..16).map(|_| ledger.claim(proof.used(1, now, now + 60))).collect();
    let mut first = 0;
    poll_fn(|cx| {
        claims.retain_mut(|claim| match claim.as_mut().poll(cx) {
            Poll::Ready(is_first) => {
                first += usize::from(is_first);
                false
            }
            Poll::Pending => true,
        });
        if claims.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    assert_eq!(first, 1, "one of several calls is the first");
}
