//! The verifier of JWTs.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use mcp_server::AuthInfo;
use serde_json::Value;

use super::algorithm::TokenAlgorithm;
use super::claims::{Claims, auth_info, check_times, read_claims};
use super::jws::Jws;
use super::key_cache::{KeyCache, NoKey};
use super::key_source::KeySource;
use super::public_key::choose_cryptography;
use crate::UnixTime;
use crate::server::clock::Clock;
use crate::server::verifier::{TokenError, TokenVerifier};

/// Verifies access tokens that are JWTs (RFC 7519, RFC 9068), with the keys of their issuer.
///
/// It checks signature, issuer, expiry (`exp`, which is required), `nbf` and type. The audience is checked by
/// [`ProtectedResource`](crate::server::ProtectedResource), which knows the address of the server.
///
/// Keys are loaded with the first token, and again every hour, and when a token has an unknown key, but not more often than
/// every 30 seconds. If they cannot be loaded, the old ones are used for up to 24 hours.
///
/// # Examples
///
/// ```
/// use mcp_auth::server::{JwtVerifier, StaticKeys};
///
/// # let jwks = r#"{"keys":[]}"#;
/// let verifier = JwtVerifier::new("https://issuer.example.com", StaticKeys::new(jwks));
/// ```
#[must_use]
pub struct JwtVerifier {
    issuer: String,
    keys: KeyCache,
    algorithms: Vec<TokenAlgorithm>,
    scope_claims: Vec<Cow<'static, str>>,
    leeway: Duration,
    requires_type: bool,
    remember_for: Duration,
    clock: Clock,
}

/// The types of access tokens: RFC 9068, and what most issuers have instead.
const ACCESS_TOKEN: &str = "at+jwt";
const ANY_TOKEN: &str = "JWT";

impl JwtVerifier {
    /// Creates a verifier of the tokens of an issuer. The issuer is compared exactly with the claim `iss`.
    pub fn new(issuer: impl Into<String>, keys: impl KeySource + 'static) -> Self {
        choose_cryptography();
        Self {
            issuer: issuer.into(),
            keys: KeyCache::new(keys),
            algorithms: TokenAlgorithm::ALL.to_vec(),
            scope_claims: Vec::new(),
            leeway: Duration::from_secs(30),
            requires_type: false,
            remember_for: Duration::from_secs(300),
            clock: Clock::default(),
        }
    }

    /// Sets the algorithms that tokens may be signed with. Defaults to all that there are.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = TokenAlgorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Adds a claim that has scopes, such as the `permissions` of Auth0 or the `roles` of Entra ID: a list, or a text with
    /// spaces. `scope` and `scp` are always read.
    pub fn scope_claim(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.scope_claims.push(name.into());
        self
    }

    /// Requires the type `at+jwt` of RFC 9068, so that no other JWT of the issuer can be mistaken for an access token. By
    /// default, tokens with the type `JWT` and without a type are accepted, too, which is what most issuers create.
    pub fn require_access_token_type(mut self) -> Self {
        self.requires_type = true;
        self
    }

    /// Sets by how much the clocks of issuer and server may differ. Defaults to 30 seconds.
    /// [`ProtectedResource`](crate::server::ProtectedResource) accepts a token for at most 60 seconds after its expiry, however
    /// long this is.
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// Sets the age from which keys are loaded again. Until that is done, the old ones are used. Defaults to an hour.
    pub fn key_refresh_interval(mut self, interval: Duration) -> Self {
        self.keys.intervals.refresh = interval;
        self
    }

    /// Sets the minimum time between two loads of keys. A token with a key that the issuer has just added may be refused for
    /// that long. Defaults to 30 seconds.
    pub fn key_retry_interval(mut self, interval: Duration) -> Self {
        self.keys.intervals.retry = interval;
        self
    }

    /// Sets how long keys are used while no newer ones can be loaded. Defaults to 24 hours.
    pub fn max_key_age(mut self, age: Duration) -> Self {
        self.keys.intervals.max_age = age;
        self
    }

    /// Sets for how long a valid token is remembered before it is verified again: a key that the issuer withdraws counts for
    /// that long. Defaults to 5 minutes.
    pub fn remember_for(mut self, time: Duration) -> Self {
        self.remember_for = time;
        self
    }

    /// Sets the clock that tokens are judged by, for tests. Defaults to the system's.
    pub fn clock(mut self, now: impl Fn() -> UnixTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    async fn claims(&self, token: &str) -> Result<Claims, TokenError> {
        let jws = Jws::parse(token, &self.algorithms).map_err(TokenError::invalid)?;
        let is_any = jws.header.typ.is_none() || jws.has_type(&[ANY_TOKEN]);
        if !(jws.has_type(&[ACCESS_TOKEN]) || is_any && !self.requires_type) {
            return Err(TokenError::invalid("it has the type of another kind of token"));
        }
        let id = jws.header.kid.as_deref();
        let keys = self.keys.with_key(id, jws.algorithm).await.map_err(|missing| match missing {
            NoKey::Unknown => TokenError::invalid("its key is unknown"),
            NoKey::Unavailable => TokenError::unavailable("the keys of the issuer are not known"),
        })?;
        let key = keys.find(id, jws.algorithm).ok_or_else(|| TokenError::invalid("its key is unknown"))?;
        let claims = jws.verify(key).map_err(TokenError::invalid)?;
        read_claims(&claims).ok_or_else(|| TokenError::invalid("its claims cannot be read"))
    }
}

#[async_trait]
impl TokenVerifier for JwtVerifier {
    async fn verify(&self, token: &str) -> Result<AuthInfo, TokenError> {
        let claims = self.claims(token).await?;
        if claims.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            return Err(TokenError::invalid("it is from another issuer"));
        }
        check_times(&claims, self.clock.now(), self.leeway).map_err(TokenError::invalid)?;
        auth_info(Some(&self.issuer), claims, &self.scope_claims)
    }

    fn remember_for(&self) -> Duration {
        self.remember_for
    }
}

impl fmt::Debug for JwtVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtVerifier")
            .field("issuer", &self.issuer)
            .field("algorithms", &self.algorithms)
            .field("key_intervals", &self.keys.intervals)
            .finish_non_exhaustive()
    }
}
