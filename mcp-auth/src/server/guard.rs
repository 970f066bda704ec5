//! Deciding about requests.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request};
use mcp_server::{AuthInfo, BoxFuture, Principal, Renewal};
use serde_json::Value;
use url::Url;

use super::clock::{Clock, unix_time};
use super::credentials::{Credentials, NoCredentials, Scheme};
use super::dpop::{InvalidProof, ProofCheck, ProofPolicy};
use super::metadata::MetadataService;
use super::protected_resource::{AcceptOnly, ImpliedScopes};
use super::refusal::{ChallengeContext, Refusal};
use super::renewals::Renewals;
use super::token_cache::TokenCache;
use super::token_digest::TokenDigest;
use super::verifier::{TokenError, TokenVerifier};
use crate::{Scopes, UnixTime};

/// Decides which requests are let in.
pub(crate) struct Guard {
    pub(crate) verifier: Box<dyn TokenVerifier>,
    /// The address of the server, as clients see it.
    pub(crate) url: Url,
    /// The audiences that tokens may have; absent if that does not matter.
    pub(crate) audiences: Option<Vec<String>>,
    pub(crate) accept_only: Option<AcceptOnly>,
    pub(crate) required: Scopes,
    pub(crate) implied: Option<ImpliedScopes>,
    pub(crate) remembered: TokenCache<Verified>,
    pub(crate) renewals: Renewals,
    pub(crate) max_token_bytes: usize,
    pub(crate) proofs: ProofPolicy,
    pub(crate) requires_dpop: bool,
    pub(crate) metadata: MetadataService,
    pub(crate) clock: Clock,
}

/// A token that was verified.
#[derive(Clone)]
pub(crate) struct Verified {
    auth: Arc<AuthInfo>,
    /// The thumbprint of the key that the token is bound to.
    key: Option<Arc<str>>,
    /// Whether it has the scopes that all requests need.
    has_required_scopes: bool,
    /// What the token renews once a request with it is allowed; absent after that.
    renewal: Option<Renewal>,
    /// Until when it is remembered.
    until: UnixTime,
}

/// What is known of a request after its head was looked at.
pub(crate) enum Checked {
    /// The token was verified before.
    Allowed(Arc<AuthInfo>),
    Refused(Scheme, Refusal),
    /// The token or its proof have to be verified.
    Pending(BoxFuture<Result<Allowed, (Scheme, Refusal)>>),
}

/// A request that is let in.
pub(crate) struct Allowed {
    pub(crate) auth: Arc<AuthInfo>,
    pub(crate) scheme: Scheme,
    /// The nonce for the next proof, if the client needs a new one.
    pub(crate) nonce: Option<HeaderValue>,
}

/// How long after its expiry a token can still be accepted: verifiers may allow less.
const MAX_LEEWAY: Duration = Duration::from_secs(60);
/// The maximum number of scopes that implied ones are added to.
const MAX_SCOPES: usize = 1000;

impl Guard {
    /// Looks at the head of a request, and takes its credentials away.
    pub(crate) fn check<B>(self: &Arc<Self>, request: &mut Request<B>) -> Checked {
        if request.uri().query().is_some_and(has_token) {
            // Addresses end up in logs, so such a token must not be used any more.
            return self.refuse(Refusal::Malformed("tokens must not be in the query"));
        }
        let credentials = match Credentials::take(request.headers_mut()) {
            Ok(credentials) => credentials,
            Err(NoCredentials::Missing) => return self.refuse(Refusal::NoToken),
            Err(NoCredentials::Malformed(reason)) => return self.refuse(Refusal::Malformed(reason)),
        };
        if credentials.token().len() > self.max_token_bytes {
            return Checked::Refused(credentials.scheme, Refusal::InvalidToken);
        }
        let now = self.clock.now();
        // There was a key when the layer was created.
        let Some(digest) = TokenDigest::of(credentials.token()) else {
            return Checked::Refused(credentials.scheme, Refusal::Unavailable);
        };
        let needs_no_proof = credentials.scheme == Scheme::Bearer && !self.requires_dpop;
        let remembered = self.remembered.read(&digest, now, |verified| match verified {
            // Nearly all requests need no more than this of a remembered token.
            Verified { auth, key: None, has_required_scopes: true, renewal: None, .. } if needs_no_proof => {
                Ok(Arc::clone(auth))
            }
            verified => Err(verified.clone()),
        });
        let verified = match remembered {
            Some(Ok(auth)) => return Checked::Allowed(auth),
            Some(Err(verified)) => Some(verified),
            None => None,
        };
        let scheme = credentials.scheme;
        let verification = Verification { credentials, digest, verified, method: request.method().clone() };
        let url = self.url_of(request.uri().path());
        let guard = Arc::clone(self);
        Checked::Pending(Box::pin(async move {
            guard.verify(verification, &url, now).await.map_err(|refusal| (scheme, refusal))
        }))
    }

