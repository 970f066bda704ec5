//! Why a login failed.

use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::RequestError;
use super::redaction::KnownSecrets;
use crate::metadata::{InvalidMetadata, UnsafeAddress};

/// The error of a flow.
///
/// No variant contains a secret: addresses are without their query, and texts that an authorization server sent are short, of
/// printable ASCII, and without the secrets that it was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// A request got no response.
    #[error("{url}: {error}")]
    Fetch {
        /// The address of the request.
        url: String,
        /// What happened.
        error: RequestError,
    },
    /// A server failed, or is overloaded.
    #[error("{url} responded with status {status}")]
    Status {
        /// The address of the request.
        url: String,
        /// The status of the response.
        status: u16,
    },
    /// An address must not be contacted.
    #[error("the {what} {url:?} cannot be used: {reason}")]
    UnsafeAddress {
        /// What the address is of.
        what: &'static str,
        /// The address.
        url: String,
        /// Why it must not be contacted.
        reason: UnsafeAddress,
    },
    /// A metadata document cannot be used.
    #[error("the metadata at {url} cannot be used: {reason}")]
    Metadata {
        /// The address of the document.
        url: String,
        /// What is wrong with it.
        reason: InvalidMetadata,
    },
    /// The server named the address of its metadata, but there is none.
    #[error("the server has no metadata, although it named {url}")]
    NoResourceMetadata {
        /// The address that the server named.
        url: String,
    },
    /// The metadata is of another resource than the server that was contacted.
    #[error("the metadata is for {resource:?}, but the server is {server}")]
    ResourceMismatch {
        /// The resource that the metadata is for.
        resource: String,
        /// The server that was contacted.
        server: String,
    },
    /// The metadata of the server names no authorization server.
    #[error("the metadata of the server names no authorization server")]
    NoAuthorizationServer,
    /// The authorization server has no metadata.
    #[error("the authorization server {issuer} has no metadata")]
    NoServerMetadata {
        /// The issuer of the authorization server.
        issuer: String,
    },
    /// The metadata of an authorization server is that of another one.
    #[error("the metadata of the authorization server {expected:?} claims to be of {found:?}")]
    IssuerMismatch {
        /// The issuer that the metadata was fetched for.
        expected: String,
        /// The issuer that the metadata is of.
        found: String,
    },
    /// The authorization server does not offer what the login needs.
    #[error("the authorization server {issuer} does not support {what}")]
    Unsupported {
        /// The issuer of the authorization server.
        issuer: String,
        /// What it does not support.
        what: &'static str,
    },
    /// There is no way to get a client identifier.
    #[error("there is no way to register with {issuer}: configure a client that is registered there")]
    NoRegistration {
        /// The issuer of the authorization server.
        issuer: String,
    },
    /// The configured client is registered with another authorization server.
    #[error("the configured client is registered with {registered}, but the server demands tokens of {issuer}")]
    RegisteredElsewhere {
        /// The issuer that the client is registered with.
        registered: String,
        /// The issuer that the server trusts.
        issuer: String,
    },
    /// The authorization server refused to register the client.
    #[error("{issuer} refused to register the client: {error}")]
    RegistrationRefused {
        /// The issuer of the authorization server.
        issuer: String,
        /// The reason.
        error: ErrorResponse,
    },
    /// The response to a registration cannot be used.
    #[error("the response to the registration cannot be used: {0}")]
    InvalidRegistration(&'static str),
    /// The authorization response is of another authorization server, or does not say which one it is of.
    #[error("the authorization response is not of {expected}")]
    ResponseIssuer {
        /// The issuer that was asked.
        expected: String,
    },
    /// The authorization response cannot be used.
    #[error("the authorization response cannot be used: {0}")]
    InvalidResponse(&'static str),
    /// The user or the authorization server did not agree.
    #[error("authorization was refused: {0}")]
    AuthorizationRefused(ErrorResponse),
    /// The code was not entered in time.
    #[error("the code was not entered in time")]
    CodeExpired,
    /// The response to a request for a device code cannot be used.
    #[error("the device code cannot be used: {0}")]
    InvalidDeviceCode(&'static str),
    /// A token endpoint refused the request.
    #[error("{url} refused the request: {error}")]
    TokenRefused {
        /// The address of the token endpoint.
        url: String,
        /// The reason.
        error: ErrorResponse,
    },
    /// The response of a token endpoint cannot be used.
    #[error("the response of the token endpoint cannot be used: {0}")]
    InvalidTokenResponse(&'static str),
    /// Tokens have to be bound to a key, and are not.
    #[error("tokens have to be bound to a key: {0}")]
    Dpop(&'static str),
    /// The refresh token is no longer valid. Only a new login helps.
    #[error("the login has ended ({0}): log in again")]
    LoginEnded(ErrorResponse),
    /// There is no refresh token. Only a new login helps.
    #[error("the login has ended, as there is no refresh token: log in again")]
    NoRefreshToken,
    /// What the flow asked for was not provided.
    #[error("the login was declined")]
    Declined,
}

impl LoginError {
    /// Whether the same can succeed later: the network or a server failed. Tokens are kept.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        let is_outage = matches!(
            self,
            Self::Fetch { error: RequestError::Unreachable(_), .. }
                | Self::Status { status: 408 | 425 | 429 | 500.., .. }
        );
        is_outage || self.is_refusal("temporarily_unavailable") || self.is_refusal("server_error")
    }

    /// Whether a token endpoint refused the request with this error.
    pub(crate) fn is_refusal(&self, code: &str) -> bool {
        matches!(self, Self::TokenRefused { error, .. } if error.is(code))
    }

    /// Whether only a new login helps.
    #[must_use]
    pub const fn needs_login(&self) -> bool {
        matches!(self, Self::LoginEnded(_) | Self::NoRefreshToken)
    }
}

/// An error that an authorization server responded with (RFC 6749).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorResponse {
    /// The error, such as `invalid_grant` or `access_denied`.
    pub code: String,
    /// The description for developers.
    pub description: Option<String>,
}

/// The errors that flows react to. They are no secrets, whatever a client has chosen for one.
const KNOWN_CODES: [&str; 12] = [
    "access_denied",
    "authorization_pending",
    "expired_token",
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "server_error",
    "slow_down",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_token_type",
    "use_dpop_nonce",
];

impl ErrorResponse {
    /// Creates an error from texts that a peer sent.
    pub(crate) fn new(code: &str, description: Option<&str>, secrets: &KnownSecrets) -> Self {
        let is_known = KNOWN_CODES.contains(&code);
        let code = if is_known { code.to_owned() } else { secrets.redact(code) };
        let description = description.map(|text| secrets.redact(text)).filter(|description| !description.is_empty());
        Self { code, description }
    }

    /// Reads the body of a response of an endpoint.
    pub(crate) fn parse(body: &[u8], secrets: &KnownSecrets) -> Option<Self> {
        #[derive(Deserialize)]
        struct Body {
            error: String,
            error_description: Option<Description>,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Description {
            Text(String),
            Other(IgnoredAny),
        }
        let body: Body = serde_json::from_slice(body).ok()?;
        let description = match &body.error_description {
            Some(Description::Text(text)) => Some(&**text),
            Some(Description::Other(_)) | None => None,
        };
        Some(Self::new(&body.error, description, secrets)).filter(|error| !error.code.is_empty())
    }

    pub(crate) fn is(&self, code: &str) -> bool {
        self.code == code
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code)?;
        match &self.description {
            Some(description) => write!(f, " ({description})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ErrorResponse {}
