//! Sends requests with the credentials of an authorizer.

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use mcp_client::CredentialFingerprint;
use reqwest::{Request, Response};

use super::headers::Session;
use super::sender::{CallContext, RequestSender, SendError, Sent, is_owner};
use crate::client::authorizer::{Authorizer, Challenge, Credential, RequestHead, ResponseHead};
use crate::client::fingerprint::{PresentedCredential, credential};
use crate::rules::header_names::{DPOP, DPOP_NONCE};

/// How many times a request is sent again with another credential.
const MAX_CREDENTIAL_RETRIES: usize = 2;

/// Why a call with credentials of its own cannot be sent in a session.
const OTHER_USER: &str = "the call was not sent: the session with the legacy server belongs to other credentials than those \
                          of the call; use one client for each user";

impl RequestSender {
    /// Sends a request with the current credential, and again with another one if the authorizer returns one after 401 or
    /// 403.
    pub(super) async fn send_authorized(
        &self,
        authorizer: &dyn Authorizer,
        mut request: Request,
        session: &Session,
        context: &CallContext,
    ) -> Result<Sent, SendError> {
        let mut credential = credential(authorizer, &context.extensions).await?;
        let (mut retries, mut has_new_proof) = (0, false);
        loop {
            let by = self.identify(authorizer, credential.as_ref(), session, context).await?;
            let needs_proof = credential.as_ref().is_some_and(|credential| credential.needs_proof);
            let again = if retries < MAX_CREDENTIAL_RETRIES || needs_proof { request.try_clone() } else { None };
            if let Some(credential) = &credential {
                present(authorizer, credential, &mut request).await?;
            }
            let response = self.execute(request).await?;
            let head = ResponseHead::new(response.status(), response.headers(), response.url()).retry(retries > 0);
            authorizer.handle_response(credential.as_ref(), &head);
            let is_challenge = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            let Some(again) = again.filter(|_| is_challenge) else { return Ok(Sent { response, by }) };
            // The authorizer knows the nonce now. The server has not judged the credential yet.
            if needs_proof && asks_for_nonce(&response) && !std::mem::replace(&mut has_new_proof, true) {
                request = again;
                continue;
            }
            if retries == MAX_CREDENTIAL_RETRIES {
                return Ok(Sent { response, by });
            }
            let challenge = Challenge {
                call: context.extensions.clone(),
                ..Challenge::new(response.status().as_u16(), challenges(response.headers())).refused(credential)
            };
            // Few requests need this, so it is boxed, which keeps the others small.
            credential = Box::pin(self.challenge(authorizer, &challenge, context)).await?;
            if credential.is_none() {
                return Ok(Sent { response, by });
            }
            request = again;
            (retries, has_new_proof) = (retries + 1, false);
        }
    }

    /// Returns the fingerprint of a request's credentials, and checks that the session was started with them.
    async fn identify(
        &self,
        authorizer: &dyn Authorizer,
        credential: Option<&Credential>,
        session: &Session,
        context: &CallContext,
    ) -> Result<CredentialFingerprint, SendError> {
        let presented = presented(credential);
        let by = self.fingerprints.of(presented);
        if let Some(call) = context.call {
            self.responses.set_call_credentials(call, by);
        }
        if context.extensions.is_empty() {
            self.set_credentials(by);
        } else if self.state().credentials != Some(by) {
            // These are the call's own, or those of the client have changed.
            let credential = authorizer.credential().await?;
            let of_client = self::presented(credential.as_ref());
            let fingerprint = self.fingerprints.of(of_client);
            self.set_credentials(fingerprint);
            if !is_owner(session, by, presented) && is_owner(session, fingerprint, of_client) {
                return Err(SendError::Failed(OTHER_USER.to_owned()));
            }
        }
        if is_owner(session, by, presented) { Ok(by) } else { Err(SendError::CredentialsChanged) }
    }
}

/// Adds a credential to a request, with its proof if it needs one.
async fn present(authorizer: &dyn Authorizer, credential: &Credential, request: &mut Request) -> Result<(), SendError> {
    request.headers_mut().insert(AUTHORIZATION, credential.value.clone());
    if credential.needs_proof {
        let proof = authorizer.proof(credential, &RequestHead::new(request.method(), request.url())).await?;
        request.headers_mut().insert(DPOP, proof);
    }
    Ok(())
}

/// A credential of an authorizer. With an authorizer, a fixed header does not identify the user.
fn presented(credential: Option<&Credential>) -> PresentedCredential<'_> {
    credential.map_or(PresentedCredential::Nothing, PresentedCredential::Credential)
}

/// Returns the values of the `WWW-Authenticate` headers.
fn challenges(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let values = headers.get_all(WWW_AUTHENTICATE).into_iter();
    values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Whether a server refused a proof only because it has no nonce, or an old one.
// RFC 9449, section 9
fn asks_for_nonce(response: &Response) -> bool {
    response.status() == StatusCode::UNAUTHORIZED
        && response.headers().contains_key(DPOP_NONCE)
        && challenges(response.headers()).any(|challenge| challenge.contains("\"use_dpop_nonce\""))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use futures_util::FutureExt as _;
    use mcp_client::AuthorizationError;

    use super::*;
    use crate::client::request::sender::tests::sender;

    struct Known;

    #[async_trait]
    impl Authorizer for Known {
        async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
            Ok(Some(Credential::bearer("a")?))
        }

        async fn challenged(&self, _: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
            Ok(None)
        }
    }

    /// Each request records its credentials, even if the previous one had the same: others may have been used in between.
    // covers: SEC-8
    #[test]
    fn sec_8_each_request_tells_whose_it_is() {
        let sender = sender(Some(Arc::new(Known)));
        let (credential, session) = (Known.credential().now_or_never().unwrap().unwrap(), Session::default());
        let other = sender.fingerprints.of(PresentedCredential::Nothing);
        for _ in 0..2 {
            let context = CallContext::default();
            let identified = sender.identify(&Known, credential.as_ref(), &session, &context).now_or_never();
            let Some(Ok(own)) = identified else { panic!("it is the owner") };
            assert_eq!(sender.state().credentials, Some(own));
            sender.state().set_credentials(other);
        }
    }
}