    /// What a challenge has to say.
    pub(crate) fn challenge_context(&self, scheme: Scheme) -> ChallengeContext<'_> {
        let scheme = if self.requires_dpop { Scheme::Dpop } else { scheme };
        ChallengeContext { scheme, metadata_url: self.metadata.url(), scopes: Cow::Borrowed(&self.required) }
    }

    fn refuse(&self, refusal: Refusal) -> Checked {
        Checked::Refused(Scheme::default(), refusal)
    }

    /// The address of a request, as the client sees it, if nothing between has changed the path.
    fn url_of(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_query(None);
        url.set_path(path);
        url
    }

    async fn verify(&self, request: Verification, url: &Url, now: UnixTime) -> Result<Allowed, Refusal> {
        let Verification { credentials, digest, verified, method } = request;
        let malformed = Refusal::Malformed("the token has characters that are not allowed");
        let token = credentials.well_formed_token().ok_or(malformed)?;
        let is_new = verified.is_none();
        let mut verified = match verified {
            Some(verified) => verified,
            None => self.verify_token(token, now).await?,
        };
        let allowed = self.check_request(&verified, &credentials, token, (&method, url)).await;
        // A token that is refused, for example because its proof is missing, must not extend streams and sessions.
        let renewal = if allowed.is_ok() { verified.renewal.take() } else { None };
        if let Some(renewal) = &renewal {
            renewal.renew(&verified.auth);
        }
        if is_new || renewal.is_some() {
            let until = verified.until;
            self.remembered.insert(digest, token.len(), verified, until, now);
        }
        allowed
    }

    /// Checks a request whose token was verified.
    async fn check_request(
        &self,
        verified: &Verified,
        credentials: &Credentials,
        token: &str,
        target: (&Method, &Url),
    ) -> Result<Allowed, Refusal> {
        let nonce = match (&verified.key, credentials.scheme) {
            (None, Scheme::Bearer) if !self.requires_dpop => None,
            // RFC 9449, section 7.2: a bound token is not good without its proof, and an unbound one proves nothing.
            (None, _) => {
                tracing::debug!(target: "mcp", "token refused: it is not bound to a key");
                return Err(Refusal::InvalidToken);
            }
            (Some(_), Scheme::Bearer) => {
                tracing::debug!(target: "mcp", "token refused: it is bound to a key, and has no proof");
                return Err(Refusal::InvalidToken);
            }
            (Some(key), Scheme::Dpop) => {
                let proof = credentials.proof.as_ref().and_then(|proof| proof.to_str().ok());
                let proof = proof.ok_or(Refusal::InvalidProof)?;
                self.check_proof(proof, token, (key, verified.auth.principal()), target).await?
            }
        };
        match verified.has_required_scopes {
            true => Ok(Allowed { auth: Arc::clone(&verified.auth), scheme: credentials.scheme, nonce }),
            false => Err(Refusal::InsufficientScope),
        }
    }

    /// Verifies a token that is not remembered.
    async fn verify_token(&self, token: &str, now: UnixTime) -> Result<Verified, Refusal> {
        let auth = self.verifier.verify(token).await.and_then(|auth| self.check_claims(auth, now));
        let auth = auth.map_err(|error| {
            tracing::debug!(target: "mcp", %error, "token refused");
            match error {
                TokenError::Invalid(_) => Refusal::InvalidToken,
                TokenError::Unavailable(_) => Refusal::Unavailable,
            }
        })?;
        let (auth, renewal) = self.renewals.attach(self.add_implied_scopes(auth));
        let key = auth.claims().get("cnf").and_then(|cnf| cnf.get("jkt")).and_then(Value::as_str).map(Into::into);
        let has_required_scopes = self.required.iter().all(|scope| auth.has_scope(scope));
        let end = now.after(self.verifier.remember_for());
        let until = auth.expires_at().and_then(unix_time).map_or(end, |expires_at| expires_at.min(end));
        Ok(Verified { auth: Arc::new(auth), key, has_required_scopes, renewal: Some(renewal), until })
    }

    /// Checks what verifiers leave to this.
    fn check_claims(&self, auth: AuthInfo, now: UnixTime) -> Result<AuthInfo, TokenError> {
        if let Some(audiences) = &self.audiences {
            let is_accepted = |audience: &str| audiences.iter().any(|accepted| accepted == audience);
            if !auth.audience().any(is_accepted) {
                return Err(TokenError::invalid("it was issued for another server"));
            }
        }
        if auth.expires_at().is_some_and(|time| unix_time(time).is_none_or(|time| time.after(MAX_LEEWAY) <= now)) {
            return Err(TokenError::invalid("it has expired"));
        }
        if self.accept_only.as_ref().is_some_and(|is_accepted| !is_accepted(&auth)) {
            return Err(TokenError::invalid("the server does not accept it (`accept_only`)"));
        }
        // A member that cannot be understood may bind the token to something else as well, such as a certificate.
        let is_key = |cnf: &Value| matches!(cnf, Value::Object(all) if all.len() == 1 && cnf["jkt"].is_string());
        match auth.claims().get("cnf") {
            Some(cnf) if !is_key(cnf) => Err(TokenError::invalid("it is bound to something that cannot be checked")),
            _ => Ok(auth),
        }
    }

    fn add_implied_scopes(&self, auth: AuthInfo) -> AuthInfo {
        let Some(implied) = &self.implied else { return auth };
        let mut scopes: Vec<String> = auth.scopes().map(str::to_owned).collect();
        let mut next = 0;
        while let Some(scope) = scopes.get(next).filter(|_| scopes.len() < MAX_SCOPES) {
            for scope in implied(scope) {
                if !scopes.contains(&scope) {
                    scopes.push(scope);
                }
            }
            next += 1;
        }
        auth.into_builder().scopes(scopes).build()
    }

    async fn check_proof(
        &self,
        proof: &str,
        token: &str,
        (key, principal): (&str, &Principal),
        (method, url): (&Method, &Url),
    ) -> Result<Option<HeaderValue>, Refusal> {
        let now = self.clock.now();
        let urls = [url, &self.url];
        let age = self.proofs.check(proof, &ProofCheck { method, urls, token, key, principal, now }).await;
        let age = age.map_err(|invalid| match (invalid, &self.proofs.nonces) {
            (InvalidProof::Nonce, Some(nonces)) => Refusal::NonceRequired(nonces.create(now)),
            (InvalidProof::Nonce, None) => Refusal::InvalidProof,
            (InvalidProof::Invalid(reason), _) => {
                tracing::debug!(target: "mcp", reason, "DPoP proof refused");
                Refusal::InvalidProof
            }
        })?;
        let is_old = age.is_some_and(super::dpop::NonceAge::is_old);
        let nonces = self.proofs.nonces.as_ref().filter(|_| is_old);
        Ok(nonces.and_then(|nonces| HeaderValue::try_from(nonces.create(now)).ok()))
    }
}

/// A request whose token or proof has to be verified.
struct Verification {
    credentials: Credentials,
    digest: TokenDigest,
    verified: Option<Verified>,
    method: Method,
}

/// Whether a query has a token (RFC 6750, section 2.3).
fn has_token(query: &str) -> bool {
    query.split('&').any(|pair| pair.split('=').next() == Some("access_token"))
}
