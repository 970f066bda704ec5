//! What a client says about itself.

use serde::Serialize;

use super::super::endpoint::grant_types;
use super::super::{ClientAuthentication, Flow, LoginConfig};
use crate::address::Address;
use crate::metadata::AuthorizationServerMetadata;

/// The metadata of a client: the body of a registration (RFC 7591), and the document that its identifier can be the address of.
#[derive(Debug, Serialize)]
pub(crate) struct ClientMetadata<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<&'a str>,
    client_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    redirect_uris: Vec<&'a str>,
    grant_types: Vec<&'static str>,
    response_types: Vec<&'static str>,
    token_endpoint_auth_method: &'static str,
    application_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dpop_bound_access_tokens: bool,
}

impl<'a> ClientMetadata<'a> {
    pub(crate) fn new(config: &'a LoginConfig) -> Self {
        let redirect_uri = redirect_uri(config);
        let grant = match &config.flow {
            Flow::AuthorizationCode { .. } => grant_types::AUTHORIZATION_CODE,
            Flow::DeviceCode => grant_types::DEVICE_CODE,
            Flow::ClientCredentials => grant_types::CLIENT_CREDENTIALS,
            Flow::EnterpriseManaged(_) | Flow::WorkloadIdentity => grant_types::JWT_BEARER,
        };
        let mut grant_types = vec![grant];
        if wants_refresh(config) {
            grant_types.push(grant_types::REFRESH_TOKEN);
        }
        // Addresses of this machine are those of programs that are installed on it.
        let is_web =
            redirect_uri.and_then(|uri| Address::parse(uri).ok()).is_some_and(|address| !address.is_loopback());
        Self {
            client_id: None,
            client_name: &config.client_name,
            client_uri: config.client_uri.as_deref(),
            redirect_uris: redirect_uri.into_iter().collect(),
            grant_types,
            response_types: if redirect_uri.is_some() { vec!["code"] } else { Vec::new() },
            token_endpoint_auth_method: ClientAuthentication::None.as_str(),
            application_type: if is_web { "web" } else { "native" },
            scope: None,
            dpop_bound_access_tokens: config.dpop.as_ref().is_some_and(|key| key.is_required),
        }
    }

    /// Adapts the metadata to what an authorization server supports.
    pub(crate) fn for_server(
        mut self,
        server: &AuthorizationServerMetadata,
        method: ClientAuthentication,
        scope: String,
    ) -> Self {
        if let Some(supported) = &server.grant_types_supported {
            // A server that issues no refresh tokens may refuse a client that wants some.
            self.grant_types
                .retain(|grant| *grant != grant_types::REFRESH_TOKEN || supported.iter().any(|name| name == grant));
        }
        self.token_endpoint_auth_method = method.as_str();
        self.scope = (!scope.is_empty()).then_some(scope);
        self
    }

    pub(crate) fn to_json(&self) -> String {
        // Texts and lists of texts always serialize.
        serde_json::to_string(self).unwrap_or_default()
    }
}

pub(crate) fn redirect_uri(config: &LoginConfig) -> Option<&str> {
    match &config.flow {
        Flow::AuthorizationCode { redirect_uri } => Some(redirect_uri),
        Flow::DeviceCode | Flow::ClientCredentials | Flow::EnterpriseManaged(_) | Flow::WorkloadIdentity => None,
    }
}

/// Whether a refresh token is wanted, and possible. Clients that act without a user simply ask again.
pub(crate) const fn wants_refresh(config: &LoginConfig) -> bool {
    config.refresh && matches!(config.flow, Flow::AuthorizationCode { .. } | Flow::DeviceCode)
}

impl LoginConfig {
    /// Returns the document to publish at [the address of the client's metadata](Self::client_metadata_url), as JSON.
    ///
    /// Returns `None` if no address is set.
    #[must_use]
    pub fn client_metadata_document(&self) -> Option<String> {
        let url = self.client_metadata_url.as_deref()?;
        Some(ClientMetadata { client_id: Some(url), ..ClientMetadata::new(self) }.to_json())
    }
}
