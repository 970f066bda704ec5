//! Tokens that continue what was begun with older ones.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::auth::info::AuthInfo;

/// The newest tokens of one user with one client, which all their tokens share.
///
/// A stream that was opened with an older token continues as long as a newer one with the same scopes is valid: see
/// [`AuthInfo::valid_until`]. Middleware that makes [`AuthInfo`]s keeps one for each pair of user and client, passes it to
/// [`AuthInfoBuilder::renewal`](crate::AuthInfoBuilder::renewal), and calls [`renew`](Self::renew) with each token whose request
/// it lets in. Clones are the same.
#[derive(Clone, Default)]
pub struct Renewal(Arc<Mutex<Vec<Candidate>>>);

/// A token that may renew others. None [`replaces`](Self::replaces) another.
struct Candidate {
    expires_at: Option<SystemTime>,
    /// In order.
    scopes: Vec<Box<str>>,
}

/// The maximum number of tokens with different scopes.
const MAX_CANDIDATES: usize = 8;

impl Candidate {
    fn has<'a>(&self, mut scopes: impl Iterator<Item = &'a str>) -> bool {
        scopes.all(|scope| self.scopes.binary_search_by(|there| (**there).cmp(scope)).is_ok())
    }

    /// Whether everything that another token renews is renewed by this one for at least as long.
    fn replaces(&self, other: &Self) -> bool {
        !is_before(self.expires_at, other.expires_at) && self.has(other.scopes.iter().map(|scope| &**scope))
    }
}

/// Compares expiry times; `None` is never.
fn is_before(one: Option<SystemTime>, other: Option<SystemTime>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one < other,
        (one, None) => one.is_some(),
        (None, Some(_)) => false,
    }
}

impl Renewal {
    /// Creates one without a token.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a token that was verified, unless one that expires later has all its scopes. Of tokens with different scopes, the
    /// eight that expire last are kept.
    pub fn renew(&self, token: &AuthInfo) {
        let new = Candidate { expires_at: token.expires_at(), scopes: token.scopes().map(Into::into).collect() };
        let mut candidates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if candidates.iter().any(|candidate| candidate.replaces(&new)) {
            return;
        }
        candidates.retain(|candidate| !new.replaces(candidate));
        // The one that expires last is the first.
        let index = candidates.partition_point(|candidate| !is_before(candidate.expires_at, new.expires_at));
        candidates.insert(index, new);
        candidates.truncate(MAX_CANDIDATES);
    }

    /// Returns until when a token is renewed: the latest expiry of those that have all its scopes.
    pub(crate) fn until(&self, token: &AuthInfo) -> Option<Option<SystemTime>> {
        let candidates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        candidates.iter().find(|candidate| candidate.has(token.scopes())).map(|candidate| candidate.expires_at)
    }

    /// Whether nothing else uses it.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl fmt::Debug for Renewal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Renewal(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use mcp_kernel::server::Principal;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn token(renewal: &Renewal, scopes: &[&str], expires_at: u64) -> AuthInfo {
        let builder = AuthInfo::builder(Principal::new(None, "ann")).scopes(scopes.iter().copied());
        let token = builder.renewal(renewal.clone()).expires_at(at(expires_at)).build();
        renewal.renew(&token);
        token
    }

    #[test]
    fn newer_tokens_with_the_same_scopes_renew() {
        let renewal = Renewal::new();
        let first = token(&renewal, &["a"], 100);
        assert_eq!(first.valid_until(), Some(at(100)));
        token(&renewal, &["b"], 150);
        assert_eq!(first.valid_until(), Some(at(100)), "the newer one has other scopes");
        let second = token(&renewal, &["a", "b"], 200);
        assert_eq!((first.valid_until(), second.valid_until()), (Some(at(200)), Some(at(200))));
        let older = token(&renewal, &["a"], 120);
        assert_eq!((older.valid_until(), first.valid_until()), (Some(at(200)), Some(at(200))));
        assert_eq!((first.expires_at(), renewal.is_unused()), (Some(at(100)), false));
        let lasting = AuthInfo::builder(Principal::new(None, "ann")).scopes(["a", "b"]).build();
        renewal.renew(&lasting);
        assert_eq!(first.valid_until(), None, "the newest does not expire");
        drop((first, second, older));
        assert!(renewal.is_unused());
    }

    /// A token with other scopes does not hide one that renews.
    #[test]
    fn tokens_with_different_scopes_renew_independently() {
        let renewal = Renewal::new();
        let first = token(&renewal, &["a"], 100);
        token(&renewal, &["a"], 200);
        let other = token(&renewal, &["b"], 300);
        assert_eq!((first.valid_until(), other.valid_until()), (Some(at(200)), Some(at(300))));
        token(&renewal, &["a", "b"], 250);
        assert_eq!((first.valid_until(), other.valid_until()), (Some(at(250)), Some(at(300))));
        assert_eq!(renewal.0.lock().unwrap().len(), 2, "others are not needed");
        for number in 0..100 {
            token(&renewal, &[number.to_string().as_str()], 1000 + number);
        }
        assert_eq!(renewal.0.lock().unwrap().len(), MAX_CANDIDATES);
        assert_eq!(first.valid_until(), Some(at(100)), "those that expire first are dropped");
    }
}
