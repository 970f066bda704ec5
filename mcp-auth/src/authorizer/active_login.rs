//! A login in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_transport_http::{Credential, InvalidCredential};

use super::clock::since_epoch;
use super::record::SavedGrant;
use crate::client::TokenType;

/// How long before their expiry tokens are refreshed, at most.
const LONGEST_MARGIN: Duration = Duration::from_secs(60);

/// Tokens in use, with the credential that requests are sent with.
#[derive(Debug)]
pub(super) struct ActiveLogin {
    pub(super) saved: SavedGrant,
    pub(super) credential: Credential,
    pub(super) origin: Origin,
    /// Whether the store has these tokens.
    pub(super) is_saved: bool,
    /// Whether the server has accepted the credential.
    is_accepted: AtomicBool,
    /// When to refresh the tokens, since 1970.
    refresh_at: Option<Duration>,
}

/// Where tokens come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Store,
    Refresh,
    Login,
}

/// Whether a token can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freshness {
    Fresh,
    /// It can be used, and should be replaced.
    Ageing,
    Expired,
}

impl ActiveLogin {
    pub(super) fn new(saved: SavedGrant, origin: Origin, is_saved: bool) -> Result<Self, InvalidCredential> {
        let tokens = &saved.grant.tokens;
        let credential = match tokens.token_type {
            TokenType::Bearer => Credential::bearer(tokens.access_token.expose()),
            TokenType::Dpop => Credential::dpop(tokens.access_token.expose()),
        };
        let credential = credential?.subject(Arc::clone(&saved.id));
        let refresh_at = tokens.expires_at.map(|expiry| {
            let margin = margin(expiry.since(saved.issued_at), getrandom::u32().unwrap_or_default());
            Duration::from_secs(expiry.as_secs()).saturating_sub(margin)
        });
        Ok(Self { saved, credential, origin, is_saved, is_accepted: AtomicBool::new(false), refresh_at })
    }

    pub(super) fn freshness(&self) -> Freshness {
        let Some((expiry, refresh_at)) = self.saved.grant.tokens.expires_at.zip(self.refresh_at) else {
            return Freshness::Fresh;
        };
        match since_epoch() {
            now if now >= Duration::from_secs(expiry.as_secs()) => Freshness::Expired,
            now if now >= refresh_at => Freshness::Ageing,
            _ => Freshness::Fresh,
        }
    }

    pub(super) fn is_refreshable(&self) -> bool {
        self.saved.grant.tokens.refresh_token.is_some()
    }

    /// Whether the tokens come from a refresh and were never accepted, although they are fresh.
    pub(super) fn is_refused_refresh(&self) -> bool {
        self.origin == Origin::Refresh && !self.is_accepted() && self.freshness() == Freshness::Fresh
    }

    /// Whether another login has the same tokens.
    pub(super) fn has_tokens_of(&self, other: &SavedGrant) -> bool {
        self.saved.grant.tokens.access_token == other.grant.tokens.access_token
    }

    pub(super) fn accept(&self) {
        self.is_accepted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.is_accepted.load(Ordering::Relaxed)
    }
}

/// Returns how long before their expiry tokens with this lifetime are refreshed: a quarter of it, 60 seconds at most, and up to a
/// half less at random, so that processes that share a login do not all refresh at the same time.
fn margin(lifetime: Duration, random: u32) -> Duration {
    let longest = LONGEST_MARGIN.min(lifetime / 4);
    longest - longest.mul_f64(f64::from(random) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_refreshed_ahead_of_expiry_at_different_times() {
        let hour = Duration::from_secs(3600);
        assert_eq!(margin(hour, 0), Duration::from_secs(60));
        assert_eq!(margin(hour, u32::MAX), Duration::from_secs(30));
        let short = Duration::from_secs(2);
        assert_eq!(margin(short, 0), Duration::from_millis(500));
        assert_eq!(margin(short, u32::MAX), Duration::from_millis(250));
        assert_eq!(margin(Duration::ZERO, 7), Duration::ZERO);
    }
}
