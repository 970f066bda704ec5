//! Credentials for requests, and what becomes of those that the server refuses.

use std::sync::Arc;

use http::HeaderValue;
use mcp_transport_http::{Credential, RequestHead, ResponseHead};
use tokio::time::Instant;

use super::active_login::{Freshness, Origin};
use super::clock;
use super::core::Core;
use super::error::OAuthError;
use super::sender::{DPOP_NONCE, unique_id};
use super::single_flight::{LoginReason, StepUp};
use crate::Challenge;
use crate::client::LoginError;
use crate::jose::DpopClaims;

impl Core {
    pub(super) async fn credential(self: &Arc<Self>) -> Result<Option<Credential>, OAuthError> {
        let Some(active) = self.active().await? else { return Ok(None) };
        match active.freshness() {
            Freshness::Fresh => {}
            Freshness::Ageing if self.is_renewable(&active) => {
                if self.state().backoff.check(Instant::now()).is_ok() {
                    drop(self.start_renewal(Some(Arc::clone(&active))));
                }
            }
            Freshness::Ageing => {}
            Freshness::Expired if self.is_renewable(&active) => {
                let renewed = self.renewed(active).await?;
                return Ok(renewed.map(|renewed| renewed.credential.clone()));
            }
            // The server refuses the request, and the user logs in.
            Freshness::Expired => return Ok(None),
        }
        Ok(Some(active.credential.clone()))
    }

    pub(super) async fn challenged(
        self: &Arc<Self>,
        challenge: &mcp_transport_http::Challenge,
    ) -> Result<Option<Credential>, OAuthError> {
        let challenges = Challenge::parse_all(challenge.www_authenticate.iter().map(String::as_str));
        let is_step_up = challenge.status == 403;
        if is_step_up && !challenges.iter().any(Challenge::is_insufficient_scope) {
            return Ok(None);
        }
        let refused = challenge.refused.clone();
        let active = self.active().await?;
        if let Some(active) = &active {
            // Another call has replaced it.
            if Some(&active.credential) != refused.as_ref() && active.freshness() != Freshness::Expired {
                return Ok(Some(active.credential.clone()));
            }
            if !is_step_up {
                // Tokens that were never accepted are not refreshed again, or obtained again and again.
                let is_new = !active.is_accepted() && refused.is_some();
                if is_new && active.origin == Origin::Login {
                    let issuer = active.saved.grant.issuer.clone();
                    return Err(OAuthError::Refused { server: self.settings.server_name.clone(), issuer });
                }
                if !(is_new && active.origin == Origin::Refresh) && self.is_renewable(active) {
                    self.state().challenges.clone_from(&challenges);
                    if let Some(renewed) = self.renewed(Arc::clone(active)).await? {
                        return Ok(Some(renewed.credential.clone()));
                    }
                }
            }
        }
        let step_up = active.filter(|_| is_step_up).map(|active| StepUp {
            needed: challenges.iter().find_map(Challenge::scope).unwrap_or_default(),
            granted: active.saved.grant.tokens.scopes.clone(),
        });
        let reason = LoginReason { refused, challenges, step_up, is_forced: false };
        let Some(login) = self.start_login(reason)? else { return Ok(None) };
        match login.await? {
            Some(active) => {
                if is_step_up {
                    self.state().step_ups.finish(&active.credential);
                }
                Ok(Some(active.credential.clone()))
            }
            None => Err(self.not_logged_in()),
        }
    }

    pub(super) fn proof(&self, credential: &Credential, request: &RequestHead<'_>) -> Result<HeaderValue, OAuthError> {
        let (active, nonce) = {
            let state = self.state();
            (state.active.clone(), state.nonce.current().map(str::to_owned))
        };
        let key = active.as_ref().and_then(|active| active.saved.key.as_deref());
        let key = key.ok_or(LoginError::Dpop("the key is missing"))?;
        let access_token = credential.token().into();
        let claims = DpopClaims {
            method: request.method.as_str(),
            url: request.url.as_str(),
            access_token: Some(&access_token),
            nonce: nonce.as_deref(),
            id: &unique_id(),
            issued_at: clock::now(),
        };
        let mut value =
            HeaderValue::try_from(claims.sign(key)?).map_err(|_| LoginError::Dpop("the proof is invalid"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    pub(super) fn handle_response(&self, credential: Option<&Credential>, response: &ResponseHead<'_>) {
        let nonce = response.headers.get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok());
        let mut state = self.state();
        if nonce.is_some() {
            state.nonce.update(None, nonce);
        }
        let is_refusal = matches!(response.status.as_u16(), 401 | 403);
        if let Some(credential) = credential.filter(|_| response.is_retry && !is_refusal) {
            state.step_ups.handle_accepted_retry(credential);
        }
        if let Some(active) = state.active.as_ref().filter(|active| !is_refusal && !active.is_accepted())
            && Some(&active.credential) == credential
        {
            active.accept();
        }
    }
}
