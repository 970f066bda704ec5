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
    /// The redirect URI that the client was registered with, if it was registered dynamically.
    pub redirect_uri: Option<String>,
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
