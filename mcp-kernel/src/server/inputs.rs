//! What comes from the client, and what happens to it.

use std::sync::Arc;

use mcp_types::gate::{self, Direction, MethodFacts};
use mcp_types::jsonrpc::{
    EnvelopeKind, EnvelopeSummary, Fault, Incoming, InvalidMessage, Message, Notification, Payload, PayloadBuf,
    Request, Response, parse,
};
use mcp_types::meta::key;
use mcp_types::{
    CancelledNotificationParams, ClientCapabilities, Era, ErrorCode, ErrorObject, InputResponses, Method,
    ProgressNotificationParams, RawObject, RequestId, RequestMeta, Revision,
};

use super::claims::RequestClaims;
use super::client::{Client, LazyClient};
use super::connection::{Batch, Connection};
use super::event::Event;
use super::in_flight::{Entry, Kind};
use super::lifecycle::Agreed;
use super::scope::{Principal, RequestScope};
use super::transmit::Route;
use crate::deadlines::DeadlineKind;
use crate::errors::{CallError, PeerMisbehaved};
use crate::limits::Limits;
use crate::queue::push;
use crate::{CallId, RequestKey, Time};

/// Why a request is refused.
pub(super) type Refusal = Box<PeerMisbehaved>;

impl Connection {
    /// Takes what one line or one body holds.
    ///
    /// Returns the handle under which it is answered, on [`Route::Reply`], if it is: so a transport with a stream for
    /// each request knows which one that is.
    pub fn handle_bytes(&mut self, now: Time, bytes: &[u8], principal: Option<&Principal>) -> Option<RequestKey> {
        if !self.may_feed() {
            return None;
        }
        let config = Arc::clone(&self.config);
        match parse(bytes, &config.limits.message) {
            Ok(incoming) => self.take(now, incoming, principal, None),
            Err(invalid) => {
                let key = self.in_flight.next_key();
                self.handle_invalid(key, None, invalid);
                Some(key)
            }
        }
    }

    /// Takes note of a text that was longer than the driver reads, with what it could tell of it.
    ///
    /// A request is refused by its id, a response ends the call that it was for, or every call if that is not known. A
    /// notification is ignored, as any other that is wrong, and the rest is refused without an id. A batch, where the
    /// revision has them, may be anything, so that it ends every call and is refused.
    pub fn handle_oversized(&mut self, limit: usize, summary: &EnvelopeSummary) {
        if !self.may_feed() {
            return;
        }
        let what = PeerMisbehaved::TooLong { limit };
        if summary.kind == EnvelopeKind::Batch && self.negotiated() == Some(Revision::V2025_03_26) {
            for call in self.calls.all() {
                self.finish_call(call, Err(CallError::TooLong { limit }));
            }
        }
        match (summary.kind, &summary.id) {
            (EnvelopeKind::Response, id) => {
                let calls = match id {
                    Some(id) => self.call_of_response(id).into_iter().collect(),
                    None => self.calls.all(),
                };
                for call in calls {
                    self.finish_call(call, Err(CallError::TooLong { limit }));
                }
            }
            (EnvelopeKind::Call, None) => {}
            (EnvelopeKind::Batch | EnvelopeKind::Call | EnvelopeKind::Unknown | EnvelopeKind::NotAnObject, id) => {
                let (key, revision) = (self.in_flight.next_key(), self.revision_for_errors());
                if let Some(error) = what.to_error_object() {
                    self.refuse(key, None, id.as_ref(), revision, &error);
                }
            }
        }
        self.misbehaved(what);
    }

    /// Whether anything more is taken in. A driver that feeds on although nobody reads has to be stopped, or else what
    /// waits to be sent grows without end. Once is no offence: the room may have gone after the driver looked.
    fn may_feed(&mut self) -> bool {
        if !self.closed && !self.wants_input() && std::mem::replace(&mut self.overfed, true) {
            self.misbehaved(PeerMisbehaved::NotReading);
            self.handle_disconnect();
        }
        !self.closed
    }

    /// Answers what is not a message; what neither is nor could be a request is not answered, even if it is wrong.
    fn handle_invalid(&mut self, key: RequestKey, batch: Option<RequestKey>, invalid: InvalidMessage) {
        if let Some(id) = invalid.response_id() {
            if let Some(call) = self.call_of_response(id) {
                self.finish_call(call, Err(CallError::InvalidResponse));
            }
        } else if is_answered(&invalid) {
            if let Some(batch) = batch.and_then(|batch| self.batches.get_mut(&batch)) {
                batch.expected += 1;
            }
            let revision = self.revision_for_errors();
            self.refuse(key, batch, invalid.id(), revision, &invalid.to_error_object());
        }
        self.misbehaved(PeerMisbehaved::InvalidMessage(Box::new(invalid)));
    }

