//! What comes from the server, and what happens to it.

use std::sync::Arc;

use mcp_types::jsonrpc::{
    EnvelopeKind, EnvelopeSummary, Incoming, InvalidMessage, Message, Notification, Payload, PayloadBuf, Response,
    parse,
};
use mcp_types::meta::key;
use mcp_types::{
    CancelledNotificationParams, Era, Method, ProgressNotificationParams, RequestId, ResourceUpdatedNotificationParams,
    ResultType, Revision, SubscriptionsAcknowledgedNotificationParams, tasks,
};

use super::config::CancelStyle;
use super::connection::{Connection, Stage};
use super::detect::{ConnectError, ConnectStep, DetectedRevision, is_evidence, legacy};
use super::error_body::excerpt;
use super::event::{Event, Outcome, Transmit};
use super::outbox::Outbox;
use crate::deadlines::DeadlineKind;
use crate::errors::{CallError, PeerMisbehaved};
use crate::{CallId, Change, Time};

impl Connection {
    /// Takes what one line, one body or one event of a stream holds.
    pub fn handle_bytes(&mut self, now: Time, bytes: &[u8]) {
        self.handle_text(now, None, bytes);
    }

    /// Takes what came on the stream of a call, where each call has one of its own: an error without an id is meant for
    /// that call.
    pub fn handle_reply(&mut self, now: Time, call: CallId, bytes: &[u8]) {
        self.handle_text(now, Some(call), bytes);
    }

    fn handle_text(&mut self, now: Time, stream: Option<CallId>, bytes: &[u8]) {
        if !self.may_feed() {
            return;
        }
        let config = Arc::clone(&self.config);
        match parse(bytes, &config.limits.message) {
            Ok(Incoming::Single(message)) => self.handle_message(now, stream, message),
            Ok(Incoming::Batch(messages)) if self.revision() == Ok(Revision::V2025_03_26) => {
                for message in messages {
                    match message {
                        Ok(message) => self.handle_message(now, stream, message),
                        Err(invalid) => self.handle_invalid(now, invalid),
                    }
                }
            }
            Ok(Incoming::Batch(_)) => self.misbehaved(PeerMisbehaved::BatchNotAllowed),
            Err(invalid) => self.handle_invalid(now, invalid),
        }
    }

    /// Whether anything more is taken in: a server that does not read the answers that it asks for is given up.
    fn may_feed(&mut self) -> bool {
        if self.stage != Stage::Over && !self.wants_input() {
            self.misbehaved(PeerMisbehaved::NotReading);
            self.outbox = Outbox::default();
            self.close();
        }
        self.stage != Stage::Over
    }

    /// Takes note of a text that was longer than the transport reads, with what it could tell of it.
    ///
    /// A response ends the call that it was for, or every call if that is not known, and so does a batch where the
    /// revision has them; a request is refused. What is no message, or a notification, is ignored.
    pub fn handle_oversized(&mut self, now: Time, limit: usize, summary: &EnvelopeSummary) {
        if !self.may_feed() {
            return;
        }
        let what = PeerMisbehaved::TooLong { limit };
        match (summary.kind, &summary.id) {
            (EnvelopeKind::Batch, _) if self.revision() == Ok(Revision::V2025_03_26) => {
                for call in self.calls.all() {
                    self.finish(now, call, Err(CallError::TooLong { limit }));
                }
            }
            (EnvelopeKind::Response, id) => {
                let calls = match id {
                    Some(id) => self.call_of_response(id).into_iter().collect(),
                    None => self.calls.all(),
                };
                for call in calls {
                    self.finish(now, call, Err(CallError::TooLong { limit }));
                }
            }
            (EnvelopeKind::Call, Some(id)) => {
                // DU-45: a modern server asks nothing, and a modern client answers nothing (M-16).
                if let Some(revision) = self.revision().ok().filter(|revision| revision.era() == Era::Legacy) {
                    self.refuse(id, revision, &what);
                }
            }
            (EnvelopeKind::Batch | EnvelopeKind::Call | EnvelopeKind::Unknown | EnvelopeKind::NotAnObject, _) => {}
        }
        self.misbehaved(what);
    }

