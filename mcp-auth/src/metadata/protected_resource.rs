//! What a resource says about itself.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use super::InvalidMetadata;
use crate::address::{has_stray_characters, shown};

/// The metadata of a protected resource, which is an MCP server (RFC 9728).
///
/// Its `Debug` output has no queries of addresses: that of the resource may be the one of the server, with a key in it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProtectedResourceMetadata {
    /// The identifier of the resource. It is a URL, but it is kept and compared as the text that was received.
    pub resource: String,
    /// The issuers of the authorization servers that issue tokens for the resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authorization_servers: Vec<String>,
    /// The scopes that basic use of the resource needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// How tokens can be sent: `header`, `body`, `query`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// The name of the resource for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// The address of documentation for developers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// The algorithms of DPoP proofs that the resource accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Whether only tokens that are bound to a key are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_bound_access_tokens_required: Option<bool>,
}

impl ProtectedResourceMetadata {
    /// Creates metadata from the identifier of the resource and the issuers of its authorization servers.
    pub fn new<S: Into<String>>(resource: impl Into<String>, issuers: impl IntoIterator<Item = S>) -> Self {
        let authorization_servers = issuers.into_iter().map(Into::into).collect();
        Self { resource: resource.into(), authorization_servers, ..Self::default() }
    }

    /// Reads a document.
    ///
    /// # Errors
    ///
    /// Returns an error if the document is too long, no JSON, or lacks `resource`.
    pub fn parse(document: &[u8]) -> Result<Self, InvalidMetadata> {
        super::parse(document)
    }

    /// Whether the metadata is for the server with this address.
    ///
    /// It is if both have the same origin, and the path of the resource is the path of the server or leads to it. Metadata of
    /// another resource must not be used: it would let one server obtain tokens that are meant for another.
    #[must_use]
    pub fn is_for(&self, server: &Url) -> bool {
        let Ok(resource) = Url::parse(&self.resource) else { return false };
        // The text is sent as it is, so it has to mean the same to all who read it.
        if has_stray_characters(&self.resource) {
            return false;
        }
        if resource.origin() != server.origin() || !resource.origin().is_tuple() || resource.fragment().is_some() {
            return false;
        }
        if !resource.username().is_empty() || resource.password().is_some() {
            return false;
        }
        if resource.query().is_some() && resource.query() != server.query() {
            return false;
        }
        let prefix = resource.path().strip_suffix('/').unwrap_or_else(|| resource.path());
        match server.path().strip_prefix(prefix) {
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }
}

impl fmt::Debug for ProtectedResourceMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuers: Vec<String> = self.authorization_servers.iter().map(|issuer| shown(issuer)).collect();
        f.debug_struct("ProtectedResourceMetadata")
            .field("resource", &shown(&self.resource))
            .field("authorization_servers", &issuers)
            .field("scopes_supported", &self.scopes_supported)
            .field("bearer_methods_supported", &self.bearer_methods_supported)
            .field("resource_name", &self.resource_name)
            .field("resource_documentation", &self.resource_documentation.as_deref().map(shown))
            .field("dpop_signing_alg_values_supported", &self.dpop_signing_alg_values_supported)
            .field("dpop_bound_access_tokens_required", &self.dpop_bound_access_tokens_required)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: AU-14
    #[test]
    fn debug_output_has_no_query() {
        let mut metadata = ProtectedResourceMetadata::new(
            "https://mcp.example/mcp?key=hunter2",
            ["https://user:hunter2@as.example/tenant?key=hunter2#hunter2"],
        );
        metadata.resource_documentation = Some("https://mcp.example/docs?key=hunter2".to_owned());
        let shown = format!("{metadata:?} {metadata:#?}");
        for part in ["https://mcp.example/mcp", "https://as.example/tenant", "https://mcp.example/docs"] {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
