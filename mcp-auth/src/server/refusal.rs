//! Responses to requests without a valid token.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::credentials::Scheme;
use super::dpop::DPOP_NONCE;
use super::jwt::TokenAlgorithm;
use crate::{Challenge, Scopes};

/// Why a request is refused. Clients do not learn why a token is not valid: that would help to guess one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no token.
    NoToken,
    /// The credentials cannot be read.
    Malformed(&'static str),
    /// The token is not valid.
    InvalidToken,
    /// The token is not valid without a proof, or not with one.
    InvalidProof,
    /// The proof needs this nonce.
    NonceRequired(String),
    /// The scopes of the token are too few.
    InsufficientScope,
    /// It is not known whether the token is valid.
    Unavailable,
}

/// What challenges have in common.
pub(crate) struct ChallengeContext<'a> {
    pub(crate) scheme: Scheme,
    pub(crate) metadata_url: &'a str,
    pub(crate) scopes: Cow<'a, Scopes>,
}

impl Refusal {
    const fn status(&self) -> StatusCode {
        match self {
            Self::NoToken | Self::InvalidToken | Self::InvalidProof | Self::NonceRequired(_) => {
                StatusCode::UNAUTHORIZED
            }
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::InsufficientScope => StatusCode::FORBIDDEN,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The code of the error, and a description for people.
    const fn error(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::NoToken => None,
            Self::Malformed(reason) => Some(("invalid_request", reason)),
            Self::InvalidToken => Some(("invalid_token", "the access token is not valid")),
            Self::InvalidProof => Some(("invalid_dpop_proof", "the DPoP proof is missing or not valid")),
            Self::NonceRequired(_) => Some(("use_dpop_nonce", "the DPoP proof needs a nonce")),
            Self::InsufficientScope => Some(("insufficient_scope", "the access token lacks a scope")),
            Self::Unavailable => Some(("temporarily_unavailable", "the access token cannot be verified now")),
        }
    }

    /// Adds the challenge to the headers of a response.
    pub(crate) fn add_challenge(&self, headers: &mut HeaderMap, context: &ChallengeContext<'_>) {
        if let Some(challenge) = challenge(context, self.error()) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
    }

    pub(crate) fn into_response<R: From<Bytes>>(self, context: &ChallengeContext<'_>) -> Response<R> {
        let text = match self.error() {
            Some((code, description)) => format!(r#"{{"error":"{code}","error_description":"{description}"}}"#),
            None => r#"{"error_description":"this server needs an access token"}"#.to_owned(),
        };
        let mut response = Response::new(R::from(Bytes::from(text)));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self == Self::Unavailable {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
            return response;
        }
        self.add_challenge(headers, context);
        if let Self::NonceRequired(nonce) = &self
            && let Ok(nonce) = HeaderValue::try_from(nonce)
        {
            headers.insert(DPOP_NONCE, nonce);
        }
        response
    }
}

/// Writes a challenge.
fn challenge(context: &ChallengeContext<'_>, error: Option<(&'static str, &'static str)>) -> Option<HeaderValue> {
    let mut challenge = match context.scheme {
        Scheme::Bearer => Challenge::bearer(),
        Scheme::Dpop => {
            let algorithms = TokenAlgorithm::ALL.map(TokenAlgorithm::as_str).join(" ");
            Challenge::dpop().with_parameter("algs", algorithms)
        }
    };
    if let Some((code, description)) = error {
        challenge = challenge.error(code).error_description(description);
    }
    if !context.scopes.is_empty() {
        challenge = challenge.required_scope(&context.scopes);
    }
    let challenge = challenge.resource_metadata_url(context.metadata_url);
    HeaderValue::try_from(challenge.to_string()).ok()
}