    /// Takes what is not a message; a response that is none ends the call that it was for.
    fn handle_invalid(&mut self, now: Time, invalid: InvalidMessage) {
        if let Some(call) = invalid.response_id().and_then(|id| self.call_of_response(id)) {
            self.finish(now, call, Err(CallError::InvalidResponse));
        }
        self.misbehaved(PeerMisbehaved::InvalidMessage(Box::new(invalid)));
    }

    /// Takes an HTTP status that came instead of an answer, with its body.
    ///
    /// Once the connection is ready, a JSON-RPC error in the body is the answer. Before that it is only where the status
    /// says something about the era: 401, 403 and those of 500 and above do not, and fail with their status. Any other
    /// status of 400 and above, without such an error in its body, ends the probe in favour of legacy.
    // DU-27, DU-36, DU-37
    pub fn handle_status(&mut self, now: Time, call: CallId, status: u16, body: &[u8]) {
        // While the two find each other, what is no evidence stays so whatever its body says.
        let is_connecting = !matches!(self.stage, Stage::Ready(_));
        let is_evidence = is_evidence(status);
        if (is_evidence || !is_connecting)
            && let Ok(Message::Response(Response { outcome: Err(error), .. })) =
                Message::parse(body, &self.config.limits.message)
        {
            return self.finish(now, call, Err(CallError::Rejected(error)));
        }
        match self.stage {
            Stage::Probing { call: probe, .. } if probe == call => {
                let _ = self.calls.end(call, &mut self.deadlines);
                if is_evidence {
                    let next = legacy(&self.config);
                    self.proceed(now, next);
                } else {
                    let reason = excerpt(body, &self.config.limits.message);
                    self.fail(ConnectError::Status { status, reason });
                }
            }
            Stage::New | Stage::Probing { .. } | Stage::Handshaking { .. } | Stage::Ready(_) | Stage::Over => {
                let reason = excerpt(body, &self.config.limits.message);
                self.finish(now, call, Err(CallError::Status { status, reason }));
            }
        }
    }

    /// Takes note that the stream of a call ended, or never came about: without an answer the call is over.
    // L-12, AMB-1
    pub fn handle_stream_closed(&mut self, now: Time, call: CallId) {
        self.finish(now, call, Err(CallError::Disconnected));
    }

    /// Takes note that the server does not know the session any more, in answer to `call` if that is given.
    ///
    /// The call ends with [`CallError::SessionLost`]: the server has not seen it, so it can be made again. If the session
    /// is the latest one, the connection shakes hands for a new one; the other calls stay open, because what became of
    /// them is not known yet. A server that loses the new session, too, before it answered anything is given up.
    pub fn handle_session_lost(&mut self, now: Time, call: Option<CallId>, is_latest: bool) {
        if let Some(call) = call {
            self.finish(now, call, Err(CallError::SessionLost));
        }
        let Stage::Ready(revision) = self.stage else { return };
        if !is_latest || revision.era() == Era::Modern {
            return;
        }
        if std::mem::replace(&mut self.is_renewed, true) {
            return self.fail(ConnectError::SessionLost);
        }
        self.forget_requests(Some(now));
        self.proceed(now, ConnectStep::Handshake(revision));
    }

    /// Takes note that the server is gone, and may have read what was sent to it.
    pub fn handle_disconnect(&mut self) {
        self.disconnected(true);
    }

    /// Takes note that the server is gone without having read anything: what was sent to it is not why.
    pub fn handle_disconnect_unread(&mut self) {
        self.disconnected(false);
    }

    fn disconnected(&mut self, may_have_read: bool) {
        // There is nobody to send anything to.
        self.outbox = Outbox::default();
        let is_probed = matches!(self.stage, Stage::Probing { .. }) || self.late_probe.is_some();
        match self.stage {
            Stage::Over => {}
            // DU-34: known servers die of the probe.
            Stage::Probing { .. } | Stage::Handshaking { .. } if is_probed && may_have_read => {
                if let ConnectStep::Handshake(revision) = legacy(&self.config)
                    && self.config.silence_means_legacy
                {
                    self.events.push_back(Event::RestartNeeded { detected: DetectedRevision::new(revision) });
                    self.over();
                } else {
                    self.fail(ConnectError::Disconnected);
                }
            }
            Stage::New | Stage::Probing { .. } | Stage::Handshaking { .. } => self.fail(ConnectError::Disconnected),
            Stage::Ready(_) => self.over(),
        }
    }

