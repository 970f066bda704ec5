//! Requests of the flows, signed and sent.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, StatusCode};
use url::Url;
use zeroize::Zeroizing;

use super::clock;
use crate::Challenge;
use crate::client::{self, HttpMethod, HttpRequest, HttpResponse};
use crate::fetch::{FetchError, Fetcher};
use crate::jose::{AssertionClaims, DpopClaims, SigningError, SigningKey};

/// The header with the nonce for DPoP proofs.
pub(super) const DPOP_NONCE: &str = "dpop-nonce";

/// Sends the requests of flows.
pub(super) struct Sender {
    pub(super) fetcher: Fetcher,
    /// The key that the client authenticates with.
    pub(super) client_key: Option<Arc<SigningKey>>,
}

impl Sender {
    /// Signs and sends a request. The key is the one that tokens are bound to.
    pub(super) async fn send(
        &self,
        mut request: HttpRequest,
        dpop_key: Option<&SigningKey>,
    ) -> Result<HttpResponse, client::RequestError> {
        self.sign(&mut request, dpop_key).map_err(|error| client::RequestError::Signing(error.to_string()))?;
        let limit = request.max_response_bytes;
        let response =
            self.fetcher.send_limited(to_http(&request)?, limit).await.map_err(|error| to_flow_error(&error))?;
        let nonce = response.headers().get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok().map(str::to_owned));
        let status = response.status().as_u16();
        let response = HttpResponse::new(status, response.into_body());
        Ok(match nonce {
            Some(nonce) => response.dpop_nonce(nonce),
            None => response,
        })
    }

    /// Sends a server a request without a token, and returns the challenges of its response: they can name metadata that is in no
    /// well-known place, and scopes. There are none if the server cannot be reached, as the well-known places are left then.
    pub(super) async fn provoke_challenges(&self, server: &Url) -> Vec<Challenge> {
        // A request without effect for servers that let it in.
        let request = Request::post(server.as_str())
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_vec());
        let Ok(request) = request else { return Vec::new() };
        match self.fetcher.send(request).await {
            Ok(response) if response.status() == StatusCode::UNAUTHORIZED => {
                let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
                Challenge::parse_all(values.filter_map(|value| value.to_str().ok()))
            }
            Ok(_) => Vec::new(),
            Err(error) => {
                tracing::debug!(%error, "the server was not asked for its challenge");
                Vec::new()
            }
        }
    }

    fn sign(&self, request: &mut HttpRequest, dpop_key: Option<&SigningKey>) -> Result<(), SigningError> {
        if let Some(assertion) = &request.client_assertion {
            let key = self.client_key.as_deref().ok_or(SigningError)?;
            let (id, issued_at) = (unique_id(), clock::now());
            let (client_id, audience, lifetime) = (&assertion.client_id, &assertion.audience, assertion.lifetime);
            let signed = AssertionClaims { client_id, audience, id: &id, issued_at, lifetime }.sign(key)?;
            request.attach_client_assertion(&signed);
        }
        if let Some(proof) = &request.dpop_proof {
            let (id, issued_at) = (unique_id(), clock::now());
            let (method, url, nonce) = (proof.method.as_str(), proof.url.as_str(), proof.nonce.as_deref());
            let claims = DpopClaims { method, url, access_token: None, nonce, id: &id, issued_at };
            let signed = claims.sign(dpop_key.ok_or(SigningError)?)?;
            request.attach_dpop_proof(signed);
        }
        Ok(())
    }
}

/// Returns an identifier that no other assertion or proof has.
pub(super) fn unique_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness nothing is signed either, so the request fails anyway.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn to_http(request: &HttpRequest) -> Result<Request<Vec<u8>>, client::RequestError> {
    // The errors of `http` have nothing of the values.
    let invalid = |error: &dyn std::fmt::Display| client::RequestError::Refused(error.to_string());
    let method = match request.method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
    };
    let body = request.body.as_ref().map(|body| body.expose().as_bytes().to_vec()).unwrap_or_default();
    let mut built = Request::builder().method(method).uri(&request.url).body(body).map_err(|error| invalid(&error))?;
    for (name, value) in &request.headers {
        let mut value = HeaderValue::from_str(value.expose()).map_err(|error| invalid(&error))?;
        value.set_sensitive(true);
        built.headers_mut().insert(HeaderName::from_static(name), value);
    }
    Ok(built)
}

fn to_flow_error(error: &FetchError) -> client::RequestError {
    match error {
        FetchError::TooLarge { .. } => client::RequestError::TooLarge,
        FetchError::Network { .. } | FetchError::Timeout { .. } => client::RequestError::Unreachable(error.to_string()),
        FetchError::Redirected { .. } => client::RequestError::Redirected(error.to_string()),
        FetchError::Refused { .. } | FetchError::Invalid(_) => client::RequestError::Refused(error.to_string()),
    }
}

/// Returns random bytes for a login.
pub(super) fn random<const N: usize>() -> Result<[u8; N], SigningError> {
    let mut bytes = Zeroizing::new([0; N]);
    getrandom::fill(&mut *bytes).map_err(|_| SigningError)?;
    Ok(*bytes)
}
