//! How a client authenticates at an endpoint.

use std::time::Duration;

use url::form_urlencoded;

use super::super::redaction::KnownSecrets;
use super::super::{ClientAssertion, ClientAuthentication, HttpRequest, IdentityProvider, Registration};
use crate::Secret;
use crate::basic_credentials::basic_credentials;

/// How long a client assertion is valid. It is sent at once; the rest is for clocks that differ.
const ASSERTION_LIFETIME: Duration = Duration::from_secs(60);

/// Parameters of a request, encoded as a form.
#[derive(Debug, Default)]
pub(crate) struct Form {
    parameters: Vec<(&'static str, Secret)>,
    secrets: KnownSecrets,
}

impl Form {
    pub(crate) fn grant(grant_type: &str) -> Self {
        Self::default().with("grant_type", grant_type)
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Secret>) -> Self {
        self.parameters.push((name, value.into()));
        self
    }

    /// Adds a parameter that must not be shown, not even if the endpoint repeats it.
    pub(crate) fn with_secret(mut self, name: &'static str, value: Secret) -> Self {
        self.secrets.add(&value);
        self.with(name, value)
    }

    /// Adds a parameter unless its value is empty.
    pub(crate) fn with_non_empty(self, name: &'static str, value: String) -> Self {
        if value.is_empty() { self } else { self.with(name, value) }
    }

    fn encode(&self) -> Secret {
        let mut form = form_urlencoded::Serializer::new(String::new());
        for (name, value) in &self.parameters {
            form.append_pair(name, value.expose());
        }
        Secret::new(form.finish())
    }
}

/// What a client authenticates with at one server.
pub(crate) struct ClientCredentials<'a> {
    pub(crate) client_id: &'a str,
    pub(crate) client_secret: Option<&'a Secret>,
    pub(crate) authentication: ClientAuthentication,
    /// The audience of a client assertion.
    pub(crate) audience: &'a str,
}

impl<'a> ClientCredentials<'a> {
    pub(crate) fn of(registration: &'a Registration) -> Self {
        Self {
            client_id: &registration.client_id,
            client_secret: registration.client_secret.as_ref(),
            authentication: registration.authentication,
            audience: &registration.issuer,
        }
    }

    pub(crate) fn at_provider(provider: &'a IdentityProvider) -> Self {
        Self {
            client_id: &provider.client_id,
            client_secret: provider.client_secret.as_ref(),
            authentication: provider.authentication,
            audience: provider.issuer.as_deref().unwrap_or(&provider.token_endpoint),
        }
    }

    /// Creates the request of this client with these parameters, and returns the secrets in it.
    pub(crate) fn post(&self, url: &str, form: Form, max_response_bytes: usize) -> (HttpRequest, KnownSecrets) {
        let no_secret = Secret::new("");
        let secret = self.client_secret.unwrap_or(&no_secret);
        let form = match self.authentication {
            ClientAuthentication::None | ClientAuthentication::PrivateKeyJwt => form.with("client_id", self.client_id),
            ClientAuthentication::SecretPost => {
                form.with("client_id", self.client_id).with_secret("client_secret", secret.clone())
            }
            ClientAuthentication::SecretBasic => form,
        };
        let mut secrets = form.secrets.clone();
        let mut request =
            HttpRequest::post(url, "application/x-www-form-urlencoded", form.encode(), max_response_bytes);
        match self.authentication {
            ClientAuthentication::SecretBasic => {
                let credentials = basic_credentials(self.client_id, secret);
                secrets.add_all([secret, &credentials]);
                request.headers.push(("authorization", Secret::new(["Basic ", credentials.expose()].concat())));
            }
            ClientAuthentication::PrivateKeyJwt => {
                request.client_assertion = Some(ClientAssertion {
                    client_id: self.client_id.to_owned(),
                    audience: self.audience.to_owned(),
                    lifetime: ASSERTION_LIFETIME,
                });
            }
            ClientAuthentication::None | ClientAuthentication::SecretPost => {}
        }
        (request, secrets)
    }
}
