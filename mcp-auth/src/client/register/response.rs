//! What an authorization server responds to a registration.

use serde::Deserialize;

use super::super::redaction::KnownSecrets;
use super::super::{ClientAuthentication, ErrorResponse, HttpResponse, LoginError, Registration};
use super::MAX_REGISTRATION_RESPONSE_BYTES;
use crate::address::{Address, shown};
use crate::metadata::AuthorizationServerMetadata;
use crate::{Secret, UnixTime};

/// The maximum length of a client identifier, in bytes.
const MAX_CLIENT_ID_BYTES: usize = 4096;

#[derive(Deserialize)]
struct Body {
    client_id: String,
    client_secret: Option<Secret>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
}

/// Reads the registration from a response.
pub(crate) fn read_registration(
    response: &HttpResponse,
    endpoint: &Address,
    server: &AuthorizationServerMetadata,
    redirect_uri: Option<&str>,
    secrets: &KnownSecrets,
) -> Result<Registration, LoginError> {
    if response.body.len() > MAX_REGISTRATION_RESPONSE_BYTES {
        return Err(LoginError::InvalidRegistration("it is too long"));
    }
    if !response.is_success() {
        return Err(match ErrorResponse::parse(&response.body, secrets) {
            Some(error) if response.status < 500 => {
                LoginError::RegistrationRefused { issuer: server.issuer.clone(), error }
            }
            _ => LoginError::Status { url: shown(endpoint.as_str()), status: response.status },
        });
    }
    let body: Body = serde_json::from_slice(&response.body)
        .map_err(|_| LoginError::InvalidRegistration("it is not JSON with members of the right types"))?;
    let is_valid_id = |id: &str| {
        !id.is_empty() && id.len() <= MAX_CLIENT_ID_BYTES && id.bytes().all(|byte| matches!(byte, b' '..=b'~'))
    };
    if !is_valid_id(&body.client_id) {
        return Err(LoginError::InvalidRegistration(
            "its client identifier is empty, too long or has characters that are not allowed",
        ));
    }
    // A server that changed the redirect URI would refuse the one that the browser is sent back to.
    if let Some(redirect_uri) = redirect_uri
        && !body.redirect_uris.is_empty()
        && !body.redirect_uris.iter().any(|registered| registered == redirect_uri)
    {
        return Err(LoginError::InvalidRegistration("it has another redirect URI"));
    }
    let client_secret = body.client_secret.filter(|secret| !secret.expose().is_empty());
    let authentication = match &body.token_endpoint_auth_method {
        Some(name) => ClientAuthentication::from_name(name)
            .filter(|method| *method != ClientAuthentication::PrivateKeyJwt)
            .ok_or(LoginError::InvalidRegistration("it wants an unknown way to authenticate"))?,
        None => authentication_of(client_secret.is_some(), server),
    };
    let needs_secret = matches!(authentication, ClientAuthentication::SecretBasic | ClientAuthentication::SecretPost);
    if needs_secret && client_secret.is_none() {
        return Err(LoginError::InvalidRegistration(
            "it has no secret, although the client has to authenticate with one",
        ));
    }
    Ok(Registration {
        // Zero means that it never expires.
        secret_expires_at: body.client_secret_expires_at.filter(|seconds| *seconds > 0).map(UnixTime::from_secs),
        client_secret: client_secret.filter(|_| needs_secret),
        authentication,
        is_dynamic: true,
        redirect_uri: redirect_uri.map(str::to_owned),
        ..Registration::new(server.issuer.as_str(), body.client_id)
    })
}

/// Chooses a method for servers that do not say which one they registered.
fn authentication_of(has_secret: bool, server: &AuthorizationServerMetadata) -> ClientAuthentication {
    let supported = server.token_endpoint_auth_methods_supported.as_deref();
    let order = [ClientAuthentication::SecretBasic, ClientAuthentication::SecretPost, ClientAuthentication::None];
    match supported {
        _ if !has_secret => ClientAuthentication::None,
        None => ClientAuthentication::SecretBasic,
        Some(names) => {
            let known = order.into_iter().find(|method| names.iter().any(|name| name == method.as_str()));
            known.unwrap_or(ClientAuthentication::SecretBasic)
        }
    }
}
