//! The authorization request that a user agrees to in a browser, and its response.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use url::{Position, Url, form_urlencoded};

use super::super::redaction::KnownSecrets;
use super::super::{ErrorResponse, LoginError};
use super::{Ready, RedirectError};
use crate::Secret;
use crate::metadata::Address;

/// The maximum length of an authorization response, in bytes.
const MAX_RESPONSE_BYTES: usize = 32 * 1024;

/// What is recorded about an authorization request before the browser is opened, and compared with its response.
pub(super) struct PendingAuthorization {
    state: Secret,
    verifier: Secret,
    /// The issuer from metadata that passed its checks.
    issuer: String,
    /// Whether the authorization server says that its responses have `iss`.
    sends_issuer: bool,
    redirect_uri: String,
    /// What the authorization server could repeat.
    secrets: KnownSecrets,
}

impl PendingAuthorization {
    /// Records a request. Half of the random bytes become the state, half the verifier of PKCE.
    pub(super) fn new(ready: &Ready, redirect_uri: &str, random: &[u8]) -> Self {
        let (state, verifier) = random.split_at(random.len() / 2);
        let (state, verifier) = (encode(state), encode(verifier));
        let mut secrets = ready.secrets.clone();
        secrets.add_all([&state, &verifier]);
        secrets.add_all(&ready.registration.client_secret);
        Self {
            state,
            verifier,
            secrets,
            issuer: ready.target.issuer().to_owned(),
            sends_issuer: ready.target.server.authorization_response_iss_parameter_supported == Some(true),
            redirect_uri: redirect_uri.to_owned(),
        }
    }

    pub(super) const fn verifier(&self) -> &Secret {
        &self.verifier
    }

    pub(super) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    /// Returns the address to open.
    pub(super) fn url(&self, endpoint: &Address, ready: &Ready, thumbprint: Option<&str>) -> String {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.expose()));
        let mut url = endpoint.url().clone();
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &ready.registration.client_id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("state", self.state.expose())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &ready.target.resource);
        if !ready.scopes.is_empty() {
            query.append_pair("scope", &ready.scopes.to_string());
        }
        if super::scopes::asks_for_refresh(&ready.scopes) {
            // OpenID Connect ignores `offline_access` unless the user is asked.
            query.append_pair("prompt", "consent");
        }
        if let Some(thumbprint) = thumbprint {
            query.append_pair("dpop_jkt", thumbprint);
        }
        drop(query);
        url.into()
    }

    /// Reads the code from the address that the browser was sent back to.
    ///
    /// The outer error is of a response that is not to this request, the inner one of a response that ends the login.
    pub(super) fn read_response(&self, redirect: &str) -> Result<Result<Secret, LoginError>, RedirectError> {
        let query = self.query_of(redirect.trim()).ok_or(RedirectError::OtherAddress)?;
        let mut response = Response::default();
        let is_well_formed = response.read(&query);
        let is_own_state = response.state.as_deref().is_some_and(|state| is_equal(state, self.state.expose()));
        if !is_own_state {
            return Err(RedirectError::OtherState);
        }
        Ok(self.check(response, is_well_formed))
    }

    fn check(&self, response: Response, is_well_formed: bool) -> Result<Secret, LoginError> {
        // The issuer comes first: nothing of a response of another authorization server is used or shown, not even its error.
        let is_own_issuer = match &response.issuer {
            Some(issuer) => *issuer == self.issuer,
            None => !self.sends_issuer,
        };
        if !is_own_issuer {
            return Err(LoginError::ResponseIssuer { expected: self.issuer.clone() });
        }
        if !is_well_formed {
            return Err(LoginError::InvalidResponse("a parameter occurs twice"));
        }
        if let Some(error) = &response.error {
            let mut secrets = self.secrets.clone();
            secrets.add_all(&response.code);
            let error = ErrorResponse::new(error, response.error_description.as_deref(), &secrets);
            return Err(LoginError::AuthorizationRefused(error));
        }
        let code = response.code.filter(|code| !code.expose().is_empty());
        code.ok_or(LoginError::InvalidResponse("it has neither a code nor an error"))
    }

    /// Returns the query of an address, if it is the redirect URI: a whole address, with or without its scheme, what follows
    /// the host, or only a query.
    fn query_of(&self, redirect: &str) -> Option<String> {
        if redirect.len() > MAX_RESPONSE_BYTES {
            return None;
        }
        let expected = Url::parse(&self.redirect_uri).ok()?;
        let authority = &expected[Position::BeforeHost..Position::AfterPort];
        let actual = if redirect.starts_with('/') || redirect.starts_with('?') {
            // An address without a host stays at the host that it is joined with, unless it starts with two slashes.
            expected.join(redirect).ok()?
        } else if redirect.starts_with(authority) {
            // Browsers do not show the scheme.
            Url::parse(&format!("{}://{redirect}", expected.scheme())).ok()?
        } else if let Ok(url) = Url::parse(redirect) {
            url
        } else {
            expected.join(&format!("?{redirect}")).ok()?
        };
        let is_same = actual.origin() == expected.origin() && actual.path() == expected.path();
        is_same.then(|| actual.query().unwrap_or_default().to_owned())
    }
}

/// The parameters of an authorization response.
#[derive(Default)]
struct Response {
    state: Option<String>,
    issuer: Option<String>,
    code: Option<Secret>,
    error: Option<String>,
    error_description: Option<String>,
}

impl Response {
    /// Reads the parameters. Returns false if one occurs twice, of which the first counts.
    fn read(&mut self, query: &str) -> bool {
        let mut is_well_formed = true;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let is_first = match &*name {
                "state" => set(&mut self.state, value),
                "iss" => set(&mut self.issuer, value),
                "code" => set(&mut self.code, Secret::new(value)),
                "error" => set(&mut self.error, value),
                "error_description" => set(&mut self.error_description, value),
                _ => true,
            };
            is_well_formed &= is_first;
        }
        is_well_formed
    }
}

fn encode(bytes: &[u8]) -> Secret {
    Secret::new(URL_SAFE_NO_PAD.encode(bytes))
}

fn set<T>(field: &mut Option<T>, value: T) -> bool {
    let is_first = field.is_none();
    field.get_or_insert(value);
    is_first
}

/// Compares in a time that does not depend on where the texts differ.
fn is_equal(left: &str, right: &str) -> bool {
    left.len() == right.len() && left.bytes().zip(right.bytes()).fold(0, |all, (left, right)| all | (left ^ right)) == 0
}

impl fmt::Debug for PendingAuthorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingAuthorization").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}