    /// Takes a message, or a batch, that was parsed before. The claims of its transport, if any, must match a modern
    /// request.
    ///
    /// Returns what [`handle_bytes`](Self::handle_bytes) does.
    pub fn handle_incoming(
        &mut self,
        now: Time,
        incoming: Incoming<'_>,
        principal: Option<&Principal>,
        claims: Option<&dyn RequestClaims>,
    ) -> Option<RequestKey> {
        if self.may_feed() { self.take(now, incoming, principal, claims) } else { None }
    }

    fn take(
        &mut self,
        now: Time,
        incoming: Incoming<'_>,
        principal: Option<&Principal>,
        claims: Option<&dyn RequestClaims>,
    ) -> Option<RequestKey> {
        match incoming {
            Incoming::Single(message) => self.handle_message(now, message, (principal, claims), None),
            Incoming::Batch(messages) => Some(self.handle_batch(now, messages, principal)),
        }
    }

    fn handle_batch(
        &mut self,
        now: Time,
        messages: Vec<Result<Message<'_>, InvalidMessage>>,
        principal: Option<&Principal>,
    ) -> RequestKey {
        let allowed = self.negotiated() == Some(Revision::V2025_03_26);
        // DU-20, B-7: neither modern requests nor the handshake travel in a batch.
        let foreign = |message: &Result<Message<'_>, _>| match message {
            Ok(Message::Request(request)) => is_modern(request) || request.method == Method::INITIALIZE,
            Ok(Message::Notification(_) | Message::Response(_)) | Err(_) => false,
        };
        let key = self.in_flight.next_key();
        if !allowed || messages.iter().any(foreign) {
            let (what, revision) = (PeerMisbehaved::BatchNotAllowed, self.revision_for_errors());
            if let Some(error) = what.to_error_object() {
                self.refuse(key, None, None, revision, &error);
            }
            self.misbehaved(what);
            return key;
        }
        // One more answer is expected than there are, so that the batch does not go out before all were looked at.
        self.batches.insert(key, Batch { expected: 1, answers: Vec::new() });
        for message in messages {
            match message {
                Ok(message) => {
                    if let (Message::Request(_), Some(batch)) = (&message, self.batches.get_mut(&key)) {
                        batch.expected += 1;
                    }
                    self.handle_message(now, message, (principal, None), Some(key));
                }
                Err(invalid) => self.handle_invalid(key, Some(key), invalid),
            }
        }
        self.skip_in_batch(key);
        key
    }

    fn handle_message(
        &mut self,
        now: Time,
        message: Message<'_>,
        origin: (Option<&Principal>, Option<&dyn RequestClaims>),
        batch: Option<RequestKey>,
    ) -> Option<RequestKey> {
        match message {
            Message::Request(request) => {
                let (id, key, modern) = (request.id.clone(), self.in_flight.next_key(), is_modern(&request));
                let revision = if modern { Revision::LATEST } else { self.revision_for_errors() };
                if let Err(refusal) = self.handle_request(key, request, modern, origin, batch) {
                    self.refuse_request(key, batch, &id, revision, *refusal);
                }
                return Some(key);
            }
            Message::Notification(notification) => self.handle_notification(now, notification),
            Message::Response(response) => self.handle_response(response),
        }
        None
    }

    pub(super) fn refuse_request(
        &mut self,
        key: RequestKey,
        batch: Option<RequestKey>,
        id: &RequestId,
        revision: Revision,
        refusal: PeerMisbehaved,
    ) {
        if let Some(error) = refusal.to_error_object() {
            self.refuse(key, batch, Some(id), revision, &error);
        }
        self.misbehaved(refusal);
    }

    /// Admits a request: era, envelope or handshake, method, capability, limits, in this order.
    fn handle_request(
        &mut self,
        key: RequestKey,
        request: Request<'_>,
        modern: bool,
        (principal, claims): (Option<&Principal>, Option<&dyn RequestClaims>),
        batch: Option<RequestKey>,
    ) -> Result<(), Refusal> {
        self.check_id(&request)?;
        let mut meta = read_meta(&request, &self.config.limits)?;
        let (revision, client, log_level) = if let Some(meta) = meta.as_mut().filter(|_| modern) {
            let (revision, client) = self.agree(meta, claims)?;
            check_claims(claims, |claims| claims.check_request(&request))?;
            (revision, LazyClient::Decoded(client), meta.log_level)
        } else if request.method == Method::INITIALIZE {
            return self.initialize(key, &request);
        } else {
            let Agreed { revision, client } = self.lifecycle.admit(&request.method, &self.config)?;
            // Without a session there is nowhere to keep a level, and logging is not declared.
            (
                revision,
                LazyClient::from_handshake(client),
                Some(self.log_level).filter(|_| !self.lifecycle.is_stateless()),
            )
        };
        // Y-1: a server that did not declare logging does not log.
        let log_level = log_level.filter(|_| self.config.capabilities.logging.is_some());
        let facts = gate::method(&request.method);
        self.check_method(&request.method, facts, revision, &client)?;
        let params = request.params.map(Payload::into_owned).unwrap_or_default();
        let (input_responses, request_state) =
            if modern { self.read_retry(&params)? } else { (InputResponses::new(), None) };
        let scope = RequestScope {
            key,
            id: request.id,
            method: request.method,
            facts,
            revision,
            client,
            log_level,
            trace_context: meta.as_ref().map(|meta| meta.trace_context()).unwrap_or_default(),
            progress_token: meta.and_then(|meta| meta.progress_token),
            principal: principal.cloned(),
            input_responses,
            request_state,
            has_back_channel: self.has_back_channel && !modern,
        };
        self.dispatch(scope, params, batch)
    }

    /// Checks the id of a request.
    pub(super) fn check_id(&self, request: &Request<'_>) -> Result<(), Refusal> {
        let limits = &self.config.limits;
        if request.id.as_str().is_some_and(|id| id.len() > limits.max_id_bytes) {
            return Err(PeerMisbehaved::IdTooLong { limit: limits.max_id_bytes }.into());
        }
        if self.in_flight.has_id(&request.id) {
            return Err(PeerMisbehaved::DuplicateId(request.id.clone()).into());
        }
        Ok(())
    }

    /// What a modern request says about itself.
    // V-2, DU-18
    fn agree(&self, meta: &mut RequestMeta, claims: Option<&dyn RequestClaims>) -> Result<(Revision, Client), Refusal> {
        let missing = |name: &str| invalid_meta(&format_args!("missing field `{name}`"));
        let version = meta.protocol_version.take().ok_or_else(|| missing(key::PROTOCOL_VERSION))?;
        let capabilities = meta.client_capabilities.take().ok_or_else(|| missing(key::CLIENT_CAPABILITIES))?;
        check_claims(claims, |claims| claims.check_version(&version))?;
        let served = |revision: &Revision| revision.era() == Era::Modern && self.config.revisions.contains(revision);
        let Some(revision) = version.revision().filter(served) else {
            let mut supported = self.config.versions(Era::Modern);
            if supported.is_empty() {
                // A server without a modern revision names those that the client can shake hands for (AMB-8).
                supported = self.config.versions(Era::Legacy);
            }
            return Err(PeerMisbehaved::UnsupportedVersion { requested: version, supported }.into());
        };
        let client = Client { capabilities, info: meta.client_info.take() };
        Ok((revision, client))
    }

    /// Whether the method exists for this client.
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
        let travels = facts.is_some_and(|facts| facts.may_travel(Direction::ClientToServer, revision));
        if travels && self.config.offers(method) { Ok(()) } else { Err(unknown()) }
    }

    /// What a retry brings along.
    //
    fn read_retry(&self, params: &PayloadBuf) -> Result<(InputResponses, Option<String>), Refusal> {
        let invalid = |name: &str, fault: &dyn std::fmt::Display| {
            Refusal::from(PeerMisbehaved::InvalidParams(format!("`{name}`: {fault}").into()))
        };
        let responses = match params.get("inputResponses") {
            Some(raw) => {
                let limit = self.config.limits.max_input_responses;
                if params.member_count("inputResponses").is_some_and(|count| count > limit) {
                    return Err(invalid("inputResponses", &format_args!("more than {limit} responses")));
                }
                serde_json::from_str::<Option<_>>(raw.get()).map_err(|fault| invalid("inputResponses", &fault))?
            }
            None => None,
        };
        let state = match params.get("requestState") {
            Some(raw) => {
                let limit = self.config.limits.max_request_state_bytes;
                if raw.get().len() > limit {
                    return Err(invalid("requestState", &format_args!("more than {limit} bytes")));
                }
                serde_json::from_str::<Option<_>>(raw.get()).map_err(|fault| invalid("requestState", &fault))?
            }
            None => None,
        };
        Ok((responses.unwrap_or_default(), state))
    }

    /// Opens a request for the application, at once or when another one ends. `is_own` is one that the kernel can answer
    /// once the application agrees.
    pub(super) fn open_request(
        &mut self,
        scope: RequestScope,
        params: PayloadBuf,
        batch: Option<RequestKey>,
        is_own: bool,
    ) -> Result<(), Refusal> {
        let limits = &self.config.limits;
        let (running, most) = (self.in_flight.running() - self.waiting.len(), limits.max_in_flight);
        if running >= most {
            let held: usize = self.waiting.iter().map(waiting_bytes).sum();
            if self.waiting.len() >= limits.max_queued || held + params.as_str().len() > limits.max_queued_bytes {
                return Err(PeerMisbehaved::TooManyRequests.into());
            }
        }
        let (key, scope) = (scope.key, Arc::new(scope));
        let held = is_own.then(|| Box::new(params.clone()));
        let entry = Entry { scope: Arc::clone(&scope), last_progress: None, batch, kind: Kind::Running, held };
        let responder = self.in_flight.open(key, entry);
        let event = Event::Request { scope, params, responder };
        if running < most {
            self.emit(event)
        } else {
            push(&mut self.waiting, event)
        }
        Ok(())
    }

    fn handle_notification(&mut self, now: Time, notification: Notification<'_>) {
        let Notification { method, params, .. } = notification;
        let decoded = params.as_ref();
        match method.as_str() {
            "notifications/cancelled" => {
                let params = decoded.and_then(|params| params.decode::<CancelledNotificationParams>().ok());
                // K-9: one that is malformed or names nothing is ignored.
                let Some((Some(id), reason)) = params.map(|params| (params.request_id, params.reason)) else { return };
                if let Some(key) = self.in_flight.key_of(&id) {
                    self.cancel_request(key, reason);
                }
            }
            "notifications/initialized" => {
                if self.lifecycle.initialized() {
                    self.emit(Event::Initialized);
                } else {
                    self.misbehaved(PeerMisbehaved::StrayNotification(method));
                }
            }
            "notifications/progress" => {
                let progress = decoded.and_then(|params| params.decode::<ProgressNotificationParams>().ok());
                let Some(mut progress) = progress else { return };
                if let Some(call) = self.calls.progress(now, &progress.progress_token, &mut self.deadlines) {
                    if let Some(token) = self.calls.get_mut(call).and_then(|open| open.token.clone()) {
                        progress.progress_token = token;
                    }
                    self.emit(Event::CallProgress { call, progress: Box::new(progress) });
                }
            }
            _ => {
                let allowed = match (gate::method(&method), self.lifecycle.agreed()) {
                    (Some(facts), Some(agreed)) => facts.may_travel(Direction::ClientToServer, agreed.revision),
                    // Nobody can say what an unknown notification means, so it does not hurt either.
                    (None, _) => true,
                    (Some(_), None) => false,
                };
                if allowed {
                    let params = params.map(Payload::into_owned).unwrap_or_default();
                    self.emit(Event::Notification { method, params });
                } else {
                    self.misbehaved(PeerMisbehaved::StrayNotification(method));
                }
            }
        }
    }

    fn handle_response(&mut self, response: Response<'_>) {
        let call = response.id.as_ref().and_then(|id| self.call_of_response(id));
        let Some(call) = call else {
            return self.misbehaved(PeerMisbehaved::StrayResponse(response.id));
        };
        let outcome = response.outcome.map(Payload::into_owned).map_err(CallError::Rejected);
        self.finish_call(call, outcome);
    }

    /// The call that a response is for. An id that came back as text is accepted, which is told once.
    pub(super) fn call_of_response(&mut self, id: &RequestId) -> Option<CallId> {
        if let Some(call) = self.calls.by_id(id) {
            return Some(call);
        }
        let call = self.calls.by_text(id)?;
        if !std::mem::replace(&mut self.returns_text_ids, true) {
            self.misbehaved(PeerMisbehaved::IdAsText(id.clone()));
        }
        Some(call)
    }

    /// Takes note that the stream of a request is gone.
    ///
    /// A modern request is cancelled by that. A legacy one goes on, since its client may come back, and what was kept
    /// back for a slow reader goes on too: to wherever the driver keeps it for the client.
    // H-25, B-28
    pub fn handle_stream_closed(&mut self, request: RequestKey) {
        let era = self.in_flight.get_mut(request).map(|entry| entry.scope.era());
        if era == Some(Era::Modern) {
            self.cancel_request(request, None);
        } else {
            self.outbox.unblock(Route::Reply(request));
        }
    }

    /// Takes note that nobody will come back for the answer to a request.
    pub fn abandon(&mut self, request: RequestKey) {
        self.cancel_request(request, None);
    }

    /// Takes note that the client is gone for good: everything ends.
    pub fn handle_disconnect(&mut self) {
        // Nobody reads what is queued, so nothing has to be looked for in it while requests end.
        self.outbox.clear();
        if !self.closed {
            self.end();
        }
        self.outbox.clear();
    }

    /// Takes note of the time; early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(kind) = self.deadlines.due(now) {
            let (DeadlineKind::IdleTimeout(call) | DeadlineKind::TotalTimeout(call)) = kind;
            self.cancel_call(call, CallError::TimedOut);
        }
    }

    /// Keeps messages of a route back, because its reader does not read.
    ///
    /// All routes of one request share a stream, so that its answer does not overtake what was said before.
    pub fn block(&mut self, route: Route) {
        let is_open =
            route.stream().is_none_or(|key| self.in_flight.get_mut(key).is_some() || self.batches.contains_key(&key));
        // A stream that is over has nothing to keep back.
        if is_open || self.outbox.holds(route) {
            let count = self.outbox.block(&self.config.limits, route);
            self.dropped(route, count);
        }
    }

    /// Lets messages of a route go on, with all that share its stream.
    pub fn unblock(&mut self, route: Route) {
        self.outbox.unblock(route);
    }

    /// Ends a request that the client does not want any more: nothing more is sent for it.
    // H-27, IO-10
    pub(super) fn cancel_request(&mut self, key: RequestKey, reason: Option<String>) {
        let Some(entry) = self.in_flight.close(key) else { return };
        if entry.batch.is_none() {
            // The requests of a batch share a stream, on which the others still wait for something.
            self.outbox.forget(key);
        }
        let waiting = self.waiting.len();
        self.waiting.retain(|event| !matches!(event, Event::Request { responder, .. } if responder.key() == key));
        if entry.kind == Kind::Listening {
            self.remove_listen_stream(key);
            self.emit(Event::ListeningEnded(key));
        } else if waiting == self.waiting.len() {
            self.emit(Event::Cancelled { request: key, reason });
        }
        // Nobody needs the answer to a question that came up during the request.
        for call in self.calls.related_to(key) {
            self.cancel_call(call, CallError::Cancelled);
        }
        if let Some(batch) = entry.batch {
            self.skip_in_batch(batch);
        }
        self.admit_waiting();
    }

    /// The revision by which something is refused that has none of its own.
    fn revision_for_errors(&self) -> Revision {
        self.negotiated().unwrap_or(Revision::LATEST)
    }
}

