//! Admission of requests: whether a request is served, and by the rules of which revision.

use std::sync::{Arc, OnceLock};

use mcp_types::gate::{self, Direction, MethodFacts};
use mcp_types::jsonrpc::{Payload, PayloadBuf, Request};
use mcp_types::meta::key;
use mcp_types::{ClientCapabilities, Era, ErrorObject, Method, ProtocolVersion, RawObject, Revision};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::claims::RequestClaims;
use super::client::{Client, LazyClient};
use super::connection::Connection;
use super::envelope::{RequestEnvelope, malformed_meta};
use super::event::Event;
use super::in_flight::{Entry, Kind};
use super::scope::{Principal, RequestScope, Retry};
use crate::RequestKey;
use crate::errors::PeerMisbehaved;
use crate::queue::push;

/// The error with which a request is refused.
pub(super) type Refusal = Box<PeerMisbehaved>;

impl Connection {
    /// Admits a request. Checks, in this order: the id, `_meta`, the version that the transport claims, the version, what
    /// else the transport claims, the method, the extension and the limits. A legacy request has its handshake instead of
    /// the versions and claims.
    pub(super) fn handle_request(
        &mut self,
        key: RequestKey,
        request: Request<'_>,
        modern: bool,
        (principal, claims): (Option<&Principal>, Option<&dyn RequestClaims>),
        batch: Option<RequestKey>,
    ) -> Result<(), Refusal> {
        self.check_id(&request)?;
        let meta = RequestEnvelope::read(&request, &self.config.limits)?;
        let (revision, client, log_level) = if let Some(meta) = meta.as_ref().filter(|_| modern) {
            let (revision, client) = self.agree(meta, request.params.as_ref(), claims)?;
            check_claims(claims, |claims| claims.check_request(&request))?;
            (revision, LazyClient::Decoded(client), meta.log_level)
        } else if request.method == Method::INITIALIZE {
            return self.initialize(key, &request, principal);
        } else {
            let agreed = self.lifecycle.admit(&request.method, &self.config)?;
            // Without a session no level is stored, and logging is not declared.
            (
                agreed.revision,
                LazyClient::Handshake(agreed, OnceLock::new()),
                Some(self.log_level).filter(|_| !self.lifecycle.is_stateless()),
            )
        };
        // Y-1: a server that did not declare logging does not log.
        let log_level = log_level.filter(|_| self.config.capabilities.logging.is_some());
        let facts = gate::method(&request.method);
        self.check_method(&request.method, facts, revision, &client)?;
        let trace_context = meta.as_ref().and_then(|meta| meta.trace_context());
        let progress_token = meta.and_then(|meta| meta.progress_token);
        let params = request.params.map(Payload::into_owned).unwrap_or_default();
        let retry = if modern { self.read_retry(&params)? } else { None };
        let scope = Arc::new(RequestScope {
            key,
            id: request.id,
            method: request.method,
            facts,
            revision,
            client,
            log_level,
            trace_context,
            progress_token,
            principal: principal.cloned(),
            retry,
            has_back_channel: self.has_back_channel && !modern,
        });
        self.dispatch(scope, params, batch)
    }

    /// Checks the id of a request.
    pub(super) fn check_id(&self, request: &Request<'_>) -> Result<(), Refusal> {
        let limits = &self.config.limits;
        if request.id.as_str().is_some_and(|id| id.len() > limits.max_id_bytes) {
            return Err(PeerMisbehaved::IdTooLong { limit: limits.max_id_bytes }.into());
        }
        let is_pending = self.handshake.as_ref().is_some_and(|handshake| handshake.id == request.id);
        if is_pending || self.in_flight.has_id(&request.id) {
            return Err(PeerMisbehaved::DuplicateId(request.id.clone()).into());
        }
        Ok(())
    }

    /// Reads the envelope of a modern request: its version, and the client's capabilities and name.
    // V-2, DU-18
    fn agree(
        &self,
        meta: &RequestEnvelope<'_>,
        params: Option<&Payload<'_>>,
        claims: Option<&dyn RequestClaims>,
    ) -> Result<(Revision, Arc<Client>), Refusal> {
        let missing = |name: &str| invalid_meta(&format_args!("missing field `{name}`"));
        let version = meta.protocol_version.ok_or_else(|| missing(key::PROTOCOL_VERSION))?;
        let version = read_version(version).map_err(|_| malformed_meta(params))?;
        let capabilities = meta.client_capabilities.ok_or_else(|| missing(key::CLIENT_CAPABILITIES))?;
        let client = self.config.known_clients.decode(capabilities, meta.client_info);
        let client = client.map_err(|_| malformed_meta(params))?;
        check_claims(claims, |claims| claims.check_version(&version))?;
        let served = |revision: &Revision| revision.era() == Era::Modern && self.config.revisions.contains(revision);
        let Some(revision) = version.revision().filter(served) else {
            let mut supported = self.config.versions(Era::Modern);
            if supported.is_empty() {
                // A server without a modern revision names the versions for a handshake (AMB-8).
                supported = self.config.versions(Era::Legacy);
            }
            return Err(PeerMisbehaved::UnsupportedVersion { requested: version, supported }.into());
        };
        Ok((revision, client))
    }

