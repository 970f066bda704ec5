//! Requests to endpoints that a client authenticates at: tokens, device codes, revocation.

mod authentication;
mod call;
mod nonce;
mod token_response;

pub(crate) use authentication::{ClientCredentials, Form};
pub(crate) use call::{EndpointCall, Reply};
pub(crate) use nonce::DpopNonce;
pub(crate) use token_response::{Seconds, TokenExpectations, read_exchanged_assertion, read_lifetime, read_tokens};

/// The maximum length of the response of a token endpoint, in bytes.
pub(crate) const MAX_TOKEN_RESPONSE_BYTES: usize = 64 * 1024;
/// The maximum length of one token, in bytes.
pub(crate) const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The names of grants.
pub(crate) mod grant_types {
    pub(crate) const AUTHORIZATION_CODE: &str = "authorization_code";
    pub(crate) const REFRESH_TOKEN: &str = "refresh_token";
    pub(crate) const CLIENT_CREDENTIALS: &str = "client_credentials";
    pub(crate) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
    pub(crate) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    pub(crate) const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
}