/// What a request that waits keeps.
fn waiting_bytes(event: &Event) -> usize {
    if let Event::Request { params, .. } = event { params.as_str().len() } else { 0 }
}

/// Reads the metadata of a request, within its limit.
// Inlined, because it returns a large value, which would be copied once more.
#[inline(always)]
pub(super) fn read_meta(request: &Request<'_>, limits: &Limits) -> Result<Option<RequestMeta>, Refusal> {
    let Some(params) = &request.params else { return Ok(None) };
    if params.get("_meta").is_some_and(|meta| meta.get().len() > limits.max_meta_bytes) {
        return Err(invalid_meta(&format_args!("more than {} bytes", limits.max_meta_bytes)));
    }
    params.decode_meta().map_err(|fault| invalid_meta(&fault))
}

/// Returns whether a request is modern: the version key of its `_meta` makes it so, whatever the value.
// DU-13, X-20
#[must_use]
pub fn is_modern(request: &Request<'_>) -> bool {
    request.params.as_ref().is_some_and(|params| params.meta(key::PROTOCOL_VERSION).is_some())
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

fn invalid_meta(fault: &dyn std::fmt::Display) -> Refusal {
    PeerMisbehaved::InvalidParams(format!("`_meta`: {fault}").into()).into()
}

/// Refuses what needs an extension that the client did not declare.
// E-14, EX-11
pub(super) fn check_extension(capabilities: &ClientCapabilities, extension: &str) -> Result<(), Refusal> {
    if capabilities.extensions.as_ref().is_some_and(|declared| declared.contains(extension)) {
        return Ok(());
    }
    let mut required = ClientCapabilities::default();
    required.extensions.get_or_insert_default().insert(extension, RawObject::empty());
    Err(PeerMisbehaved::MissingCapability { required: Box::new(required) }.into())
}

/// Whether an invalid message is answered: not if it has no id and all else that makes it a notification or a response.
fn is_answered(invalid: &InvalidMessage) -> bool {
    let notifies = invalid.id().is_none() && invalid.code() == ErrorCode::INVALID_PARAMS;
    !notifies && *invalid.fault() != Fault::MissingMember("id")
}