    /// Checks that the revision and the server have the method, and that the client declared its extension.
    // E-13, E-14, H-33, EX-11
    fn check_method(
        &self,
        method: &Method,
        facts: Option<&MethodFacts>,
        revision: Revision,
        client: &LazyClient,
    ) -> Result<(), Refusal> {
        let unknown = || Refusal::from(PeerMisbehaved::UnknownMethod(method.clone()));
        if let Some((extension, revisions)) = self.config.extension_of(method)
            && revisions.contains(revision)
        {
            return check_extension(&client.capabilities, extension);
        }
        if self.config.accept_unknown_methods {
            let Some(facts) = facts else { return Ok(()) };
            if let Some(extension) = facts.extension
                && extension.may_be_sent(Direction::ClientToServer, revision)
                && self.config.declares_extension(extension.id)
            {
                return check_extension(&client.capabilities, extension.id);
            }
        }
        let travels = facts.is_some_and(|facts| facts.may_be_sent(Direction::ClientToServer, revision));
        if travels && self.config.offers(method) { Ok(()) } else { Err(unknown()) }
    }

    /// Reads the `inputResponses` and the `requestState` of a retry.
    //
    fn read_retry(&self, params: &PayloadBuf) -> Result<Option<Box<Retry>>, Refusal> {
        let [responses, state] = params.find(["inputResponses", "requestState"]);
        if responses.is_none() && state.is_none() {
            return Ok(None);
        }
        let limits = &self.config.limits;
        let responses = read_member(responses, "inputResponses", |_| {
            let (count, limit) = (params.member_count("inputResponses")?, limits.max_input_responses);
            (count > limit).then(|| format!("more than {limit} responses (`max_input_responses`)"))
        })?;
        let state = read_member(state, "requestState", |text| {
            let limit = limits.max_request_state_bytes;
            (text.len() > limit).then(|| format!("more than {limit} bytes (`max_request_state_bytes`)"))
        })?;
        let is_retry = responses.is_some() || state.is_some();
        Ok(is_retry.then(|| Box::new(Retry { input_responses: responses.unwrap_or_default(), request_state: state })))
    }

    /// Emits a request for the application, or queues it until another one has ended. `is_builtin` keeps the parameters
    /// for [`respond_builtin`](Self::respond_builtin).
    pub(super) fn open_request(
        &mut self,
        scope: Arc<RequestScope>,
        params: PayloadBuf,
        batch: Option<RequestKey>,
        is_builtin: bool,
    ) -> Result<(), Refusal> {
        let limits = &self.config.limits;
        let (running, most) = (self.in_flight.running() - self.rare.queued.len(), limits.max_in_flight);
        if running >= most {
            let held: usize = self.rare.queued.iter().map(queued_bytes).sum();
            if self.rare.queued.len() >= limits.max_queued || held + params.as_str().len() > limits.max_queued_bytes {
                return Err(PeerMisbehaved::TooManyRequests.into());
            }
        }
        let key = scope.key;
        let held = is_builtin.then(|| Box::new(params.clone()));
        let entry = Entry { scope: Arc::clone(&scope), last_progress: None, batch, kind: Kind::Running, held };
        let responder = self.in_flight.open(key, entry);
        let event = Event::Request { scope, params, responder };
        if running < most {
            self.emit(event);
        } else {
            push(&mut self.rare.make_mut().queued, event);
            self.report_queue();
        }
        Ok(())
    }
}

/// Reads a member of the parameters, unless it exceeds a limit.
fn read_member<T: DeserializeOwned>(
    value: Option<&RawValue>,
    name: &str,
    excess: impl FnOnce(&str) -> Option<String>,
) -> Result<Option<T>, Refusal> {
    let Some(text) = value.map(RawValue::get) else { return Ok(None) };
    let read = excess(text).map_or_else(|| serde_json::from_str(text).map_err(|fault| fault.to_string()), Err);
    read.map_err(|fault| PeerMisbehaved::InvalidParams(format!("`{name}`: {fault}").into()).into())
}

/// Reads a protocol version. Nearly all are the latest one.
fn read_version(raw: &RawValue) -> Result<ProtocolVersion, serde_json::Error> {
    let text = raw.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    if text == Some(ProtocolVersion::V2026_07_28.as_str()) {
        Ok(ProtocolVersion::V2026_07_28)
    } else {
        serde_json::from_str(raw.get())
    }
}

/// The size of a queued request.
fn queued_bytes(event: &Event) -> usize {
    if let Event::Request { params, .. } = event { params.as_str().len() } else { 0 }
}

/// Returns whether a request is modern: whether its `_meta` has a protocol version, whatever its value.
// DU-13, X-20
#[must_use]
pub fn is_modern(request: &Request<'_>) -> bool {
    request.params.as_ref().is_some_and(|params| params.has_meta(key::PROTOCOL_VERSION))
}

/// Compares a modern request with the claims of its transport, if it has any.
// H-41..H-55
fn check_claims(
    claims: Option<&dyn RequestClaims>,
    check: impl FnOnce(&dyn RequestClaims) -> Result<(), ErrorObject>,
) -> Result<(), Refusal> {
    let Some(claims) = claims else { return Ok(()) };
    check(claims).map_err(|error| PeerMisbehaved::ClaimMismatch(Box::new(error)).into())
}

pub(super) fn invalid_meta(fault: &dyn std::fmt::Display) -> Refusal {
    PeerMisbehaved::InvalidParams(format!("`_meta`: {fault}").into()).into()
}

/// Refuses a request that needs an extension which the client did not declare.
// E-14, EX-11
pub(super) fn check_extension(capabilities: &ClientCapabilities, extension: &str) -> Result<(), Refusal> {
    if capabilities.extensions.as_ref().is_some_and(|declared| declared.contains(extension)) {
        return Ok(());
    }
    let mut required = ClientCapabilities::default();
    required.extensions.get_or_insert_default().insert(extension, RawObject::empty());
    Err(PeerMisbehaved::MissingCapability { required: Box::new(required) }.into())
}
