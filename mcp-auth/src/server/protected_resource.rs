//! The description of a protected server.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand;
use mcp_server::AuthInfo;

use super::clock::Clock;
use super::dpop::{MemoryProofLedger, Nonces, ProofLedger, ProofPolicy};
use super::guard::Guard;
use super::jwt::{JwtVerifier, JwtVerifiers, TokenAlgorithm};
use super::layer::ProtectLayer;
use super::metadata::MetadataService;
use super::renewals::Renewals;
use super::token_cache::TokenCache;
use super::token_digest::TokenDigest;
use super::verifier::TokenVerifier;
use crate::metadata::{Address, ProtectedResourceMetadata, UnsafeAddress};
use crate::{Scopes, UnixTime};

/// A server that demands access tokens: an OAuth resource server (RFC 6750, RFC 9728).
///
/// Its [`layer`](Self::layer) goes around an `HttpService`, or any other HTTP service. It verifies the token of each request,
/// and refuses requests without a valid one with a challenge that tells clients where to get one. What the token says is put
/// into the extensions of the request as an `Arc<AuthInfo>`; the `Principal` of a request follows from it. The token itself is
/// removed, so that it cannot be passed on. Requests for the metadata of the server get it without a token.
///
/// A tool, prompt, resource or method can need further scopes (`Tool::requires_scope`); the layer then writes the challenge.
///
/// # Streams and sessions
///
/// A stream of notifications ends a minute after the token of its request has expired, unless the same user has sent a request
/// with a newer token for the same client and at least the same scopes: then it ends with that one. A comment in the stream tells the reason,
/// and `subscriptions/listen` gets its result. Handlers of other requests may finish.
///
/// A session ends with the newest token of its user as well, two minutes after it has expired: clocks differ, and clients need
/// some time to get a new token. Each request in it needs a valid token of the user who started it.
///
/// # Examples
///
/// ```
/// use mcp_auth::server::{JwtVerifier, ProtectedResource, StaticKeys};
///
/// # let jwks = r#"{"keys":[]}"#;
/// let auth = ProtectedResource::new("https://api.example.com/mcp")
///     .authorization_server("https://issuer.example.com")
///     .verifier(JwtVerifier::new("https://issuer.example.com", StaticKeys::new(jwks)))
///     .scopes_required(["mcp:use"])
///     .layer()?;
/// # Ok::<(), mcp_auth::server::InvalidResource>(())
/// ```
#[must_use]
pub struct ProtectedResource {
    resource: String,
    authorization_servers: Vec<String>,
    verifier: Option<Box<dyn TokenVerifier>>,
    /// The verifiers of issuers whose keys their metadata names.
    pub(super) issuers: Vec<JwtVerifier>,
    audiences: Vec<String>,
    accepts_any_audience: bool,
    accept_only: Option<AcceptOnly>,
    required: Vec<String>,
    supported: Option<Vec<String>>,
    implied: Option<ImpliedScopes>,
    name: Option<String>,
    documentation: Option<String>,
    max_token_bytes: usize,
    max_remembered_tokens: usize,
    requires_dpop: bool,
    ledger: Arc<dyn ProofLedger>,
    nonce_key: Option<NonceKey>,
    proof_window: Duration,
    clock: Clock,
}

/// Decides whether a token that is valid otherwise is accepted.
pub(crate) type AcceptOnly = Box<dyn Fn(&AuthInfo) -> bool + Send + Sync>;

/// Returns the scopes that a scope includes.
pub(crate) type ImpliedScopes = Box<dyn Fn(&str) -> Vec<String> + Send + Sync>;

enum NonceKey {
    Random,
    Shared([u8; 32]),
}

/// Why a server cannot be protected as it is described.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidResource {
    /// The address of the server cannot be used.
    #[error("the resource `{0}` is not valid: {1}")]
    Resource(String, UnsafeAddress),
    /// The issuer of an authorization server cannot be used.
    #[error("the authorization server `{0}` is not valid: {1}")]
    AuthorizationServer(String, UnsafeAddress),
    /// There is no authorization server.
    #[error("no authorization server: name one with `ProtectedResource::authorization_server`")]
    NoAuthorizationServer,
    /// There is no verifier.
    #[error("no verifier of tokens: set one with `ProtectedResource::verifier`")]
    NoVerifier,
    /// There are a verifier and issuers with verifiers of their own.
    #[error(
        "two ways to verify tokens: `ProtectedResource::issuer` has a verifier of its own, so beside `verifier` name issuers with \
         `authorization_server`"
    )]
    SeveralVerifiers,
    /// There are two verifiers for the tokens of one issuer.
    #[error("two verifiers for the tokens of the issuer `{0}`")]
    DuplicateIssuer(String),
    /// A scope has characters that are not allowed.
    #[error("the scope `{0}` is not valid: only printable ASCII without space, `\"` and `\\` is")]
    Scope(String),
    /// The random source of the operating system failed.
    #[error("the random source of the operating system failed")]
    NoRandomness,
}

