//! What comes from the client, and what happens to it.

use std::sync::Arc;

use mcp_types::gate::{self, Direction};
use mcp_types::jsonrpc::{
    EnvelopeKind, EnvelopeSummary, Fault, Incoming, InvalidMessage, Message, Notification, Payload, Response, parse,
};
use mcp_types::{CancelledNotificationParams, Era, ErrorCode, Method, ProgressNotificationParams, RequestId, Revision};

use super::admission::is_modern;
use super::claims::RequestClaims;
use super::connection::{Batch, Connection};
use super::event::Event;
use super::in_flight::Kind;
use super::scope::Principal;
use super::transmit::Route;
use crate::deadlines::DeadlineKind;
use crate::errors::{CallError, PeerMisbehaved};
use crate::{CallId, RequestKey, Time};

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
                if let Some(call) = self.calls.progress(now, &mut progress, &mut self.deadlines) {
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

    /// Returns the call that a response is for.
    fn call_of_response(&mut self, id: &RequestId) -> Option<CallId> {
        self.calls.of_response(id, |text_id| self.events.push(Event::PeerMisbehaved(text_id)))
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

/// Whether an invalid message is answered: not if it has no id and all else that makes it a notification or a response.
fn is_answered(invalid: &InvalidMessage) -> bool {
    let notifies = invalid.id().is_none() && invalid.code() == ErrorCode::INVALID_PARAMS;
    !notifies && *invalid.fault() != Fault::MissingMember("id")
}
