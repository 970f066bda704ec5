//! Keys and introspection with HTTP.

use std::fmt;
use std::sync::OnceLock;

use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::introspection::IntrospectionEndpoint;
use super::jwt::{JwtVerifier, KeySource, KeySourceError};
use super::protected_resource::ProtectedResource;
use super::verifier::TokenError;
use crate::Secret;
use crate::fetch::{AddressPolicy, FetchError, Fetcher};
use crate::metadata::{AuthorizationServerMetadata, well_known};

/// Loads the keys of an issuer with HTTP.
#[derive(Debug)]
pub struct HttpKeys {
    location: KeyLocation,
    fetcher: Option<Fetcher>,
    default_fetcher: OnceLock<Fetcher>,
}

#[derive(Debug)]
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
        Self::new(KeyLocation::Url(url.into()))
    }

    /// Creates a source of the keys of an issuer, at the address that its metadata has (RFC 8414 or OpenID Connect Discovery).
    #[must_use]
    pub fn discover(issuer: impl Into<String>) -> Self {
        Self::new(KeyLocation::Issuer(issuer.into()))
    }

    fn new(location: KeyLocation) -> Self {
        Self { location, fetcher: None, default_fetcher: OnceLock::new() }
    }

    /// Sets the HTTP client. Defaults to one that requests addresses of private networks only if the issuer is in one.
    #[must_use]
    pub fn fetcher(mut self, fetcher: Fetcher) -> Self {
        self.fetcher = Some(fetcher);
        self
    }

    async fn get(&self, fetcher: &Fetcher, url: &str) -> Result<Option<Vec<u8>>, FetchError> {
        let response = fetcher.get(url).await?;
        Ok((response.status() == StatusCode::OK).then(|| response.into_body()))
    }

    /// Finds the address of the keys in the metadata of the issuer.
    async fn find_url(&self, fetcher: &Fetcher, issuer: &str) -> Result<String, KeySourceError> {
        let url = Url::parse(issuer).map_err(|_| KeySourceError::new("the issuer is not a URL"))?;
        let mut failure = None;
        for address in well_known::authorization_server(&url) {
            match self.get(fetcher, address.as_str()).await {
                Ok(Some(document)) => {
                    let Ok(metadata) = AuthorizationServerMetadata::parse(&document) else { continue };
                    if metadata.issuer != issuer {
                        return Err(KeySourceError::new("the metadata is that of another issuer"));
                    }
                    return metadata.jwks_uri.ok_or_else(|| KeySourceError::new("the issuer publishes no keys"));
                }
                Ok(None) => {}
                Err(error) => failure = Some(error.to_string()),
            }
        }
        Err(KeySourceError::new(failure.unwrap_or_else(|| "the issuer publishes no metadata".to_owned())))
    }
}

/// Returns the client that was set, or one for the addresses that a server names.
fn fetcher_for<'a>(
    fetcher: Option<&'a Fetcher>,
    default: &'a OnceLock<Fetcher>,
    address: &str,
) -> Result<&'a Fetcher, String> {
    if let Some(fetcher) = fetcher.or_else(|| default.get()) {
        return Ok(fetcher);
    }
    let url = Url::parse(address).map_err(|_| "the address is not a URL".to_owned())?;
    let fetcher = Fetcher::builder(AddressPolicy::for_server(&url)).build().map_err(|error| error.to_string())?;
    Ok(default.get_or_init(|| fetcher))
}

#[async_trait]
impl KeySource for HttpKeys {
    async fn load(&self) -> Result<Vec<u8>, KeySourceError> {
        let (KeyLocation::Url(address) | KeyLocation::Issuer(address)) = &self.location;
        let fetcher =
            fetcher_for(self.fetcher.as_ref(), &self.default_fetcher, address).map_err(KeySourceError::new)?;
        let url = match &self.location {
            KeyLocation::Url(url) => url.clone(),
            KeyLocation::Issuer(issuer) => self.find_url(fetcher, issuer).await?,
        };
        let document = self.get(fetcher, &url).await.map_err(|error| KeySourceError::new(error.to_string()))?;
        document.ok_or_else(|| KeySourceError::new("there are no keys at the address"))
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
    /// The issuer has to be written as in the claim `iss` of its tokens, with or without a slash at the end.
    ///
    /// ```
    /// use mcp_auth::server::ProtectedResource;
    ///
    /// let auth = ProtectedResource::new("https://api.example.com/mcp").issuer("https://issuer.example.com").layer()?;
    /// # Ok::<(), mcp_auth::server::InvalidResource>(())
    /// ```
    pub fn issuer(self, issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        self.authorization_server(issuer.clone()).verifier(JwtVerifier::discover(issuer))
    }
}

/// Asks an authorization server about tokens with HTTP, authenticated by a secret in the `Authorization` header.
pub struct HttpIntrospection {
    url: String,
    authorization: HeaderValue,
    fetcher: Option<Fetcher>,
    default_fetcher: OnceLock<Fetcher>,
}

impl HttpIntrospection {
    /// Creates it from the address of the introspection endpoint, and the credentials that this server has there.
    #[must_use]
    pub fn new(url: impl Into<String>, client_id: &str, client_secret: &Secret) -> Self {
        // RFC 6749, section 2.3.1: both are encoded as in a form before they are joined.
        let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let credentials = Secret::new(format!("{}:{}", encode(client_id), encode(client_secret.expose())));
        let value = format!("Basic {}", BASE64_STANDARD.encode(credentials.expose()));
        let mut authorization = HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static("Basic"));
        authorization.set_sensitive(true);
        Self { url: url.into(), authorization, fetcher: None, default_fetcher: OnceLock::new() }
    }

    /// Sets the HTTP client. Defaults to one that requests addresses of private networks only if the endpoint is in one.
    #[must_use]
    pub fn fetcher(mut self, fetcher: Fetcher) -> Self {
        self.fetcher = Some(fetcher);
        self
    }
}

#[async_trait]
impl IntrospectionEndpoint for HttpIntrospection {
    async fn introspect(&self, token: &str) -> Result<Vec<u8>, TokenError> {
        let fetcher =
            fetcher_for(self.fetcher.as_ref(), &self.default_fetcher, &self.url).map_err(TokenError::unavailable)?;
        let body = Serializer::new(String::new())
            .append_pair("token", token)
            .append_pair("token_type_hint", "access_token")
            .finish();
        let request = Request::post(&self.url)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(AUTHORIZATION, self.authorization.clone())
            .body(body.into_bytes())
            .map_err(|_| TokenError::unavailable("the address of the introspection endpoint is not valid"))?;
        let response = fetcher.send(request).await.map_err(|error| TokenError::unavailable(error.to_string()))?;
        match response.status() {
            StatusCode::OK => Ok(response.into_body()),
            // Nothing of the request but the token changes, so others may be fine.
            status @ (StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY) => {
                tracing::warn!(target: "mcp", %status, "the introspection endpoint did not accept a request");
                Err(TokenError::invalid("the introspection endpoint does not accept it"))
            }
            status => Err(TokenError::unavailable(format!("the introspection endpoint responded with {status}"))),
        }
    }
}

impl fmt::Debug for HttpIntrospection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpIntrospection").field("url", &self.url).finish_non_exhaustive()
    }
}
