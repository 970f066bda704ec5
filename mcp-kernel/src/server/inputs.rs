//! The inputs of a server's connection.

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
use super::transmit::{Failure, Route};
use crate::deadlines::DeadlineKind;
use crate::errors::{CallError, PeerMisbehaved};
use crate::{CallId, RequestKey, Time};

impl Connection {
    /// Processes a message or a batch: a line, or the body of an HTTP request.
    ///
    /// Returns the key of the [`Route::Reply`] on which its response is sent: `Some` for requests, batches and invalid
    /// messages, though not each batch or invalid message gets a response.
    pub fn handle_bytes(&mut self, now: Time, bytes: &[u8], principal: Option<&Principal>) -> Option<RequestKey> {
        let config = Arc::clone(&self.config);
        match parse(bytes, &config.limits.message) {
            Ok(incoming) => self.handle_incoming(now, incoming, principal, None),
            Err(_) if !self.may_feed() => None,
            Err(invalid) => {
                let key = self.in_flight.next_key();
                self.handle_invalid(key, None, invalid);
                Some(key)
            }
        }
    }

    /// Processes a message that is longer than the transport accepts, of which only a summary is known.
    ///
    /// A request gets an error response. A response ends its call, or all calls if its id is not known. A notification
    /// is ignored. Anything else gets an error response without an id; a batch in 2025-03-26 also ends all calls,
    /// because it may contain their responses.
    pub fn handle_oversized(&mut self, limit: usize, summary: &EnvelopeSummary) {
        if !self.may_feed() {
            return;
        }
        let what = PeerMisbehaved::TooLong { limit };
        let has_batches = self.negotiated() == Some(Revision::V2025_03_26);
        let report = |text_id| self.events.push(Event::PeerMisbehaved(text_id));
        let calls = self.rare.get_mut().map(|rare| rare.calls.of_oversized(summary, has_batches, report));
        for call in calls.into_iter().flatten() {
            self.finish_call(call, Err(CallError::TooLong { limit }));
        }
        match (summary.kind, &summary.id) {
            (EnvelopeKind::Response, _) | (EnvelopeKind::Call, None) => self.misbehaved(what),
            (EnvelopeKind::Batch | EnvelopeKind::Call | EnvelopeKind::Unknown | EnvelopeKind::NotAnObject, id) => {
                let (key, revision) = (self.in_flight.next_key(), self.revision_for_errors());
                self.refuse_request(key, None, id.as_ref(), revision, what);
            }
        }
    }

    /// Returns whether input is accepted. Closes the connection at the second input that the driver feeds while the
    /// outbox is full, because the outbox would grow without limit. The first may have been on its way when the outbox
    /// became full.
    fn may_feed(&mut self) -> bool {
        if !self.closed && self.outbox.is_saturated(&self.config.limits) && std::mem::replace(&mut self.overfed, true) {
            self.misbehaved(PeerMisbehaved::NotReading);
            self.handle_disconnect();
        }
        !self.closed
    }

    /// Sends an error response to an invalid message, unless it can only be a notification or a response.
    fn handle_invalid(&mut self, key: RequestKey, batch: Option<RequestKey>, invalid: InvalidMessage) {
        if let Some(id) = invalid.response_id() {
            if let Some(call) = self.call_of_response(id) {
                self.finish_call(call, Err(CallError::InvalidResponse));
            }
        } else if needs_response(&invalid) {
            if let Some(batch) = batch.and_then(|batch| self.batch_mut(batch)) {
                batch.expected += 1;
            }
            let revision = self.revision_for_errors();
            self.queue_error(key, batch, invalid.request_id(), revision, &invalid.to_error_object(), Failure::Refused);
        }
        self.misbehaved(PeerMisbehaved::InvalidMessage(Box::new(invalid)));
    }

