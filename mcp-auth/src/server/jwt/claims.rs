//! From the claims of a token to what handlers see.

use std::borrow::Cow;
use std::time::Duration;

use mcp_server::{AuthInfo, Principal};
use serde_json::{Map, Value};

use crate::UnixTime;
use crate::server::clock::system_time;
use crate::server::verifier::TokenError;

pub(crate) type Claims = Map<String, Value>;

/// The claims that can have the client, by preference: RFC 9068, OpenID Connect, Okta, Entra ID.
const CLIENT_CLAIMS: [&str; 4] = ["client_id", "azp", "cid", "appid"];

/// The claims that can have scopes: RFC 9068, and `scp` of Okta and Entra ID.
const SCOPE_CLAIMS: [&str; 2] = ["scope", "scp"];

/// Reads claims.
pub(crate) fn read_claims(text: &str) -> Option<Claims> {
    match mcp_types::parse_value(text) {
        Ok(Value::Object(claims)) => Some(claims),
        _ => None,
    }
}

/// Checks when a token is valid. It has to expire.
pub(crate) fn check_times(claims: &Claims, now: UnixTime, leeway: Duration) -> Result<(), &'static str> {
    let expires_at = read_time(claims, "exp")?.ok_or("it does not expire")?;
    if expires_at.after(leeway) <= now {
        return Err("it has expired");
    }
    check_not_before(claims, now, leeway)
}

/// Checks when a token begins to be valid.
pub(crate) fn check_not_before(claims: &Claims, now: UnixTime, leeway: Duration) -> Result<(), &'static str> {
    if read_time(claims, "nbf")?.is_some_and(|not_before| not_before > now.after(leeway)) {
        return Err("it is not valid yet");
    }
    Ok(())
}

fn read_time(claims: &Claims, name: &str) -> Result<Option<UnixTime>, &'static str> {
    match claims.get(name) {
        None => Ok(None),
        Some(value) => value.as_f64().and_then(seconds).map(Some).ok_or("a time among its claims cannot be read"),
    }
}

/// Reads a time, which can have a fraction (RFC 7519).
pub(crate) fn seconds(seconds: f64) -> Option<UnixTime> {
    let seconds = Some(seconds).filter(|seconds| (0.0..=9_007_199_254_740_992.0).contains(seconds))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is in the range, and the fraction is dropped"
    )]
    let seconds = seconds as u64;
    Some(UnixTime::from_secs(seconds))
}

/// Makes what handlers see. Times, signature and issuer were checked.
pub(crate) fn auth_info(
    issuer: Option<&str>,
    claims: Claims,
    scope_claims: &[Cow<'static, str>],
) -> Result<AuthInfo, TokenError> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let client_id = CLIENT_CLAIMS.iter().find_map(|name| text(name));
    // A client that acts on its own behalf is the subject itself, but not every issuer says so.
    let subject = text("sub").or(client_id).ok_or_else(|| TokenError::invalid("it has no subject"))?;
    let names = SCOPE_CLAIMS.into_iter().chain(scope_claims.iter().map(|name| &**name));
    let scopes = names.filter_map(|name| claims.get(name)).flat_map(|value| words(value, true));
    let audience = claims.get("aud").into_iter().flat_map(|value| words(value, false));
    let mut auth = AuthInfo::builder(Principal::new(issuer, subject)).scopes(scopes).audience(audience);
    if let Some(client_id) = client_id {
        auth = auth.client_id(client_id);
    }
    if let Some(time) = claims.get("exp").and_then(Value::as_f64).and_then(seconds).and_then(system_time) {
        auth = auth.expires_at(time);
    }
    Ok(auth.claims(claims).build())
}

/// Returns the texts of a claim that is a text or a list of texts.
fn words(value: &Value, is_separated: bool) -> Vec<&str> {
    match value {
        Value::String(text) if is_separated => text.split(' ').filter(|word| !word.is_empty()).collect(),
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}
