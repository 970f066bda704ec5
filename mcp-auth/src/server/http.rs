//! Keys and introspection with HTTP.

use std::fmt;
use std::sync::OnceLock;

use async_trait::async_trait;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::introspection::IntrospectionEndpoint;
use super::jwt::claims::read_claims;
use super::jwt::{JwtVerifier, KeySource, KeySourceError};
use super::protected_resource::ProtectedResource;
use super::verifier::TokenError;
use crate::Secret;
use crate::address::shown;
use crate::basic_credentials::basic_credentials;
use crate::fetch::{AddressPolicy, Fetcher};
use crate::metadata::{AuthorizationServerMetadata, well_known};

/// Loads the keys of an issuer with HTTP.
///
/// The address that it is created with may be in a private network, whatever its name looks like: it comes from the operator. An
/// address in the metadata of an issuer may be there, too, if it is at the issuer itself, or if the issuer is in a private
/// network by its URL.
pub struct HttpKeys {
    location: KeyLocation,
    fetchers: Fetchers,
}

enum KeyLocation {
    /// The address of the keys.
    Url(String),
    /// The issuer, whose metadata has the address.
    Issuer(String),
}

impl HttpKeys {
    /// Creates a source of keys at an address.
    #[must_use]
    pub fn at(url: impl Into<String>) -> Self {
        Self { location: KeyLocation::Url(url.into()), fetchers: Fetchers::default() }
    }

    /// Creates a source of the keys of an issuer, at the address that its metadata has (RFC 8414 or OpenID Connect Discovery).
    #[must_use]
    pub fn discover(issuer: impl Into<String>) -> Self {
        Self { location: KeyLocation::Issuer(issuer.into()), fetchers: Fetchers::default() }
    }

    /// Sets the HTTP client for all addresses.
    #[must_use]
    pub fn fetcher(mut self, fetcher: Fetcher) -> Self {
        self.fetchers.set = Some(fetcher);
        self
    }

    /// Requests a document, at an address that follows from the one that was configured.
    async fn get(&self, configured: &Url, address: &str) -> Result<Option<Vec<u8>>, KeySourceError> {
        let url = Url::parse(address).map_err(|_| KeySourceError::new("the address of the keys is not a URL"))?;
        let fetcher = self.fetchers.for_address(configured, &url).map_err(KeySourceError::new)?;
        let response = fetcher.get(address).await.map_err(|error| KeySourceError::new(error.to_string()))?;
        Ok((response.status() == StatusCode::OK).then(|| response.into_body()))
    }

    /// Finds the address of the keys in the metadata of the issuer.
    async fn find_url(&self, url: &Url, issuer: &str) -> Result<String, KeySourceError> {
        let mut failure = None;
        for address in well_known::authorization_server(url) {
            match self.get(url, address.as_str()).await {
                Ok(Some(document)) => {
                    let Ok(metadata) = AuthorizationServerMetadata::parse(&document) else { continue };
                    if metadata.issuer != issuer {
                        return Err(KeySourceError::new("the metadata is that of another issuer"));
                    }
                    return metadata.jwks_uri.ok_or_else(|| KeySourceError::new("the issuer publishes no keys"));
                }
                Ok(None) => {}
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| KeySourceError::new("the issuer publishes no metadata")))
    }
}

/// The HTTP clients for the addresses that the operator has configured, and for those that metadata names.
#[derive(Default)]
struct Fetchers {
    /// The client that was set, for all addresses.
    set: Option<Fetcher>,
    any: OnceLock<Fetcher>,
    public: OnceLock<Fetcher>,
}

impl Fetchers {
    fn for_address(&self, configured: &Url, address: &Url) -> Result<&Fetcher, String> {
        let is_configured = address.origin() == configured.origin();
        let policy = if is_configured { AddressPolicy::Any } else { AddressPolicy::for_server(configured) };
        let fetcher = if policy == AddressPolicy::Any { &self.any } else { &self.public };
        if let Some(fetcher) = self.set.as_ref().or_else(|| fetcher.get()) {
            return Ok(fetcher);
        }
        let new = Fetcher::builder(policy).build().map_err(|error| error.to_string())?;
        Ok(fetcher.get_or_init(|| new))
    }
}

#[async_trait]
impl KeySource for HttpKeys {
    async fn load(&self) -> Result<Vec<u8>, KeySourceError> {
        let (KeyLocation::Url(configured) | KeyLocation::Issuer(configured)) = &self.location;
        let url = Url::parse(configured).map_err(|_| KeySourceError::new("the address of the issuer is not a URL"))?;
        let address = match &self.location {
            KeyLocation::Url(address) => address.clone(),
            KeyLocation::Issuer(issuer) => self.find_url(&url, issuer).await?,
        };
        self.get(&url, &address).await?.ok_or_else(|| KeySourceError::new("there are no keys at the address"))
    }
}

impl JwtVerifier {
    /// Creates a verifier of the tokens of an issuer, whose keys are found by its metadata.
    ///
    /// ```
    /// use mcp_auth::server::JwtVerifier;
    ///
    /// let verifier = JwtVerifier::discover("https://issuer.example.com");
    /// ```
    pub fn discover(issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        Self::new(issuer.clone(), HttpKeys::discover(issuer))
    }
}

