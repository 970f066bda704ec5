//! The `data` of protocol errors.

use serde::Serialize;

use crate::codec::object::object;
use crate::{ClientCapabilities, ElicitRequestUrlParams, Era, ErrorCode, ErrorObject, ProtocolVersion, Revision};

/// The `data` of [`ErrorCode::UNSUPPORTED_PROTOCOL_VERSION`].
///
/// Since 2026-07-28.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UnsupportedProtocolVersionData {
    /// The versions that the server supports.
    pub supported: Vec<ProtocolVersion>,
    /// The version of the request.
    pub requested: ProtocolVersion,
}

/// The `data` of [`ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY`].
///
/// Since 2026-07-28.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MissingRequiredClientCapabilityData {
    /// The required capabilities that the client did not declare.
    pub required_capabilities: ClientCapabilities,
}

/// The `data` of [`ErrorCode::URL_ELICITATION_REQUIRED`].
///
/// Only in 2025-11-25.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UrlElicitationRequiredData {
    /// The elicitations that the user has to complete first.
    pub elicitations: Vec<ElicitRequestUrlParams>,
}

/// The `data` of the error for a resource that does not exist.
///
/// Since 2024-11-05.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ResourceNotFoundData {
    /// The URI of the resource.
    pub uri: String,
}

object!(UnsupportedProtocolVersionData {
    "supported" => supported: required,
    "requested" => requested: required,
});

object!(MissingRequiredClientCapabilityData {
    "requiredCapabilities" => required_capabilities: required,
});

object!(UrlElicitationRequiredData {
    "elicitations" => elicitations: required,
});

object!(ResourceNotFoundData {
    "uri" => uri: required,
});

impl ErrorObject {
    /// Creates the error for a protocol version that the server does not support.
    #[must_use]
    pub fn unsupported_protocol_version(requested: ProtocolVersion, supported: Vec<ProtocolVersion>) -> Self {
        Self::with_typed_data(
            ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
            "unsupported protocol version",
            &UnsupportedProtocolVersionData { supported, requested },
        )
    }

    /// Creates the error for a request that requires a capability which the client did not declare.
    #[must_use]
    pub fn missing_required_client_capability(required_capabilities: ClientCapabilities) -> Self {
        Self::with_typed_data(
            ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
            "a required client capability was not declared",
            &MissingRequiredClientCapabilityData { required_capabilities },
        )
    }

    /// Creates the error for a request that requires URL mode elicitations first (only in 2025-11-25).
    #[must_use]
    pub fn url_elicitation_required(elicitations: Vec<ElicitRequestUrlParams>) -> Self {
        Self::with_typed_data(
            ErrorCode::URL_ELICITATION_REQUIRED,
            "the user has to open a URL first",
            &UrlElicitationRequiredData { elicitations },
        )
    }

    /// Creates the error for a resource that does not exist; the code depends on the revision.
    // B-45
    #[must_use]
    pub fn resource_not_found(revision: Revision, uri: impl Into<String>) -> Self {
        let code = match revision.era() {
            Era::Legacy => ErrorCode::RESOURCE_NOT_FOUND,
            Era::Modern => ErrorCode::INVALID_PARAMS,
        };
        Self::with_typed_data(code, "resource not found", &ResourceNotFoundData { uri: uri.into() })
    }

    /// Replaces the code of an error about a resource that does not exist by the one of a revision, for errors that were
    /// received from a server of another revision. The error of a modern server is recognized by the URI in its data.
    #[must_use]
    pub fn translate_resource_not_found(mut self, revision: Revision) -> Self {
        match revision.era() {
            Era::Modern if self.code == ErrorCode::RESOURCE_NOT_FOUND => self.code = ErrorCode::INVALID_PARAMS,
            Era::Legacy if self.code == ErrorCode::INVALID_PARAMS => {
                let data = self.data.as_ref().and_then(|data| data.decode::<ResourceNotFoundData>().ok());
                if data.is_some() {
                    self.code = ErrorCode::RESOURCE_NOT_FOUND;
                }
            }
            Era::Modern | Era::Legacy => {}
        }
        self
    }

    fn with_typed_data(code: ErrorCode, message: &'static str, data: &impl Serialize) -> Self {
        Self::new(code, message).data(data).expect("plain structs with string keys can be written as JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElicitationCapability, RawObject};

    // covers: E-7, E-8
    #[test]
    fn refusals_say_what_would_have_helped() {
        let error = ErrorObject::unsupported_protocol_version("v999".into(), vec![ProtocolVersion::V2026_07_28]);
        assert_eq!(
            serde_json::to_string(&error).unwrap(),
            r#"{"code":-32022,"message":"unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"v999"}}"#
        );
        let url = ElicitationCapability::default().url(RawObject::empty());
        let error = ErrorObject::missing_required_client_capability(ClientCapabilities::default().elicitation(url));
        assert_eq!(error.data.unwrap().as_str(), r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#);
    }

    // covers: B-45, RS-2, RS-3
    #[test]
    fn a_missing_resource_has_a_code_of_its_era() {
        let error = ErrorObject::resource_not_found(Revision::V2025_11_25, "a:b");
        assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND);
        let error = ErrorObject::resource_not_found(Revision::V2026_07_28, "a:b");
        assert_eq!((error.code, error.data.unwrap().as_str()), (ErrorCode::INVALID_PARAMS, r#"{"uri":"a:b"}"#));
    }
}