    /// Takes note of the time; early calls do nothing.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(kind) = self.deadlines.due(now) {
            let (DeadlineKind::IdleTimeout(call) | DeadlineKind::TotalTimeout(call)) = kind;
            if let DeadlineKind::IdleTimeout(_) = kind
                && !self.calls.is_idle(now, call, &mut self.deadlines)
            {
                continue;
            }
            if !self.is_internal(call) {
                self.give_up(call, CallError::TimedOut);
            } else if !self.handshake_before_probe(now) {
                if self.config.cancel_style == CancelStyle::CloseStream {
                    self.send(Transmit::Abort { call });
                }
                self.finish(now, call, Err(CallError::TimedOut));
            }
        }
    }

    fn handle_message(&mut self, now: Time, stream: Option<CallId>, message: Message<'_>) {
        match message {
            Message::Response(response) => {
                let call = match (&response.id, &response.outcome) {
                    (Some(id), _) => self.call_of_response(id),
                    (None, Err(_)) => stream,
                    (None, Ok(_)) => None,
                };
                match call {
                    Some(call) => {
                        // Nobody waits for what comes on its own stream any more.
                        if stream.is_some_and(|stream| stream != call) {
                            self.send(Transmit::Abort { call });
                        }
                        let outcome = response.outcome.map(Payload::into_owned).map_err(CallError::Rejected);
                        self.finish(now, call, outcome);
                    }
                    // K-7, K-8: a late answer is no offence, and changes nothing.
                    None => self.misbehaved(PeerMisbehaved::StrayResponse(response.id)),
                }
            }
            Message::Notification(notification) => self.handle_notification(now, notification),
            Message::Request(request) => self.handle_request(stream, request),
        }
    }

    /// Returns the call that a response is for.
    fn call_of_response(&mut self, id: &RequestId) -> Option<CallId> {
        self.calls.of_response(id, |text_id| self.events.push_back(Event::PeerMisbehaved(text_id)))
    }

    /// Ends a call with what the server said, or did not say.
    fn finish(&mut self, now: Time, call: CallId, outcome: Result<PayloadBuf, CallError>) {
        if self.calls.end(call, &mut self.deadlines).is_none() {
            return;
        }
        if let Some((_, probed)) = self.late_probe.take_if(|(probe, _)| *probe == call) {
            let outcome = outcome.and_then(|result| result.decode().map_err(|_| CallError::InvalidResponse));
            return self.handle_late_probe(now, probed, outcome);
        }
        match self.stage {
            Stage::Probing { call: probe, probed, is_second } if probe == call => {
                let outcome = outcome.and_then(|result| result.decode().map_err(|_| CallError::InvalidResponse));
                self.handle_probe(now, probed, is_second, outcome);
            }
            Stage::Handshaking { call: handshake } if handshake == call => {
                self.handle_initialize_result(
                    now,
                    match outcome {
                        Ok(result) => result.decode().map_err(|fault| ConnectError::InvalidResponse(fault.to_string())),
                        Err(CallError::Rejected(error)) => Err(ConnectError::of_refusal(&self.config, error)),
                        Err(CallError::TimedOut) => Err(ConnectError::TimedOut),
                        Err(CallError::InvalidResponse) => {
                            Err(ConnectError::InvalidResponse("not a response".to_owned()))
                        }
                        Err(too_long @ CallError::TooLong { .. }) => {
                            Err(ConnectError::InvalidResponse(too_long.to_string()))
                        }
                        Err(CallError::Status { status, reason }) => Err(ConnectError::Status { status, reason }),
                        Err(CallError::Cancelled | CallError::Disconnected | CallError::SessionLost) => {
                            Err(ConnectError::Disconnected)
                        }
                    },
                );
            }
            Stage::New | Stage::Probing { .. } | Stage::Handshaking { .. } | Stage::Ready(_) | Stage::Over => {
                self.listening.remove(&call);
                if outcome.is_ok() {
                    (self.is_unconfirmed, self.is_renewed) = (false, false);
                }
                let outcome = outcome.and_then(|result| self.read_result(result));
                self.events.push_back(Event::CallFinished { call, outcome });
            }
        }
    }

    /// Checks what kind of result it is.
    // M-8..M-10
    fn read_result(&self, result: PayloadBuf) -> Result<Outcome, CallError> {
        let mut result_type = ResultType::COMPLETE;
        if self.is_modern()
            && let Some(said) = result.get("resultType")
        {
            result_type = serde_json::from_str(said.get()).map_err(|_| CallError::InvalidResponse)?;
            let declared = self.config.capabilities.extensions.as_ref();
            let with_tasks = declared.is_some_and(|extensions| extensions.contains(tasks::EXTENSION));
            if !result_type.is_known() || (result_type == ResultType::TASK && !with_tasks) {
                return Err(CallError::InvalidResponse);
            }
        }
        Ok(Outcome { result_type, result })
    }

    fn handle_notification(&mut self, now: Time, notification: Notification<'_>) {
        let Notification { method, params, .. } = notification;
        let change = match method.as_str() {
            "notifications/tools/list_changed" => Some(Change::Tools),
            "notifications/prompts/list_changed" => Some(Change::Prompts),
            "notifications/resources/list_changed" => Some(Change::Resources),
            "notifications/resources/updated" => {
                let updated =
                    params.as_ref().and_then(|params| params.decode::<ResourceUpdatedNotificationParams>().ok());
                updated.map(|updated| Change::Resource(updated.uri))
            }
            _ => None,
        };
        if let Some(change) = change {
            return self.changed(method, change, params.as_ref());
        }
        match method.as_str() {
            "notifications/progress" => {
                let progress = params.and_then(|params| params.decode::<ProgressNotificationParams>().ok());
                let Some(mut progress) = progress else { return };
                if let Some(call) = self.calls.progress(now, &mut progress, &mut self.deadlines)
                    && !self.is_internal(call)
                {
                    self.events.push_back(Event::CallProgress { call, progress });
                }
            }
            "notifications/message" => {
                if let Some(log) = params.and_then(|params| params.decode().ok()) {
                    self.events.push_back(Event::Log(log));
                }
            }
            "notifications/subscriptions/acknowledged" => {
                let call = self.subscription(params.as_ref());
                let ack = params.and_then(|params| params.decode::<SubscriptionsAcknowledgedNotificationParams>().ok());
                match (call, ack) {
                    (Some(call), Some(ack)) => {
                        self.listening.insert(call, true);
                        self.events.push_back(Event::Listening { call, filter: ack.notifications });
                    }
                    _ => self.misbehaved(PeerMisbehaved::StrayNotification(method)),
                }
            }
            "notifications/cancelled" => {
                let cancelled = params.and_then(|params| params.decode::<CancelledNotificationParams>().ok());
                if let Some(id) = cancelled.and_then(|cancelled| cancelled.request_id) {
                    self.cancelled(now, id);
                }
            }
            _ => {
                let params = params.map(Payload::into_owned).unwrap_or_default();
                self.events.push_back(Event::Notification { method, params });
            }
        }
    }

    /// The server gives something up: a request of its own (legacy), or a subscription.
    // K-4, AMB-1
    fn cancelled(&mut self, now: Time, id: RequestId) {
        if self.close_request(now, &id) {
            self.events.push_back(Event::RequestCancelled { id });
        } else if let Some(call) = self.calls.by_id(&id).filter(|call| self.listening.contains_key(call)) {
            self.finish(now, call, Err(CallError::Cancelled));
        }
    }

    /// Tells of a change: unasked in the legacy era, on a subscription in the modern one.
    // L-1, L-3, B-44
    fn changed(&mut self, method: Method, change: Change, params: Option<&Payload<'_>>) {
        let modern = self.revision().is_ok_and(|revision| revision.era() == Era::Modern);
        let call = self.subscription(params).filter(|call| self.listening.get(call) == Some(&true));
        if modern && call.is_none() {
            return self.misbehaved(PeerMisbehaved::StrayNotification(method));
        }
        self.events.push_back(Event::Changed { call, change });
    }

    /// The subscription that a notification belongs to; the id is compared with its kind.
    // AMB-12
    fn subscription(&self, params: Option<&Payload<'_>>) -> Option<CallId> {
        let id: RequestId = serde_json::from_str(params?.meta(key::SUBSCRIPTION_ID)?.get()).ok()?;
        self.calls.by_id(&id).filter(|call| self.listening.contains_key(call))
    }

    pub(super) fn misbehaved(&mut self, what: PeerMisbehaved) {
        self.events.push_back(Event::PeerMisbehaved(what));
    }
}
