//! Requests to send, and their responses.

use std::fmt;
use std::time::Duration;

use crate::Secret;
use crate::address::shown;

/// A request that a flow wants sent.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpRequest {
    /// The method.
    pub method: HttpMethod,
    /// The address. It is `https`, or `http` to this machine.
    pub url: String,
    /// The headers. They can contain secrets.
    pub headers: Vec<(&'static str, Secret)>,
    /// The body. It can contain secrets.
    pub body: Option<Secret>,
    /// The maximum length of the body of the response. A longer one is reported as [`RequestError::TooLarge`].
    pub max_response_bytes: usize,
    /// Whether redirects to the same origin can be followed. Requests with secrets are never sent to another place.
    pub may_redirect: bool,
    /// The assertion to sign and to add with [`attach_client_assertion`](Self::attach_client_assertion).
    pub client_assertion: Option<ClientAssertion>,
    /// The proof to sign and to add with [`attach_dpop_proof`](Self::attach_dpop_proof).
    pub dpop_proof: Option<DpopProof>,
}

/// A method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpMethod {
    /// `GET`
    Get,
    /// `POST`
    Post,
}

impl HttpMethod {
    /// Returns the name of the method.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// A client assertion to sign (RFC 7523): issuer and subject are the client, `jti` and `iat` are up to the signer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientAssertion {
    /// The identifier of the client, which is issuer and subject.
    pub client_id: String,
    /// The audience, which is the issuer of the authorization server.
    pub audience: String,
    /// How long the assertion is valid.
    pub lifetime: Duration,
}

/// A DPoP proof to sign (RFC 9449): `jti` and `iat` are up to the signer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DpopProof {
    /// The method of the request (`htm`).
    pub method: HttpMethod,
    /// The address of the request without query and fragment (`htu`).
    pub url: String,
    /// The nonce that the server demanded.
    pub nonce: Option<String>,
}

impl HttpRequest {
    pub(crate) fn get(url: impl Into<String>, max_response_bytes: usize) -> Self {
        Self {
            method: HttpMethod::Get,
            url: url.into(),
            headers: vec![("accept", Secret::new("application/json"))],
            body: None,
            max_response_bytes,
            may_redirect: true,
            client_assertion: None,
            dpop_proof: None,
        }
    }

    pub(crate) fn post(url: impl Into<String>, content_type: &str, body: Secret, max_response_bytes: usize) -> Self {
        Self {
            method: HttpMethod::Post,
            headers: vec![("accept", Secret::new("application/json")), ("content-type", Secret::new(content_type))],
            body: Some(body),
            may_redirect: false,
            ..Self::get(url, max_response_bytes)
        }
    }

    /// Adds the signed client assertion to the body.
    pub fn attach_client_assertion(&mut self, assertion: &Secret) {
        if self.client_assertion.take().is_none() {
            return;
        }
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
        form.append_pair("client_assertion", assertion.expose());
        let appended = Secret::new(form.finish());
        let body = self.body.as_ref().map(Secret::expose).filter(|body| !body.is_empty());
        self.body = Some(match body {
            Some(body) => Secret::new([body, "&", appended.expose()].concat()),
            None => appended,
        });
    }

    /// Adds the signed DPoP proof to the headers.
    pub fn attach_dpop_proof(&mut self, proof: impl Into<Secret>) {
        if self.dpop_proof.take().is_some() {
            self.headers.push(("dpop", proof.into()));
        }
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &shown(&self.url))
            .field("client_assertion", &self.client_assertion)
            .field("dpop_proof", &self.dpop_proof)
            .finish_non_exhaustive()
    }
}

/// A response to an [`HttpRequest`].
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The value of the header `DPoP-Nonce`.
    pub dpop_nonce: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpResponse {
    /// Creates a response from its status and its body.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, dpop_nonce: None, body: body.into() }
    }

    /// Sets the value of the header `DPoP-Nonce`.
    #[must_use]
    pub fn dpop_nonce(mut self, nonce: impl Into<String>) -> Self {
        self.dpop_nonce = Some(nonce.into());
        self
    }

    pub(crate) const fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The body has tokens.
        f.debug_struct("HttpResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Drop for HttpResponse {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.body);
    }
}

/// The error of a request that got no response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server could not be reached, or the connection broke, or it took too long.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// The address is, or resolves to, one that must not be contacted.
    #[error("it must not be contacted: {0}")]
    Refused(String),
    /// It redirects to another origin, too often, or although the request does not allow it.
    #[error("it redirects to where it must not be followed: {0}")]
    Redirected(String),
    /// The body is longer than the request allows.
    #[error("its response is too large")]
    TooLarge,
    /// The request could not be signed.
    #[error("the request could not be signed: {0}")]
    Signing(String),
}
