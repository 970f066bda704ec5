//! One request to an endpoint, repeated with the nonces that it demands.

use url::Url;

use super::super::redaction::KnownSecrets;
use super::super::{DpopProof, ErrorResponse, HttpMethod, HttpRequest, HttpResponse, LoginError};
use super::{ClientCredentials, DpopNonce, Form, MAX_TOKEN_RESPONSE_BYTES};
use crate::address::{Address, shown};

/// How often a request is repeated because the endpoint demands another nonce.
const MAX_NONCES: usize = 3;

/// A request to an endpoint, which can be sent several times.
#[derive(Debug)]
pub(crate) struct EndpointCall {
    request: HttpRequest,
    /// The address of the endpoint, as it can be shown.
    url: String,
    /// What the endpoint could repeat.
    secrets: KnownSecrets,
    /// What proofs are for, if the request needs them.
    proof: Option<DpopProof>,
    nonce: DpopNonce,
    sent_nonce: Option<String>,
    nonces: usize,
}

/// What becomes of a response.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The request has to be repeated with a nonce.
    Repeat(HttpRequest),
    /// It is the result.
    Response(HttpResponse),
}

impl EndpointCall {
    pub(crate) fn new(endpoint: &Address, client: &ClientCredentials<'_>, form: Form, with_proof: bool) -> Self {
        let (request, secrets) = client.post(endpoint.as_str(), form, MAX_TOKEN_RESPONSE_BYTES);
        let proof =
            with_proof.then(|| DpopProof { method: HttpMethod::Post, url: without_query(endpoint.url()), nonce: None });
        Self {
            request,
            url: shown(endpoint.as_str()),
            secrets,
            proof,
            nonce: DpopNonce::new(),
            sent_nonce: None,
            nonces: 0,
        }
    }

    /// Returns the address of the endpoint, as it can be shown.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Adds secrets that the endpoint knows from elsewhere.
    pub(crate) fn knowing(mut self, secrets: &KnownSecrets) -> Self {
        self.secrets.extend(secrets);
        self
    }

    /// Returns the error that a response has, if any.
    pub(crate) fn error_of(&self, response: &HttpResponse) -> Option<ErrorResponse> {
        ErrorResponse::parse(&response.body, &self.secrets)
    }

    /// Returns why a response is no success.
    pub(crate) fn refusal(&self, response: &HttpResponse) -> LoginError {
        let url = self.url.clone();
        match self.error_of(response) {
            // An error of the server's own is no judgement of the request.
            Some(error) if response.status < 500 => LoginError::TokenRefused { url, error },
            _ => LoginError::Status { url, status: response.status },
        }
    }

    pub(crate) const fn has_proof(&self) -> bool {
        self.proof.is_some()
    }

    /// Returns the request to send.
    pub(crate) fn request(&mut self) -> HttpRequest {
        let mut request = self.request.clone();
        self.sent_nonce = self.nonce.current().map(str::to_owned);
        request.dpop_proof = self.proof.clone().map(|proof| DpopProof { nonce: self.sent_nonce.clone(), ..proof });
        request
    }

    /// Takes the response.
    pub(crate) fn handle_response(&mut self, response: HttpResponse) -> Result<Reply, LoginError> {
        if response.body.len() > MAX_TOKEN_RESPONSE_BYTES {
            return Err(LoginError::InvalidTokenResponse("it is too long"));
        }
        if self.proof.is_none() {
            return Ok(Reply::Response(response));
        }
        let is_new = self.nonce.update(self.sent_nonce.as_deref(), response.dpop_nonce.as_deref());
        let is_demanded =
            !response.is_success() && self.error_of(&response).is_some_and(|error| error.is("use_dpop_nonce"));
        if !is_demanded {
            self.nonces = 0;
            return Ok(Reply::Response(response));
        }
        if !is_new || self.nonces == MAX_NONCES {
            return Err(LoginError::Dpop("the authorization server refuses the nonce that it demands"));
        }
        self.nonces += 1;
        Ok(Reply::Repeat(self.request()))
    }
}

/// Returns what a proof names a request by.
fn without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}
