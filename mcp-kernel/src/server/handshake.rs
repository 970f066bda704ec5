//! An `initialize` that the application decides about.
//!
//! ```text
//!   Fresh --initialize--> pending --accept_handshake--> Negotiated
//!     ^                      |
//!     +---refuse_handshake---+
//! ```

use std::sync::Arc;

use mcp_types::jsonrpc::Request;
use mcp_types::{ErrorObject, InitializeRequestParams, RawObject, RequestId, Revision};

use super::admission::Refusal;
use super::config::ServerConfig;
use super::connection::Connection;
use super::event::Event;
use super::scope::Principal;
use super::transmit::Failure;
use crate::RequestKey;
use crate::errors::PeerMisbehaved;

/// An `initialize` of a legacy client, for the application to accept or to refuse
/// ([`ServerConfig::intercept_initialize`]).
#[derive(Debug)]
#[non_exhaustive]
pub struct HandshakeRequest {
    /// The request.
    pub key: RequestKey,
    /// The parameters.
    pub params: InitializeRequestParams,
    /// The revision that the response will have, unless the configuration changes.
    pub revision: Revision,
    /// The authenticated user, if any.
    pub principal: Option<Principal>,
}

/// An `initialize` without a response.
pub(super) struct HeldInitialize {
    pub(super) key: RequestKey,
    pub(super) id: RequestId,
    params: RawObject,
    has_principal: bool,
}

impl Connection {
    /// Keeps an `initialize` for the application, if it wants to decide about it and no handshake is complete. Returns
    /// whether it does.
    pub(super) fn intercept_handshake(
        &mut self,
        key: RequestKey,
        request: &Request<'_>,
        params: &InitializeRequestParams,
        principal: Option<&Principal>,
    ) -> Result<bool, Refusal> {
        if !self.config.intercept_initialize || !self.lifecycle.awaits_handshake() {
            return Ok(false);
        }
        let revision = self.lifecycle.revision_for(&params.protocol_version, &self.config);
        // Without a revision the error is always the same.
        let Some(revision) = revision else { return Ok(false) };
        if self.handshake.is_some() {
            return Err(PeerMisbehaved::InitializedTwice.into());
        }
        let text = request.params.as_ref().map(|params| params.to_object()).unwrap_or_default();
        self.handshake = Some(Box::new(HeldInitialize {
            key,
            id: request.id.clone(),
            params: text,
            has_principal: principal.is_some(),
        }));
        let (params, principal) = (params.clone(), principal.cloned());
        self.emit(Event::Handshake(Box::new(HandshakeRequest { key, params, revision, principal })));
        Ok(true)
    }

    /// Accepts the pending handshake, if there is one, with another configuration if one is given. Returns whether there is
    /// a session or a response now; the handshake may fail if the configuration has no legacy revision, and the
    /// configuration is not replaced then.
    pub fn accept_handshake(&mut self, config: Option<Arc<ServerConfig>>) -> bool {
        let Some(pending) = self.handshake.take() else { return false };
        let HeldInitialize { key, id, params, has_principal } = *pending;
        let replaced = config.map(|config| std::mem::replace(&mut self.config, config));
        let accepted = match params.decode() {
            Ok(decoded) => self.complete_handshake(key, &id, decoded, || params.clone(), has_principal),
            Err(fault) => Err(PeerMisbehaved::InvalidParams(fault.to_string().into()).into()),
        };
        let error = accepted.as_ref().err().and_then(|refusal| refusal.to_error_object()).map(|error| error.code);
        self.report_handshake(&id, &params, error);
        let Err(refusal) = accepted else { return true };
        // The client may try again.
        if let Some(replaced) = replaced {
            self.config = replaced;
        }
        self.refuse_request(key, None, Some(&id), Revision::LATEST_LEGACY, *refusal);
        false
    }

    /// Refuses the pending handshake, if there is one. The client may try again.
    pub fn refuse_handshake(&mut self, error: &ErrorObject) {
        let Some(pending) = self.handshake.take() else { return };
        self.report_handshake(&pending.id, &pending.params, Some(error.code));
        self.queue_error(pending.key, None, Some(&pending.id), Revision::LATEST_LEGACY, error, Failure::Refused);
    }
}