impl From<InvalidResource> for io::Error {
    fn from(error: InvalidResource) -> Self {
        Self::new(io::ErrorKind::InvalidInput, error)
    }
}

impl ProtectedResource {
    /// Describes the server with this address, as clients see it: `https`, or `http` on this machine. It is the audience that
    /// tokens must have.
    pub fn new(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            authorization_servers: Vec::new(),
            verifier: None,
            issuers: Vec::new(),
            audiences: Vec::new(),
            accepts_any_audience: false,
            accept_only: None,
            required: Vec::new(),
            supported: None,
            implied: None,
            name: None,
            documentation: None,
            max_token_bytes: 16 * 1024,
            max_remembered_tokens: 10_000,
            requires_dpop: false,
            ledger: Arc::new(MemoryProofLedger::default()),
            nonce_key: None,
            proof_window: Duration::from_secs(60),
            clock: Clock::default(),
        }
    }

    /// Adds the issuer of an authorization server that issues tokens for this server. At least one is required.
    pub fn authorization_server(mut self, issuer: impl Into<String>) -> Self {
        self.authorization_servers.push(issuer.into());
        self
    }

    /// Sets how tokens are verified. Required, unless there is an `issuer`, which has a verifier of its own.
    /// [`JwtVerifiers`] verifies the tokens of several issuers.
    pub fn verifier(mut self, verifier: impl TokenVerifier + 'static) -> Self {
        self.verifier = Some(Box::new(verifier));
        self
    }

    /// Adds an audience that tokens may have instead of the address of the server, such as the identifier that an API has at
    /// its authorization server.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Accepts tokens that were issued for other servers.
    ///
    /// Each of these servers can then use the tokens of its users here, and everything that the users may do here. Do this
    /// only if the authorization server has no other resource server, and cannot put an audience into its tokens.
    pub fn accept_any_audience_dangerously(mut self) -> Self {
        self.accepts_any_audience = true;
        self
    }

    /// Accepts only the tokens for which a function returns `true`; others are not valid. Defaults to all that are verified.
    ///
    /// Needed for issuers that issue tokens for this server to users who may not use it, such as every customer of a provider.
    ///
    /// The function is called when a token is verified, and its result is remembered with the token: until that expires, and for
    /// at most [`TokenVerifier::remember_for`]. So it should depend on the token only. Use a middleware for decisions that can
    /// change meanwhile, or set [`max_remembered_tokens`](Self::max_remembered_tokens) to 0.
    ///
    /// ```
    /// # use mcp_auth::server::ProtectedResource;
    /// # let resource = ProtectedResource::new("https://api.example.com/mcp");
    /// let resource = resource.accept_only(|token| token.claim::<String>("org_id").as_deref() == Some("org_4711"));
    /// ```
    pub fn accept_only(mut self, is_accepted: impl Fn(&AuthInfo) -> bool + Send + Sync + 'static) -> Self {
        self.accept_only = Some(Box::new(is_accepted));
        self
    }

    /// Sets the scopes that every request needs. Defaults to none.
    pub fn scopes_required<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.required = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the scopes that the metadata names: those that a client needs for basic use. Defaults to the required ones.
    pub fn scopes_supported<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.supported = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Sets which scopes a scope includes, and these in turn. Tokens then have all of them. Defaults to none.
    ///
    /// ```
    /// # use mcp_auth::server::ProtectedResource;
    /// # let resource = ProtectedResource::new("https://api.example.com/mcp");
    /// let resource = resource.implied_scopes(|scope| match scope.strip_suffix(":write") {
    ///     Some(area) => vec![format!("{area}:read")],
    ///     None => Vec::new(),
    /// });
    /// ```
    pub fn implied_scopes(mut self, implied: impl Fn(&str) -> Vec<String> + Send + Sync + 'static) -> Self {
        self.implied = Some(Box::new(implied));
        self
    }

    /// Sets the name of the server, for people who grant access.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the address of documentation for developers.
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Sets the maximum length of a token in bytes; longer ones are not valid. Defaults to 16 KiB.
    pub fn max_token_bytes(mut self, bytes: usize) -> Self {
        self.max_token_bytes = bytes;
        self
    }

    /// Sets how many verified tokens are remembered, until they expire or for the time that the verifier allows. Their keyed
    /// digests are kept, not the tokens. Tokens that are used the least are forgotten first. Defaults to 10,000.
    pub fn max_remembered_tokens(mut self, count: usize) -> Self {
        self.max_remembered_tokens = count;
        self
    }

    /// Accepts only tokens that are bound to a key of the client, with a proof (DPoP, RFC 9449). By default others are
    /// accepted, too, but a token that is bound is never accepted without a proof.
    pub fn require_dpop(mut self) -> Self {
        self.requires_dpop = true;
        self
    }

    /// Sets where used proofs are recorded. Defaults to the memory of this instance; instances that serve the same clients
    /// must share a ledger.
    pub fn proof_ledger(mut self, ledger: impl ProofLedger + 'static) -> Self {
        self.ledger = Arc::new(ledger);
        self
    }

    /// Sets by how much the time of a proof may differ from that of this server. Defaults to 60 seconds.
    pub fn proof_window(mut self, window: Duration) -> Self {
        self.proof_window = window;
        self
    }

    /// Demands nonces of this server in proofs, so that proofs cannot be made in advance. Clients need an additional request
    /// to get the first. They are made with a random key.
    pub fn dpop_nonces(mut self) -> Self {
        self.nonce_key = Some(NonceKey::Random);
        self
    }

    /// As [`dpop_nonces`](Self::dpop_nonces), with a secret key that instances share.
    pub fn dpop_nonces_with_key(mut self, key: [u8; 32]) -> Self {
        self.nonce_key = Some(NonceKey::Shared(key));
        self
    }

    /// Sets the clock that tokens and proofs are judged by, for tests. Defaults to the system's.
    pub fn clock(mut self, now: impl Fn() -> UnixTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    /// Creates the layer.
    ///
    /// # Errors
    ///
    /// Returns an error if something is missing or not valid.
    pub fn layer(self) -> Result<ProtectLayer, InvalidResource> {
        let address =
            Address::parse(&self.resource).map_err(|error| InvalidResource::Resource(self.resource.clone(), error))?;
        for issuer in &self.authorization_servers {
            let invalid = |error| InvalidResource::AuthorizationServer(issuer.clone(), error);
            // RFC 8414, section 2: an issuer has no query, and clients refuse one that has.
            if Address::parse(issuer).map_err(invalid)?.url().query().is_some() {
                return Err(invalid(UnsafeAddress::Query));
            }
        }
        if self.authorization_servers.is_empty() {
            return Err(InvalidResource::NoAuthorizationServer);
        }
        let verifier = match (self.verifier, self.issuers) {
            (None, issuers) if issuers.is_empty() => return Err(InvalidResource::NoVerifier),
            (None, issuers) => Box::new(JwtVerifiers::new(issuers)?),
            (Some(verifier), issuers) if issuers.is_empty() => verifier,
            (Some(_), _) => return Err(InvalidResource::SeveralVerifiers),
        };
        let required = scopes(self.required)?;
        let supported = self.supported.map(scopes).transpose()?;
        let mut audiences = self.audiences;
        // Without a path, clients write the address with and without the slash.
        if address.url().path() == "/" && address.url().query().is_none() {
            audiences.extend([address.origin(), format!("{}/", address.origin())]);
        }
        audiences.push(self.resource.clone());
        let metadata = {
            let mut metadata = ProtectedResourceMetadata::new(self.resource, self.authorization_servers);
            let listed = supported.as_ref().unwrap_or(&required);
            metadata.scopes_supported =
                Some(listed.iter().map(str::to_owned).collect::<Vec<_>>()).filter(|all| !all.is_empty());
            metadata.bearer_methods_supported = Some(vec!["header".to_owned()]);
            metadata.resource_name = self.name;
            metadata.resource_documentation = self.documentation;
            let algorithms = TokenAlgorithm::ALL.iter().map(ToString::to_string).collect();
            metadata.dpop_signing_alg_values_supported = Some(algorithms);
            metadata.dpop_bound_access_tokens_required = self.requires_dpop.then_some(true);
            MetadataService::new(&metadata, address.url())
        };
        let nonces = match self.nonce_key {
            None => None,
            Some(NonceKey::Shared(key)) => Some(Nonces::new(&key)),
            Some(NonceKey::Random) => {
                let mut key = [0; 32];
                rand::fill(&mut key).map_err(|_| InvalidResource::NoRandomness)?;
                Some(Nonces::new(&key))
            }
        };
        super::jwt::public_key::choose_cryptography();
        TokenDigest::of(&[]).ok_or(InvalidResource::NoRandomness)?;
        Ok(ProtectLayer(Arc::new(Guard {
            verifier,
            url: address.url().clone(),
            audiences: (!self.accepts_any_audience).then_some(audiences),
            accept_only: self.accept_only,
            required,
            implied: self.implied,
            remembered: TokenCache::new(self.max_remembered_tokens),
            renewals: Renewals::default(),
            max_token_bytes: self.max_token_bytes,
            proofs: ProofPolicy { ledger: self.ledger, nonces, window: self.proof_window },
            requires_dpop: self.requires_dpop,
            metadata,
            clock: self.clock,
        })))
    }
}

/// Checks scopes. `offline_access` concerns clients and authorization servers only, so it is left out.
fn scopes(names: Vec<String>) -> Result<Scopes, InvalidResource> {
    for name in &names {
        let parsed: Result<Scopes, _> = name.parse();
        if !parsed.is_ok_and(|scopes| scopes.iter().eq([&**name])) {
            return Err(InvalidResource::Scope(name.clone()));
        }
    }
    Ok(names.into_iter().filter(|name| name != "offline_access").collect())
}

impl fmt::Debug for ProtectedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtectedResource")
            .field("resource", &self.resource)
            .field("authorization_servers", &self.authorization_servers)
            .field("scopes_required", &self.required)
            .finish_non_exhaustive()
    }
}