impl ProtectedResource {
    /// Adds an authorization server, and verifies the tokens that it issues: JWTs, whose keys its metadata names. This is
    /// [`authorization_server`](Self::authorization_server) and a [`verifier`](Self::verifier) in one.
    ///
    /// There can be several, such as one for each tenant. A token is accepted only with a key of the issuer that it names, and
    /// users of different issuers are different.
    ///
    /// The issuer has to be written as in the claim `iss` of its tokens, with or without a slash at the end.
    ///
    /// ```
    /// use mcp_auth::server::ProtectedResource;
    ///
    /// let auth = ProtectedResource::new("https://api.example.com/mcp").issuer("https://issuer.example.com").layer()?;
    /// # Ok::<(), mcp_auth::server::InvalidResource>(())
    /// ```
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        self.issuers.push(JwtVerifier::discover(issuer.clone()));
        self.authorization_server(issuer)
    }
}

/// Asks an authorization server about tokens with HTTP, authenticated by a secret in the `Authorization` header. The endpoint may
/// be in a private network.
pub struct HttpIntrospection {
    url: String,
    authorization: HeaderValue,
    fetchers: Fetchers,
}

impl HttpIntrospection {
    /// Creates it from the address of the introspection endpoint, and the credentials that this server has there.
    #[must_use]
    pub fn new(url: impl Into<String>, client_id: &str, client_secret: &Secret) -> Self {
        let value = ["Basic ", basic_credentials(client_id, client_secret).expose()].concat();
        let mut authorization = HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static("Basic"));
        authorization.set_sensitive(true);
        Self { url: url.into(), authorization, fetchers: Fetchers::default() }
    }

    /// Sets the HTTP client.
    #[must_use]
    pub fn fetcher(mut self, fetcher: Fetcher) -> Self {
        self.fetchers.set = Some(fetcher);
        self
    }
}

#[async_trait]
impl IntrospectionEndpoint for HttpIntrospection {
    async fn introspect(&self, token: &str) -> Result<Vec<u8>, TokenError> {
        let invalid = || TokenError::unavailable("the address of the introspection endpoint is not valid");
        let url = Url::parse(&self.url).map_err(|_| invalid())?;
        let fetcher = self.fetchers.for_address(&url, &url).map_err(TokenError::unavailable)?;
        let body = Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let request = Request::post(&self.url)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(AUTHORIZATION, self.authorization.clone())
            .body(body.into_bytes())
            .map_err(|_| invalid())?;
        let response = fetcher.send(request).await.map_err(|error| TokenError::unavailable(error.to_string()))?;
        let (status, body) = (response.status(), response.into_body());
        match status {
            StatusCode::OK => Ok(body),
            // Some authorization servers refuse the credentials of this server with 400, which is no fault of the token.
            StatusCode::BAD_REQUEST if has_client_error(&body) => Err(TokenError::unavailable(
                "the introspection endpoint does not accept the credentials of this server",
            )),
            // Nothing else of the request changes, so other tokens may be fine.
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::URI_TOO_LONG
            | StatusCode::UNPROCESSABLE_ENTITY
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
                Err(TokenError::invalid(format!("the introspection endpoint responded with {status}")))
            }
            _ => Err(TokenError::unavailable(format!("the introspection endpoint responded with {status}"))),
        }
    }
}

/// Whether an error response is about the client that sent the request (RFC 6749, section 5.2).
fn has_client_error(body: &[u8]) -> bool {
    let claims = str::from_utf8(body).ok().and_then(read_claims);
    let error = claims.as_ref().and_then(|members| members.get("error")).and_then(Value::as_str);
    matches!(error, Some("invalid_client" | "unauthorized_client"))
}

impl fmt::Debug for HttpKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (KeyLocation::Url(configured) | KeyLocation::Issuer(configured)) = &self.location;
        f.debug_struct("HttpKeys").field("location", &shown(configured)).finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpIntrospection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpIntrospection").field("url", &shown(&self.url)).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: AU-14
    #[test]
    fn debug_output_has_no_query_and_no_secret() {
        let introspection = HttpIntrospection::new("https://as.example/in?key=hunter2", "id", &Secret::new("hunter2"));
        let shown = format!("{introspection:?} {:?}", HttpKeys::at("https://as.example/keys?key=hunter2"));
        assert!(shown.contains("as.example/in") && shown.contains("as.example/keys"), "{shown}");
        assert!(!shown.contains("hunter2") && !shown.contains("aWQ6"), "{shown}");
    }

    /// What the operator has configured may be inside, and what metadata names only if its issuer is there by its URL.
    #[test]
    fn only_the_operator_points_inwards() {
        let url = |text: &str| Url::parse(text).unwrap();
        let is_public = |configured: &str, address: &str| {
            let fetchers = Fetchers::default();
            let fetcher = fetchers.for_address(&url(configured), &url(address)).unwrap();
            let policy = format!("{fetcher:?}");
            assert!(policy.contains("Any") || policy.contains("Public"), "{policy}");
            policy.contains("Public")
        };
        // A name that may resolve to an address of the company's network.
        let inside = "https://login.example.com/realms/staff";
        assert!(!is_public(inside, "https://login.example.com/realms/staff/certs"));
        for elsewhere in ["https://other.example.com/", "https://10.0.0.1/", "https://login.example.com:8443/"] {
            assert!(is_public(inside, elsewhere), "{elsewhere}");
        }
        assert!(!is_public("https://10.0.0.1/realms/staff", "https://10.0.0.2/certs"));
    }
}
