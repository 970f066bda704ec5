//! What is known of an authenticated request.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use mcp_kernel::server::Principal;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::auth::renewal::Renewal;

/// What the access token of a request says: user, client, scopes and expiry. It does not contain the token.
///
/// The crate `mcp-auth` makes it from tokens; middleware of the application can make it from other credentials. Over HTTP it
/// is an `Arc<AuthInfo>` in the extensions of the HTTP request. The [`Principal`] of the request follows from it.
///
/// Functions of handlers take an `AuthInfo`, or an `Option` of it. Clones are cheap.
///
/// # Examples
///
/// ```
/// use mcp_server::{AuthInfo, Principal};
///
/// let auth = AuthInfo::builder(Principal::new(Some("https://issuer.example"), "alice"))
///     .client_id("editor")
///     .scopes(["books:read", "books:write"])
///     .build();
/// assert!(auth.has_scope("books:write"));
/// assert_eq!(auth.subject(), "alice");
/// ```
#[derive(Clone)]
pub struct AuthInfo(Arc<Fields>);

#[derive(Clone)]
struct Fields {
    principal: Principal,
    client_id: Option<Box<str>>,
    audience: Vec<Box<str>>,
    scopes: BTreeSet<Box<str>>,
    expires_at: Option<SystemTime>,
    renewal: Option<Renewal>,
    claims: Map<String, Value>,
}

impl AuthInfo {
    /// Starts to describe the credentials of a user.
    pub fn builder(principal: Principal) -> AuthInfoBuilder {
        let (client_id, audience, scopes, expires_at, renewal) = (None, Vec::new(), BTreeSet::new(), None, None);
        AuthInfoBuilder(Fields { principal, client_id, audience, scopes, expires_at, renewal, claims: Map::new() })
    }

    /// Returns the user.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.0.principal
    }

    /// Returns the issuer of the token, such as the URL of an authorization server.
    #[must_use]
    pub fn issuer(&self) -> Option<&str> {
        self.0.principal.issuer.as_deref()
    }

    /// Returns the user, or the client if it acts on its own behalf. It is unique for the issuer.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.0.principal.subject
    }

    /// Returns the identifier of the OAuth client, if the token says it.
    #[must_use]
    pub fn client_id(&self) -> Option<&str> {
        self.0.client_id.as_deref()
    }

    /// Returns the servers that the token was issued for.
    pub fn audience(&self) -> impl Iterator<Item = &str> {
        self.0.audience.iter().map(|audience| &**audience)
    }

    /// Returns the scopes that were granted, in alphabetical order.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.scopes.iter().map(|scope| &**scope)
    }

    /// Returns whether a scope was granted.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.0.scopes.contains(scope)
    }

    /// Returns a builder that starts with all of this, for example to add scopes that others include.
    pub fn into_builder(self) -> AuthInfoBuilder {
        AuthInfoBuilder(Arc::unwrap_or_clone(self.0))
    }

    /// Returns when the token expires, if it does.
    #[must_use]
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.0.expires_at
    }

    /// Returns until when streams that were opened with the token may stay open: its expiry, or that of a newer token with at
    /// least its scopes, which the same user got for the same client (see [`Renewal`]).
    #[must_use]
    pub fn valid_until(&self) -> Option<SystemTime> {
        let renewed = self.0.renewal.as_ref().and_then(|renewal| renewal.until(self));
        match renewed {
            // `None` is never.
            Some(renewed) => self.expires_at().and_then(|expires_at| Some(expires_at.max(renewed?))),
            None => self.expires_at(),
        }
    }

    /// Returns all claims of the token.
    #[must_use]
    pub fn claims(&self) -> &Map<String, Value> {
        &self.0.claims
    }

    /// Decodes a claim of the token; `None` if there is none with this name, or if it is not a `T`.
    #[must_use]
    pub fn claim<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        T::deserialize(self.0.claims.get(name)?).ok()
    }
}

/// The names of claims, but not their values, which can be personal.
impl fmt::Debug for AuthInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = &*self.0;
        f.debug_struct("AuthInfo")
            .field("principal", &fields.principal)
            .field("client_id", &fields.client_id)
            .field("audience", &fields.audience)
            .field("scopes", &fields.scopes)
            .field("expires_at", &fields.expires_at)
            .field("claims", &fields.claims.keys().collect::<Vec<_>>())
            .finish()
    }
}

/// Makes an [`AuthInfo`]; created by [`AuthInfo::builder`].
#[derive(Clone)]
#[must_use]
pub struct AuthInfoBuilder(Fields);

impl AuthInfoBuilder {
    /// Sets the identifier of the OAuth client.
    pub fn client_id(mut self, client_id: impl Into<Box<str>>) -> Self {
        self.0.client_id = Some(client_id.into());
        self
    }

    /// Sets the servers that the token was issued for.
    pub fn audience<S: Into<Box<str>>>(mut self, audience: impl IntoIterator<Item = S>) -> Self {
        self.0.audience = audience.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the scopes that were granted.
    pub fn scopes<S: Into<Box<str>>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.0.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets when the token expires. Defaults to never.
    pub fn expires_at(mut self, time: SystemTime) -> Self {
        self.0.expires_at = Some(time);
        self
    }

    /// Sets what newer tokens of the same user and client are recorded in. Defaults to none.
    pub fn renewal(mut self, renewal: Renewal) -> Self {
        self.0.renewal = Some(renewal);
        self
    }

    /// Sets the claims of the token.
    pub fn claims(mut self, claims: Map<String, Value>) -> Self {
        self.0.claims = claims;
        self
    }

    /// Makes the value.
    #[must_use]
    pub fn build(self) -> AuthInfo {
        AuthInfo(Arc::new(self.0))
    }
}

impl fmt::Debug for AuthInfoBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthInfoBuilder").field("principal", &self.0.principal).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn debug_output_has_no_values_of_claims() {
        let claims = Map::from_iter([("email".to_owned(), json!("alice@example.com"))]);
        let auth = AuthInfo::builder(Principal::new(None, "alice")).scopes(["b", "a"]).claims(claims).build();
        let debug = format!("{auth:?}");
        assert!(debug.contains("email") && !debug.contains("example.com"), "{debug}");
        assert_eq!(auth.scopes().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(auth.claim::<String>("email").as_deref(), Some("alice@example.com"));
        assert_eq!((auth.claim::<u64>("email"), auth.claim::<u64>("none")), (None, None));
    }
}