    /// Processes a message or a batch that is parsed already, as [`handle_bytes`](Self::handle_bytes) does. A modern request
    /// has to match the claims of its transport, if there are any.
    pub fn handle_incoming(
        &mut self,
        now: Time,
        incoming: Incoming<'_>,
        principal: Option<&Principal>,
        claims: Option<&dyn RequestClaims>,
    ) -> Option<RequestKey> {
        if !self.may_feed() {
            return None;
        }
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
        // DU-20, B-7: neither modern requests nor `initialize` may be part of a batch.
        let foreign = |message: &Result<Message<'_>, _>| match message {
            Ok(Message::Request(request)) => is_modern(request) || request.method == Method::INITIALIZE,
            Ok(Message::Notification(_) | Message::Response(_)) | Err(_) => false,
        };
        let key = self.in_flight.next_key();
        if !allowed || messages.iter().any(foreign) {
            self.refuse_request(key, None, None, self.revision_for_errors(), PeerMisbehaved::BatchNotAllowed);
            return key;
        }
        // One more response is expected than there are requests, so that the batch is not sent before all of it is
        // processed.
        self.rare.make_mut().batches.insert(key, Batch { expected: 1, responses: Vec::new() });
        for message in messages {
            match message {
                Ok(message) => {
                    if let (Message::Request(_), Some(batch)) = (&message, self.batch_mut(key)) {
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
                let observed = self.observe(&request.method, request.params.as_ref());
                let refusal = self.handle_request(key, request, modern, origin, batch).err();
                if let Some(observed) = observed {
                    self.report_request(observed, (key, &id), modern, refusal.as_ref());
                }
                if let Some(refusal) = refusal {
                    self.refuse_request(key, batch, Some(&id), revision, *refusal);
                }
                return Some(key);
            }
            Message::Notification(notification) => {
                let observed = self.observe(&notification.method, notification.params.as_ref());
                self.handle_notification(now, notification);
                self.report_notification(observed);
            }
            Message::Response(response) => self.handle_response(response),
        }
        None
    }

    pub(super) fn refuse_request(
        &mut self,
        key: RequestKey,
        batch: Option<RequestKey>,
        id: Option<&RequestId>,
        revision: Revision,
        refusal: PeerMisbehaved,
    ) {
        if let Some(error) = refusal.to_error_object() {
            self.queue_error(key, batch, id, revision, &error, Failure::Refused);
        }
        self.misbehaved(refusal);
    }

    fn handle_notification(&mut self, now: Time, notification: Notification<'_>) {
        let Notification { method, params, .. } = notification;
        let decoded = params.as_ref();
        match method.as_str() {
            "notifications/cancelled" => {
                let params = decoded.and_then(|params| params.decode::<CancelledNotificationParams>().ok());
                // K-9: it is ignored if it is malformed or the request is not in flight.
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
                let Some(rare) = self.rare.get_mut() else { return };
                if let Some(call) = rare.calls.progress(now, &mut progress, &mut rare.deadlines) {
                    self.emit(Event::CallProgress { call, progress: Box::new(progress) });
                }
            }
            _ => {
                let allowed = match (gate::method(&method), self.lifecycle.agreed()) {
                    (Some(facts), Some(agreed)) => facts.may_be_sent(Direction::ClientToServer, agreed.revision),
                    // An unknown notification may belong to an extension.
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
        self.rare.get_mut()?.calls.of_response(id, |text_id| self.events.push(Event::PeerMisbehaved(text_id)))
    }

    /// Processes the end of a request's stream.
    ///
    /// A modern request is cancelled. A legacy one goes on, since its client may resume the stream, and messages that
    /// were blocked are released, so that the driver can store them.
    // H-25, B-28
    pub fn handle_stream_closed(&mut self, request: RequestKey) {
        let era = self.in_flight.get_mut(request).map(|entry| entry.scope.era());
        if era == Some(Era::Modern) {
            self.cancel_request(request, None);
        } else {
            self.outbox.unblock(Route::Reply(request));
        }
    }

    /// Cancels a request whose client has disconnected and will not resume its stream.
    pub fn abandon(&mut self, request: RequestKey) {
        self.cancel_request(request, None);
    }

    /// Processes the end of the connection: requests and calls end, and queued messages are discarded.
    pub fn handle_disconnect(&mut self) {
        // First, so that requests which end do not have to search it.
        self.outbox.clear();
        if !self.closed {
            self.end();
        }
        self.outbox.clear();
    }

    /// Ends the calls whose timeout has expired.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(kind) = self.rare.get_mut().and_then(|rare| rare.deadlines.due(now)) {
            let (DeadlineKind::IdleTimeout(call) | DeadlineKind::TotalTimeout(call)) = kind;
            self.cancel_call(call, CallError::TimedOut);
        }
    }

    /// Keeps the messages of a route back because its client does not read them.
    ///
    /// The routes of one request share a stream, so that the response does not overtake earlier messages.
    pub fn block(&mut self, route: Route) {
        let is_open = route
            .stream()
            .is_none_or(|key| self.in_flight.get_mut(key).is_some() || self.rare.batches.contains_key(&key));
        // A stream that has ended has no messages to keep back.
        if is_open || self.outbox.holds(route) {
            let count = self.outbox.block(&self.config.limits, route);
            self.dropped(route, count);
        }
    }

    /// Releases the messages of a route, and of the routes that share its stream.
    pub fn unblock(&mut self, route: Route) {
        self.outbox.unblock(route);
    }

    /// Ends a request that the client cancelled. Nothing more is sent for it.
    // H-27, IO-10
    pub(super) fn cancel_request(&mut self, key: RequestKey, reason: Option<String>) {
        let Some(entry) = self.in_flight.close(key) else { return };
        if entry.batch.is_none() {
            // Other requests of the batch may have messages on the shared stream.
            self.outbox.forget(key);
        }
        let queued = self.rare.get_mut().and_then(|rare| {
            let is_it = |event: &Event| matches!(event, Event::Request { responder, .. } if responder.key() == key);
            let index = rare.queued.iter().position(is_it)?;
            rare.queued.remove(index)
        });
        if entry.kind == Kind::Listening {
            self.remove_listen_stream(key);
            self.emit(Event::ListeningEnded(key));
        } else if let Some(queued) = queued {
            self.report_unqueued(queued);
            self.report_queue();
        } else {
            self.emit(Event::Cancelled { request: key, reason });
        }
        for call in self.rare.calls.related_to(key) {
            self.cancel_call(call, CallError::Cancelled);
        }
        if let Some(batch) = entry.batch {
            self.skip_in_batch(batch);
        }
        self.start_queued();
    }

    /// The revision of errors that belong to no request.
    fn revision_for_errors(&self) -> Revision {
        self.negotiated().unwrap_or(Revision::LATEST)
    }
}

/// Returns whether an invalid message gets an error response: not if it has no id and looks like a notification or a
/// response.
fn needs_response(invalid: &InvalidMessage) -> bool {
    let notifies = invalid.request_id().is_none() && invalid.code() == ErrorCode::INVALID_PARAMS;
    !notifies && *invalid.fault() != Fault::MissingMember("id")
}
