//! What an authorization server says about itself.

use serde::{Deserialize, Serialize};

use super::InvalidMetadata;

/// The metadata of an authorization server (RFC 8414), or of an OpenID provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuthorizationServerMetadata {
    /// The identifier of the server. It is a URL, but it is kept and compared as the text that was received.
    pub issuer: String,
    /// Where a user is sent to agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// Where tokens are issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// Where clients are registered (RFC 7591).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_endpoint: Option<String>,
    /// Where device codes are issued (RFC 8628).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_authorization_endpoint: Option<String>,
    /// Where tokens are revoked (RFC 7009).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revocation_endpoint: Option<String>,
    /// Where tokens are introspected (RFC 7662).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_endpoint: Option<String>,
    /// Where the public keys are that tokens are signed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jwks_uri: Option<String>,
    /// The scopes that can be requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// The kinds of grants that are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_types_supported: Option<Vec<String>>,
    /// The methods of PKCE that are accepted. PKCE is not supported if this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// How clients authenticate at the token endpoint. `client_secret_basic` if this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// The algorithms of client assertions that are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    /// The algorithms of DPoP proofs that are accepted (RFC 9449).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether authorization responses have the parameter `iss` (RFC 9207).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_response_iss_parameter_supported: Option<bool>,
    /// Whether the address of a client's metadata document can be its identifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id_metadata_document_supported: Option<bool>,
    /// The profiles of grants that are accepted, such as identity assertions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_grant_profiles_supported: Option<Vec<String>>,
}

impl AuthorizationServerMetadata {
    /// Creates metadata with an issuer and nothing else.
    pub fn new(issuer: impl Into<String>) -> Self {
        Self { issuer: issuer.into(), ..Self::default() }
    }

    /// Reads a document.
    ///
    /// The issuer still has to be compared with the one that the address of the document was built from.
    ///
    /// # Errors
    ///
    /// Returns an error if the document is too long, no JSON, or lacks `issuer`.
    pub fn parse(document: &[u8]) -> Result<Self, InvalidMetadata> {
        super::parse(document)
    }
}
