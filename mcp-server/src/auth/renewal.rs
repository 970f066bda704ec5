//! Newer tokens for the same.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::auth::info::AuthInfo;

/// The newest token of one user with one client, which all their tokens share.
///
/// A stream that was opened with an older token continues as long as a newer one with the same scopes is valid: see
/// [`AuthInfo::valid_until`]. Middleware that makes [`AuthInfo`]s keeps one for each pair of user and client, passes it to
/// [`AuthInfoBuilder::renewal`](crate::AuthInfoBuilder::renewal), and calls [`renew`](Self::renew) with each token that it has
/// verified. Clones are the same.
#[derive(Clone, Default)]
pub struct Renewal(Arc<Mutex<Option<Newest>>>);

struct Newest {
    expires_at: Option<SystemTime>,
    scopes: Vec<Box<str>>,
}

impl Renewal {
    /// Creates one without a token.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records a token that was verified, if it expires later than the newest before.
    pub fn renew(&self, token: &AuthInfo) {
        let scopes = token.scopes().map(Into::into).collect();
        let expires_at = token.expires_at();
        let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_newer = newest.as_ref().is_none_or(|newest| match (newest.expires_at, expires_at) {
            (Some(before), Some(now)) => before < now,
            (before, None) => before.is_some(),
            (None, Some(_)) => false,
        });
        if is_newer {
            *newest = Some(Newest { expires_at, scopes });
        }
    }

    /// Returns until when a token is renewed: the expiry of the newest one, if that has all its scopes.
    pub(crate) fn until(&self, token: &AuthInfo) -> Option<Option<SystemTime>> {
        let newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = newest.as_ref()?;
        let has = |scope: &str| newest.scopes.binary_search_by(|there| (**there).cmp(scope)).is_ok();
        token.scopes().all(has).then_some(newest.expires_at)
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
}
