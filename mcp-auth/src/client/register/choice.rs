//! Which registration a login uses.

use super::super::{ClientAuthentication, Flow, LoginConfig, LoginError, PreRegistered, Registration};
use super::metadata::redirect_uri;
use crate::UnixTime;
use crate::metadata::AuthorizationServerMetadata;

/// What a login does to become known to an authorization server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Use this registration, and keep it if it is new.
    Use { registration: Registration, is_new: bool },
    /// Register at the registration endpoint, and authenticate like this.
    Register(ClientAuthentication),
    /// Ask the user for a client that was registered by hand.
    Ask,
}

/// Chooses in the order of preference: registered by hand, metadata document, registered by itself, asking.
///
/// A registration is only ever used with the issuer that it was made with.
pub(crate) fn choose(
    config: &LoginConfig,
    server: &AuthorizationServerMetadata,
    has_metadata: bool,
    stored: &[Registration],
    now: UnixTime,
) -> Result<Choice, LoginError> {
    let issuer = &server.issuer;
    let kept = stored.iter().find(|registration| registration.issuer == *issuer);
    if let Some(client) = &config.pre_registered {
        check_issuer(client, issuer, stored)?;
        let registration = bind(client, server);
        let is_new = !stored.contains(&registration);
        return Ok(Choice::Use { registration, is_new });
    }
    if let Some(registration) = kept.filter(|registration| !registration.is_dynamic) {
        return Ok(Choice::Use { registration: registration.clone(), is_new: false });
    }
    if let Some(url) = config.client_metadata_url.as_deref()
        && server.client_id_metadata_document_supported == Some(true)
    {
        // The document says the same to each authorization server, so there is nothing to keep.
        return Ok(Choice::Use { registration: Registration::new(issuer.as_str(), url), is_new: false });
    }
    if let Some(registration) = kept {
        let is_expired = registration.secret_expires_at.is_some_and(|expiry| expiry <= now);
        if !is_expired && registration.redirect_uri.as_deref() == redirect_uri(config) {
            return Ok(Choice::Use { registration: registration.clone(), is_new: false });
        }
    }
    // Clients that act without a user are registered by hand.
    let can_register = !matches!(config.flow, Flow::ClientCredentials | Flow::WorkloadIdentity);
    if can_register && config.dynamic_registration && server.registration_endpoint.is_some() {
        return Ok(Choice::Register(authentication_to_register(server, has_metadata)?));
    }
    if config.ask_for_client {
        return Ok(Choice::Ask);
    }
    Err(LoginError::NoRegistration { issuer: issuer.clone() })
}

/// Refuses a client that is registered with another issuer.
fn check_issuer(client: &PreRegistered, issuer: &str, stored: &[Registration]) -> Result<(), LoginError> {
    let registered = match &client.issuer {
        Some(registered) => Some(registered),
        // Without a configured issuer, the one that the client was first used with counts.
        None => {
            let mut bindings = stored
                .iter()
                .filter(|kept| kept.client_id == client.client_id && !kept.is_dynamic)
                .map(|kept| &kept.issuer);
            let first = bindings.next();
            if first.is_some_and(|first| first == issuer) || bindings.any(|other| other == issuer) {
                None
            } else {
                first
            }
        }
    };
    match registered {
        Some(registered) if registered != issuer => {
            Err(LoginError::RegisteredElsewhere { registered: registered.clone(), issuer: issuer.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Makes the registration of a client that was registered by hand.
pub(crate) fn bind(client: &PreRegistered, server: &AuthorizationServerMetadata) -> Registration {
    let authentication = client.authentication.unwrap_or_else(|| {
        if client.client_secret.is_none() {
            return ClientAuthentication::None;
        }
        let supported = server.token_endpoint_auth_methods_supported.as_deref();
        let supports = |method: ClientAuthentication| {
            supported.is_some_and(|names| names.iter().any(|name| name == method.as_str()))
        };
        // Without a list, the method is Basic by definition.
        if supports(ClientAuthentication::SecretPost) && !supports(ClientAuthentication::SecretBasic) {
            ClientAuthentication::SecretPost
        } else {
            ClientAuthentication::SecretBasic
        }
    });
    let client_secret = client.client_secret.clone();
    Registration {
        client_secret,
        authentication,
        ..Registration::new(server.issuer.as_str(), client.client_id.as_str())
    }
}

/// Chooses how a client that registers itself will authenticate: without a secret if it can.
fn authentication_to_register(
    server: &AuthorizationServerMetadata,
    has_metadata: bool,
) -> Result<ClientAuthentication, LoginError> {
    let order = [ClientAuthentication::None, ClientAuthentication::SecretBasic, ClientAuthentication::SecretPost];
    match &server.token_endpoint_auth_methods_supported {
        Some(supported) => {
            let method = order.into_iter().find(|method| supported.iter().any(|name| name == method.as_str()));
            let what = "a way to authenticate that clients can register for";
            method.ok_or_else(|| LoginError::Unsupported { issuer: server.issuer.clone(), what })
        }
        // The default of metadata without the list.
        None if has_metadata => Ok(ClientAuthentication::SecretBasic),
        None => Ok(ClientAuthentication::None),
    }
}
