//! What a login has found out about the server and its authorization server.

use super::super::{DpopKey, LoginConfig, LoginError};
use super::addresses;
use crate::address::{Address, UnsafeAddress, shown};
use crate::metadata::{AuthorizationServerMetadata, ProtectedResourceMetadata};

/// The parameters of an authorization request that would change its meaning.
const REQUEST_PARAMETERS: [&str; 18] = [
    "response_type",
    "response_mode",
    "client_id",
    "redirect_uri",
    "state",
    "code_challenge",
    "code_challenge_method",
    "resource",
    "scope",
    "dpop_jkt",
    "request",
    "request_uri",
    "nonce",
    "prompt",
    "claims",
    "authorization_details",
    "login_hint",
    "id_token_hint",
];

/// The resource that tokens are for, and the authorization server that issues them.
#[derive(Debug)]
pub(super) struct Target {
    /// The identifier of the resource: the text of its metadata, or else the canonical address of the server.
    pub(super) resource: String,
    /// The metadata of the resource, if it has any.
    pub(super) resource_metadata: Option<ProtectedResourceMetadata>,
    /// The metadata of the authorization server.
    pub(super) server: AuthorizationServerMetadata,
    /// Whether the authorization server has no metadata, so that the endpoints are the default ones of 2025-03-26.
    pub(super) has_default_endpoints: bool,
}

impl Target {
    pub(super) fn new(
        config: &LoginConfig,
        server: AuthorizationServerMetadata,
        resource_metadata: Option<ProtectedResourceMetadata>,
    ) -> Self {
        let resource = resource_metadata.as_ref().map(|metadata| metadata.resource.clone());
        let resource = resource.unwrap_or_else(|| canonical_resource(&config.server));
        Self { resource, resource_metadata, server, has_default_endpoints: false }
    }

    /// The endpoints of 2025-03-26 for servers without any metadata.
    pub(super) fn of_defaults(config: &LoginConfig) -> Self {
        let origin = config.server.origin();
        let mut server = AuthorizationServerMetadata::new(origin.as_str());
        server.authorization_endpoint = Some(format!("{origin}/authorize"));
        server.token_endpoint = Some(format!("{origin}/token"));
        server.registration_endpoint = Some(format!("{origin}/register"));
        Self { has_default_endpoints: true, ..Self::new(config, server, None) }
    }

    pub(super) fn issuer(&self) -> &str {
        &self.server.issuer
    }

    pub(super) fn unsupported(&self, what: &'static str) -> LoginError {
        LoginError::Unsupported { issuer: self.issuer().to_owned(), what }
    }

    pub(super) fn token_endpoint(&self, config: &LoginConfig) -> Result<Address, LoginError> {
        let url = self.server.token_endpoint.as_deref().ok_or_else(|| self.unsupported("issuing tokens"))?;
        addresses::check(config, "token endpoint", url)
    }

    pub(super) fn authorization_endpoint(&self, config: &LoginConfig) -> Result<Address, LoginError> {
        let url = self.server.authorization_endpoint.as_deref();
        let url = url.ok_or_else(|| self.unsupported("authorization codes"))?;
        let what = "authorization endpoint";
        let address = addresses::check(config, what, url)?;
        // The endpoint can be one of another server, which must get no other request than ours.
        if address.url().query_pairs().any(|(name, _)| REQUEST_PARAMETERS.contains(&&*name)) {
            let (url, reason) = (shown(url), UnsafeAddress::Parameters);
            return Err(LoginError::UnsafeAddress { what, url, reason });
        }
        Ok(address)
    }

    pub(super) fn device_authorization_endpoint(&self, config: &LoginConfig) -> Result<Address, LoginError> {
        let url = self.server.device_authorization_endpoint.as_deref();
        addresses::check(config, "device authorization endpoint", url.ok_or_else(|| self.unsupported("device codes"))?)
    }

    /// Returns the revocation endpoint. One that must not be used is the same as none.
    pub(super) fn revocation_endpoint(&self, config: &LoginConfig) -> Option<String> {
        let url = self.server.revocation_endpoint.as_deref()?;
        addresses::check(config, "revocation endpoint", url).ok().map(|address| address.to_string())
    }

    /// Refuses authorization servers that do not protect codes (PKCE with S256). Without metadata, there is no way to know.
    pub(super) fn check_pkce(&self) -> Result<(), LoginError> {
        let methods = self.server.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if self.has_default_endpoints || methods.iter().any(|method| method == "S256") {
            return Ok(());
        }
        Err(self.unsupported("PKCE with S256"))
    }

    /// Decides whether tokens are to be bound to a key. `is_demanded` is whether the server's challenge demands it.
    pub(super) fn dpop(&self, key: Option<&DpopKey>, is_demanded: bool) -> Result<Binding, LoginError> {
        let metadata = self.resource_metadata.as_ref();
        let is_demanded =
            is_demanded || metadata.is_some_and(|metadata| metadata.dpop_bound_access_tokens_required == Some(true));
        let Some(key) = key else {
            return if is_demanded {
                Err(LoginError::Dpop("the server demands it, but no key is configured"))
            } else {
                Ok(Binding { with_proof: false, must_be_bound: false })
            };
        };
        let algorithms = self.server.dpop_signing_alg_values_supported.as_deref();
        let is_supported = algorithms.is_some_and(|algorithms| algorithms.contains(&key.algorithm));
        let must_be_bound = key.is_required || is_demanded;
        if must_be_bound && algorithms.is_some() && !is_supported {
            return Err(LoginError::Dpop("the authorization server does not accept the algorithm of the key"));
        }
        Ok(Binding { with_proof: must_be_bound || is_supported, must_be_bound })
    }
}

/// Whether and how tokens are bound to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    /// Whether proofs are sent.
    pub(super) with_proof: bool,
    /// Whether tokens that are not bound are refused.
    pub(super) must_be_bound: bool,
}

/// Returns the identifier of a server that has no metadata: its address without a slash that means nothing, and without a query,
/// which may contain secrets that are not meant for the authorization server.
pub(super) fn canonical_resource(server: &Address) -> String {
    let mut url = server.url().clone();
    url.set_query(None);
    if url.path() == "/" { server.origin() } else { url.into() }
}
