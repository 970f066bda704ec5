//! What a token endpoint responds.

use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::{HttpResponse, LoginError, TokenType, Tokens};
use super::{EndpointCall, MAX_TOKEN_BYTES};
use crate::{Scopes, Secret, UnixTime};

/// What the response to a request for tokens is checked against.
pub(crate) struct TokenExpectations<'a> {
    /// The request.
    pub(crate) call: &'a EndpointCall,
    /// The scopes that were requested. They are granted unless the response says otherwise.
    pub(crate) requested: &'a Scopes,
    /// Whether tokens must be bound to the key.
    pub(crate) must_be_bound: bool,
}

#[derive(Deserialize)]
struct Body {
    access_token: Option<Secret>,
    token_type: Option<String>,
    refresh_token: Option<Secret>,
    expires_in: Option<Seconds>,
    scope: Option<String>,
    issued_token_type: Option<String>,
}

/// Reads the tokens of a response.
pub(crate) fn read_tokens(
    now: UnixTime,
    response: &HttpResponse,
    expected: &TokenExpectations<'_>,
) -> Result<Tokens, LoginError> {
    let body = read_body(response, expected.call)?;
    let access_token =
        read_token(body.access_token)?.ok_or(LoginError::InvalidTokenResponse("it has no access token"))?;
    let token_type = body.token_type.as_deref().ok_or(LoginError::InvalidTokenResponse("it has no token type"))?;
    let token_type = if token_type.eq_ignore_ascii_case("Bearer") {
        TokenType::Bearer
    } else if token_type.eq_ignore_ascii_case("DPoP") {
        TokenType::Dpop
    } else {
        return Err(LoginError::InvalidTokenResponse("its token type is neither Bearer nor DPoP"));
    };
    match token_type {
        TokenType::Dpop if !expected.call.has_proof() => {
            return Err(LoginError::InvalidTokenResponse("its token is bound to a key, but none was used"));
        }
        TokenType::Bearer if expected.must_be_bound => {
            return Err(LoginError::Dpop("the authorization server issued one that is not"));
        }
        TokenType::Dpop | TokenType::Bearer => {}
    }
    let scopes = match body.scope {
        None => expected.requested.clone(),
        Some(text) if text.trim().is_empty() => expected.requested.clone(),
        Some(text) => text
            .parse()
            .map_err(|_| LoginError::InvalidTokenResponse("its scope has characters that are not allowed"))?,
    };
    let expires_at = read_lifetime(body.expires_in)?.map(|lifetime| now.after(lifetime));
    Ok(Tokens { access_token, token_type, refresh_token: read_token(body.refresh_token)?, expires_at, scopes })
}

/// Reads the assertion that an identity provider issued in exchange for the identity of its user.
pub(crate) fn read_exchanged_assertion(
    response: &HttpResponse,
    call: &EndpointCall,
    wanted: &str,
) -> Result<Secret, LoginError> {
    let body = read_body(response, call)?;
    if body.issued_token_type.as_deref() != Some(wanted) {
        return Err(LoginError::InvalidTokenResponse("it is not the kind of token that was requested"));
    }
    read_token(body.access_token)?.ok_or(LoginError::InvalidTokenResponse("it has no token"))
}

fn read_body(response: &HttpResponse, call: &EndpointCall) -> Result<Body, LoginError> {
    // Some servers respond with errors in successful responses.
    if !response.is_success() || call.error_of(response).is_some() {
        return Err(call.refusal(response));
    }
    serde_json::from_slice(&response.body)
        .map_err(|_| LoginError::InvalidTokenResponse("it is not JSON with members of the right types"))
}

/// Checks that a token can be sent in a header.
fn read_token(token: Option<Secret>) -> Result<Option<Secret>, LoginError> {
    let Some(token) = token.filter(|token| !token.expose().is_empty()) else { return Ok(None) };
    if token.expose().len() > MAX_TOKEN_BYTES {
        return Err(LoginError::InvalidTokenResponse("its token is too long"));
    }
    if !token.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(LoginError::InvalidTokenResponse("its token has characters that are not allowed"));
    }
    Ok(Some(token))
}

/// A number of seconds, which some servers send as a text.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Seconds {
    Whole(u64),
    Fraction(f64),
    Text(String),
    Other(IgnoredAny),
}

/// Reads a number of seconds.
pub(crate) fn read_lifetime(seconds: Option<Seconds>) -> Result<Option<Duration>, LoginError> {
    let Some(seconds) = seconds else { return Ok(None) };
    let seconds = match seconds {
        Seconds::Whole(seconds) => Some(seconds),
        Seconds::Fraction(seconds) => Some(seconds).filter(|seconds| *seconds >= 0.0).map(|seconds| seconds as u64),
        Seconds::Text(text) => text.trim().parse().ok(),
        Seconds::Other(_) => None,
    };
    let seconds = seconds.ok_or(LoginError::InvalidTokenResponse("its lifetime is not a number of seconds"))?;
    Ok(Some(Duration::from_secs(seconds)))
}
