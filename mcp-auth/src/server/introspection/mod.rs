//! Tokens that the authorization server is asked about (RFC 7662).

mod requests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_server::AuthInfo;
use serde_json::Value;

use self::requests::{IntrospectionRequests, TokenKind};
use super::clock::Clock;
use super::jwt::claims::{auth_info, check_not_before, check_times, read_claims};
use super::token_cache::TokenCache;
use super::token_digest::TokenDigest;
use super::verifier::{TokenError, TokenVerifier};
use crate::UnixTime;

/// Asks an authorization server about a token. `HttpIntrospection` does it with HTTP (feature `reqwest`).
#[async_trait]
pub trait IntrospectionEndpoint: Send + Sync {
    /// Returns the introspection response: a JSON object. At most one call for each token is in progress.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no response: [`TokenError::Unavailable`], unless it is because of the token itself. After
    /// several of these in a row, the endpoint is called less often.
    async fn introspect(&self, token: &str) -> Result<Vec<u8>, TokenError>;
}

/// Verifies access tokens by asking the authorization server (RFC 7662), for tokens that are not JWTs, or that must not be
/// accepted long after they were revoked.
///
/// Active tokens are remembered for 30 seconds, and inactive ones for 10. The authorization server has to tell the audience
/// (`aud`), which [`ProtectedResource`](super::ProtectedResource) checks. If it tells a `token_type`, that has to be `Bearer` or
/// `DPoP`.
///
/// Tokens of more than 8 KiB are not valid, and are not introspected.
///
/// Requests that need the same token wait for one introspection. At most 64 tokens are introspected at the same time; requests
/// with further ones get 503. If that fails five times in a row, tokens are introspected one by one, with pauses of 1 to 30
/// seconds. This is counted separately for tokens that have been active before, so that a client without a valid token cannot
/// cause pauses for them.
#[must_use]
pub struct IntrospectionVerifier {
    issuer: Arc<str>,
    requests: IntrospectionRequests,
    inactive: Arc<TokenCache<()>>,
    /// The tokens that have been active before.
    known: Arc<TokenCache<()>>,
    remember_for: Duration,
    clock: Clock,
}

/// How long and how many inactive tokens are remembered.
const INACTIVE_FOR: Duration = Duration::from_secs(10);
const MAX_INACTIVE: usize = 1000;
/// How long and how many tokens are known to have been active.
const KNOWN_FOR: Duration = Duration::from_secs(24 * 3600);
const MAX_KNOWN: usize = 10_000;
/// The maximum length of a token. Longer ones could exceed what the endpoint accepts, which looks like a failure.
const MAX_TOKEN_BYTES: usize = 8 * 1024;
/// The maximum length of a response.
const MAX_BYTES: usize = 64 * 1024;

impl IntrospectionVerifier {
    /// Creates a verifier of the tokens of an issuer.
    pub fn new(issuer: impl Into<String>, endpoint: impl IntrospectionEndpoint + 'static) -> Self {
        Self {
            issuer: issuer.into().into(),
            requests: IntrospectionRequests::new(endpoint),
            inactive: Arc::new(TokenCache::new(MAX_INACTIVE)),
            known: Arc::new(TokenCache::new(MAX_KNOWN)),
            remember_for: Duration::from_secs(30),
            clock: Clock::default(),
        }
    }

    /// Sets for how long an active token is remembered: a token that is revoked is accepted for that long. Defaults to 30
    /// seconds.
    pub fn remember_for(mut self, time: Duration) -> Self {
        self.remember_for = time;
        self
    }

    /// Sets the clock that tokens are judged by, for tests. Defaults to the system's.
    pub fn clock(mut self, now: impl Fn() -> UnixTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }
}

#[async_trait]
impl TokenVerifier for IntrospectionVerifier {
    async fn verify(&self, token: &str) -> Result<AuthInfo, TokenError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::invalid("it is too long to be introspected"));
        }
        let digest = TokenDigest::of(token.as_bytes());
        let digest = digest.ok_or_else(|| TokenError::unavailable("the random source of the system has failed"))?;
        let now = self.clock.now();
        if self.inactive.contains(&digest, now) {
            return Err(TokenError::invalid("it is not active"));
        }
        let kind = if self.known.contains(&digest, now) { TokenKind::Known } else { TokenKind::Unknown };
        let (issuer, clock) = (Arc::clone(&self.issuer), self.clock.clone());
        let (inactive, known) = (Arc::clone(&self.inactive), Arc::clone(&self.known));
        let check = move |response: Result<Vec<u8>, TokenError>| {
            let now = clock.now();
            let checked = response.and_then(|response| check_response(&issuer, &response, now));
            match &checked {
                Ok(_) => known.insert(digest, 0, (), now.after(KNOWN_FOR), now),
                Err(TokenError::Invalid(_)) => inactive.insert(digest, 0, (), now.after(INACTIVE_FOR), now),
                Err(TokenError::Unavailable(_)) => {}
            }
            checked
        };
        self.requests.send((digest, kind), token, check).await
    }

    fn remember_for(&self) -> Duration {
        self.remember_for
    }
}

impl fmt::Debug for IntrospectionVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntrospectionVerifier").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// Decides about a token by the introspection response.
fn check_response(expected_issuer: &str, response: &[u8], now: UnixTime) -> Result<AuthInfo, TokenError> {
    if response.len() > MAX_BYTES {
        return Err(TokenError::unavailable("the introspection response is too large"));
    }
    let claims = str::from_utf8(response).ok().and_then(read_claims);
    let claims = claims.ok_or_else(|| TokenError::unavailable("the introspection response cannot be read"))?;
    if claims.get("active") != Some(&Value::Bool(true)) {
        return Err(TokenError::invalid("it is not active"));
    }
    // Not all authorization servers tell it, but one that tells another is not the one that was configured.
    if claims.get("iss").is_some_and(|issuer| issuer.as_str() != Some(expected_issuer)) {
        return Err(TokenError::invalid("it is from another issuer"));
    }
    // A refresh token can be active, too.
    let is_access_token = |name: &str| ["Bearer", "DPoP"].iter().any(|known| known.eq_ignore_ascii_case(name));
    let token_type = claims.get("token_type").filter(|name| !name.is_null());
    if token_type.is_some_and(|name| !name.as_str().is_some_and(is_access_token)) {
        return Err(TokenError::invalid("it is not an access token"));
    }
    // Not all authorization servers tell when a token expires.
    let check = if claims.contains_key("exp") { check_times } else { check_not_before };
    check(&claims, now, Duration::ZERO).map_err(TokenError::invalid)?;
    auth_info(Some(expected_issuer), claims, &[])
}
