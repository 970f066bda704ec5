//! What is known of the user of a task, for its handler.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use mcp_server::{AuthInfo, Principal};
use mcp_types::RawObject;
use serde::{Deserialize, Serialize};

/// What an access token says, without the token.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StoredAuth {
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    audience: Vec<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    scopes: BTreeSet<String>,
    /// In seconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
    claims: RawObject,
}

/// Returns what a record stores of an access token.
pub(crate) fn store(auth: &AuthInfo) -> Option<RawObject> {
    let since_epoch = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let stored = StoredAuth {
        client_id: auth.client_id().map(str::to_owned),
        audience: auth.audience().map(str::to_owned).collect(),
        scopes: auth.scopes().map(str::to_owned).collect(),
        expires: auth.expires_at().map(since_epoch),
        claims: RawObject::new(auth.claims()).ok()?,
    };
    RawObject::new(&stored).ok()
}

/// Returns what handlers get of an access token that a record stores.
pub(crate) fn restore(principal: &Principal, stored: &RawObject) -> AuthInfo {
    let stored: StoredAuth = stored.decode().unwrap_or_default();
    let mut auth = AuthInfo::builder(principal.clone()).audience(stored.audience).scopes(stored.scopes);
    if let Ok(serde_json::Value::Object(claims)) = stored.claims.to_value() {
        auth = auth.claims(claims);
    }
    if let Some(client_id) = stored.client_id {
        auth = auth.client_id(client_id);
    }
    if let Some(expires) =
        stored.expires.and_then(|expires| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(expires)))
    {
        auth = auth.expires_at(expires);
    }
    auth.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_survive() {
        let claims = serde_json::Map::from_iter([("email".to_owned(), "ann@example.com".into())]);
        let auth = AuthInfo::builder(Principal::new(Some("https://issuer.example"), "ann"))
            .client_id("editor")
            .audience(["https://server.example"])
            .scopes(["b", "a"])
            .expires_at(SystemTime::UNIX_EPOCH + Duration::from_secs(7))
            .claims(claims)
            .build();
        let restored = restore(auth.principal(), &store(&auth).unwrap());
        assert_eq!(format!("{restored:?}"), format!("{auth:?}"));
        assert_eq!(restored.claims(), auth.claims());
        assert!(restore(auth.principal(), &RawObject::empty()).claims().is_empty());
    }
}
