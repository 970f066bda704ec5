//! A client, as an authorization server knows it.

use crate::{Secret, UnixTime};

/// What an authorization server knows a client by. It is valid at the authorization server with that issuer only.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Registration {
    /// The issuer of the authorization server that the client is registered with.
    pub issuer: String,
    /// The identifier of the client.
    pub client_id: String,
    /// The secret of a confidential client.
    pub client_secret: Option<Secret>,
    /// When the secret expires, if it does.
    pub secret_expires_at: Option<UnixTime>,
    /// How the client authenticates at the token endpoint.
    pub authentication: ClientAuthentication,
    /// Whether the client registered itself, so that it can do that again.
    pub is_dynamic: bool,
    /// The redirect URI that the client registered itself with. Another one needs another registration, so drivers that listen
    /// on a port of the system's choice do well to try the port of the last login first.
    pub redirect_uri: Option<String>,
}

impl Registration {
    /// Creates the registration of a public client that was registered by hand.
    pub fn new(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            client_id: client_id.into(),
            client_secret: None,
            secret_expires_at: None,
            authentication: ClientAuthentication::None,
            is_dynamic: false,
            redirect_uri: None,
        }
    }
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientAuthentication {
    /// Not at all: a public client sends its identifier only (`none`).
    None,
    /// By its secret in the `Authorization` header (`client_secret_basic`).
    SecretBasic,
    /// By its secret in the body (`client_secret_post`).
    SecretPost,
    /// By a signed assertion (`private_key_jwt`).
    PrivateKeyJwt,
}

impl ClientAuthentication {
    /// Returns the name of the method in metadata and registrations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SecretBasic => "client_secret_basic",
            Self::SecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// Returns the method with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::SecretBasic, Self::SecretPost, Self::PrivateKeyJwt]
            .into_iter()
            .find(|method| method.as_str() == name)
    }
}
