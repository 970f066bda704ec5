//! The inputs of a client's connection.

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
use super::detect::{ConnectError, DetectedRevision, Step, is_evidence, legacy};
use super::error_body::excerpt;
use super::event::{CallResult, Event, Transmit};
use super::outbox::Outbox;
use super::server_requests::Received;
use crate::deadlines::DeadlineKind;
use crate::errors::{CallError, PeerMisbehaved};
use crate::{CallId, Change, Time};

impl Connection {
    /// Processes a message or a batch: a line, the body of an HTTP response, or an event of a stream.
    pub fn handle_bytes(&mut self, now: Time, bytes: &[u8]) {
        self.handle_text(now, None, bytes);
    }

    /// Processes a message from the stream of a call, where each call has its own. An error without an id ends that
    /// call. Returns whether the call is still in flight.
    pub fn handle_reply(&mut self, now: Time, call: CallId, bytes: &[u8]) -> bool {
        self.handle_text(now, Some(call), bytes);
        self.calls.is_open(call)
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

    /// Returns whether input is accepted. Closes the connection if the server does not read the responses to its
    /// requests.
    fn may_feed(&mut self) -> bool {
        if self.stage != Stage::Over && !self.wants_input() {
            self.misbehaved(PeerMisbehaved::NotReading);
            self.outbox = Outbox::default();
            self.close();
        }
        self.stage != Stage::Over
    }

    /// Processes a message that is longer than the transport accepts, of which only a summary is known.
    ///
    /// A response ends its call, or all calls if its id is not known, and so does a batch where the revision has them.
    /// A request is refused. Anything else is ignored.
    pub fn handle_oversized(&mut self, now: Time, limit: usize, summary: &EnvelopeSummary) {
        if !self.may_feed() {
            return;
        }
        let what = PeerMisbehaved::TooLong { limit };
        let has_batches = self.revision() == Ok(Revision::V2025_03_26);
        let report = |text_id| self.events.push_back(Event::PeerMisbehaved(text_id));
        for call in self.calls.of_oversized(summary, has_batches, report) {
            self.finish(now, call, Err(CallError::TooLong { limit }));
        }
        // DU-45, M-16: modern servers have no requests to clients.
        let legacy = self.revision().ok().filter(|revision| revision.era() == Era::Legacy);
        if let (EnvelopeKind::Call, Some(id), Some(revision)) = (summary.kind, &summary.id, legacy) {
            self.refuse(id, revision, &what);
        }
        self.misbehaved(what);
    }

    /// Processes an invalid message, which ends the call if it is a response.
    fn handle_invalid(&mut self, now: Time, invalid: InvalidMessage) {
        if let Some(call) = invalid.response_id().and_then(|id| self.call_of_response(id)) {
            self.finish(now, call, Err(CallError::InvalidResponse));
        }
        self.misbehaved(PeerMisbehaved::InvalidMessage(Box::new(invalid)));
    }

    /// Processes an HTTP status that arrived for a call, with the response body.
    ///
    /// Once the connection is ready, a JSON-RPC error in the body is the outcome of the call. While connecting, this
    /// applies only to a status that indicates the era; 401, 403, and 500 or above do not, and connecting
    /// fails. Another status of 400 or above, without such an error, means that the server is legacy.
    ///
    /// 401 and 403 are about credentials, whatever the body is: the outcome is [`CallError::Status`].
    // DU-27, DU-36, DU-37
    pub fn handle_status(&mut self, now: Time, call: CallId, status: u16, body: &[u8]) {
        // While connecting, a status that is no evidence stays so whatever the body.
        let is_connecting = !matches!(self.stage, Stage::Ready(_));
        let is_evidence = is_evidence(status);
        let is_about_credentials = matches!(status, 401 | 403);
        if (is_evidence || !(is_connecting || is_about_credentials))
            && let Ok(Message::Response(Response { outcome: Err(error), .. })) =
                Message::parse(body, &self.config.limits.message)
        {
            return self.finish(now, call, Err(CallError::Rejected(error)));
        }
        match self.stage {
            Stage::Probing { call: probe, .. } if probe == call => {
                let _ = self.calls.end(call, &mut self.deadlines);
                let reason = excerpt(body, &self.config.limits.message);
                self.report_own_call(call, Some(CallError::Status { status, reason: reason.clone() }));
                if is_evidence {
                    let next = legacy(&self.config);
                    self.proceed(now, next);
                } else {
                    self.fail(ConnectError::Status { status, reason });
                }
            }
            Stage::New | Stage::Probing { .. } | Stage::Handshaking { .. } | Stage::Ready(_) | Stage::Over => {
                let reason = excerpt(body, &self.config.limits.message);
                self.finish(now, call, Err(CallError::Status { status, reason }));
            }
        }
    }

    /// Processes the end of a call's stream, or the failure to open it. The call ends unless it had a response.
    // L-12, AMB-1
    pub fn handle_stream_closed(&mut self, now: Time, call: CallId) {
        self.finish(now, call, Err(CallError::Disconnected));
    }

    /// Processes the loss of the session, which the response to `call` reported if given.
    ///
    /// The call ends with [`CallError::SessionLost`]. The server has not processed it, so that it can be repeated. If
    /// the lost session is the latest, the connection starts a new one; other calls stay in flight, because it is not
    /// known whether they were processed. Connecting fails if the server loses the new session before it responded to
    /// any request in it.
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
        self.proceed(now, Step::Handshake(revision));
    }

    /// Processes the end of the connection.
    ///
    /// If the probe was in flight, a legacy server may have exited because of it. The connection then emits
    /// [`Event::RestartNeeded`], if [`ClientConfig::silence_means_legacy`](super::ClientConfig::silence_means_legacy)
    /// is set.
    pub fn handle_disconnect(&mut self) {
        self.disconnected(true);
    }

    /// Processes the end of the connection to a server that has read no message, so that the probe is not the cause.
    pub fn handle_disconnect_unread(&mut self) {
        self.disconnected(false);
    }

    fn disconnected(&mut self, may_have_read: bool) {
        self.outbox = Outbox::default();
        let is_probed = matches!(self.stage, Stage::Probing { .. }) || self.late_probe.is_some();
        match self.stage {
            Stage::Over => {}
            // DU-34: some servers exit because of the probe.
            Stage::Probing { .. } | Stage::Handshaking { .. } if is_probed && may_have_read => {
                if let Step::Handshake(revision) = legacy(&self.config)
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

    /// Ends the calls whose timeout has expired. If the probe or the handshake timed out, continues with the next step
    /// of connecting, or fails.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(kind) = self.deadlines.due(now) {
            let (DeadlineKind::IdleTimeout(call) | DeadlineKind::TotalTimeout(call)) = kind;
            if let DeadlineKind::IdleTimeout(_) = kind
                && !self.calls.is_idle(now, call, &mut self.deadlines)
            {
                continue;
            }
            if !self.is_internal(call) {
                self.end_call(call, CallError::TimedOut);
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
                        // The response did not arrive on the call's own stream, which is not needed any more.
                        if stream.is_some_and(|stream| stream != call) {
                            self.send(Transmit::Abort { call });
                        }
                        let outcome = response.outcome.map(Payload::into_owned).map_err(CallError::Rejected);
                        self.finish(now, call, outcome);
                    }
                    // K-7, K-8: the response may be late, which is allowed. It is ignored.
                    None => self.misbehaved(PeerMisbehaved::StrayResponse(response.id)),
                }
            }
            Message::Notification(notification) => {
                let arrived = self.observe(&notification.method, notification.params.as_ref());
                self.handle_notification(now, stream, notification);
                self.report(arrived, None, None);
            }
            Message::Request(request) => {
                let (id, arrived) = (request.id.clone(), self.observe(&request.method, request.params.as_ref()));
                match self.handle_request(stream, request) {
                    Received::ByApplication => {}
                    Received::ByKernel(error) => self.report(arrived, Some(&id), error),
                }
            }
        }
    }

    /// Returns the call that a response is for.
    fn call_of_response(&mut self, id: &RequestId) -> Option<CallId> {
        self.calls.of_response(id, |text_id| self.events.push_back(Event::PeerMisbehaved(text_id)))
    }

    /// Ends a call.
    fn finish(&mut self, now: Time, call: CallId, outcome: Result<PayloadBuf, CallError>) {
        if self.calls.end(call, &mut self.deadlines).is_none() {
            return;
        }
        if self.is_internal(call) {
            self.report_own_call(call, outcome.as_ref().err().cloned());
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
                let outcome = match outcome {
                    Ok(result) => result.decode().map_err(|fault| ConnectError::InvalidResponse(fault.to_string())),
                    Err(error) => Err(ConnectError::of_call(&self.config, error)),
                };
                self.handle_initialize_result(now, outcome);
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

    /// Reads the type of a result.
    // M-8..M-10
    fn read_result(&self, result: PayloadBuf) -> Result<CallResult, CallError> {
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
        Ok(CallResult { result_type, result })
    }

    fn handle_notification(&mut self, now: Time, stream: Option<CallId>, notification: Notification<'_>) {
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
                    let related = self.related(stream, &method);
                    self.events.push_back(Event::Log { log, related });
                }
            }
            "notifications/subscriptions/acknowledged" => {
                let call = self.subscription(params.as_ref());
                let ack = params.and_then(|params| params.decode::<SubscriptionsAcknowledgedNotificationParams>().ok());
                match (call, ack) {
                    (Some(call), Some(ack)) => {
                        self.listening.insert(call, true);
                        self.calls.clear_total_timeout(call, &mut self.deadlines);
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
                let related = self.related(stream, &method);
                self.events.push_back(Event::Notification { method, params, related });
            }
        }
    }

    /// Processes a cancellation by the server: of its own request (legacy), or of a listen stream.
    // K-4, AMB-1
    fn cancelled(&mut self, now: Time, id: RequestId) {
        if self.close_request(now, &id) {
            self.events.push_back(Event::RequestCancelled { id });
        } else if let Some(call) = self.calls.by_id(&id).filter(|call| self.listening.contains_key(call)) {
            self.finish(now, call, Err(CallError::Cancelled));
        }
    }

    /// Emits a change, which in the modern era needs a listen stream.
    // L-1, L-3, B-44
    fn changed(&mut self, method: Method, change: Change, params: Option<&Payload<'_>>) {
        let modern = self.revision().is_ok_and(|revision| revision.era() == Era::Modern);
        let call = self.subscription(params).filter(|call| self.listening.get(call) == Some(&true));
        if modern && call.is_none() {
            return self.misbehaved(PeerMisbehaved::StrayNotification(method));
        }
        self.events.push_back(Event::Changed { call, change });
    }

    /// Returns the listen stream of a notification. The type of the id matters.
    // AMB-12
    fn subscription(&self, params: Option<&Payload<'_>>) -> Option<CallId> {
        let id: RequestId = serde_json::from_str(params?.meta(key::SUBSCRIPTION_ID)?.get()).ok()?;
        self.calls.by_id(&id).filter(|call| self.listening.contains_key(call))
    }

    pub(super) fn misbehaved(&mut self, what: PeerMisbehaved) {
        self.events.push_back(Event::PeerMisbehaved(what));
    }
}
