//! Requests and notifications to the server.

use std::time::Duration;

use mcp_types::gate::{self, Direction};
use mcp_types::jsonrpc::EncodedMessage;
use mcp_types::{
    CancelledNotificationParams, Era, Method, ObjectRef, ProgressToken, ProtocolVersion, RawObject, RequestMeta,
    RequestParams, Revision, SubscriptionFilter, SubscriptionsListenRequestParams, restrict_to,
};
use serde::Serialize;

use super::config::CancelStyle;
use super::connection::Connection;
use super::event::{CallHeaders, Event, Transmit};
use crate::calls::CallOptions;
use crate::errors::{CallError, CommandError};
use crate::{CallId, Time};

impl Connection {
    /// Sends a request to the server. The outcome follows as [`Event::CallFinished`], exactly once.
    ///
    /// # Errors
    ///
    /// Returns an error, and sends nothing, before [`Event::Ready`], if a limit is reached
    /// ([`CommandError::is_temporary`]), or if the server's revision does not have the method.
    pub fn call<'a>(
        &mut self,
        now: Time,
        method: &Method,
        params: impl Into<ObjectRef<'a>>,
        options: CallOptions,
    ) -> Result<CallId, CommandError> {
        self.call_with_headers(now, method, params, options, CallHeaders::default())
    }

    /// Sends a request to the server, as [`call`](Self::call) does, with headers that [`Transmit::Send`] returns.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`call`](Self::call).
    pub fn call_with_headers<'a>(
        &mut self,
        now: Time,
        method: &Method,
        params: impl Into<ObjectRef<'a>>,
        options: CallOptions,
        headers: CallHeaders,
    ) -> Result<CallId, CommandError> {
        if *method == Method::SUBSCRIPTIONS_LISTEN {
            return Err(CommandError::Reserved(method.clone()));
        }
        self.start_call(now, method, params.into(), options, headers)
    }

    fn start_call(
        &mut self,
        now: Time,
        method: &Method,
        params: ObjectRef<'_>,
        options: CallOptions,
        headers: CallHeaders,
    ) -> Result<CallId, CommandError> {
        let revision = self.revision()?;
        self.check(method, revision)?;
        let limit = self.config.limits.max_calls;
        if self.calls.len() >= limit {
            return Err(CommandError::TooManyCalls { limit });
        }
        if self.outbox.is_full(&self.config.limits) {
            return Err(CommandError::OutboxFull);
        }
        let text = params.as_str();
        // Parameters that may have a `_meta` of their own have to be decoded.
        if text.contains("_meta") || text.contains("\\u00") {
            let params: RequestParams = params.decode().map_err(|_| CommandError::NotAnObject)?;
            return Ok(self.send_request(now, method, params, revision, options, headers));
        }
        let (call, id) = self.calls.start(now, options, &mut self.deadlines);
        let token = options.idle_timeout.is_some().then(|| ProgressToken::from(&id));
        let envelope = if revision.era() == Era::Modern { Some(self.envelope(revision)) } else { None };
        // Ids and tokens are numbers here, which can always be serialized.
        if let Ok(message) = EncodedMessage::request_with_meta(&id, method, params, token.as_ref(), envelope) {
            self.send_call(call, method, Some(revision), headers, message);
        }
        Ok(call)
    }

    /// Opens a `subscriptions/listen` stream. Changes follow as [`Event::Changed`], after [`Event::Listening`]. The call
    /// ends with [`CallError::TimedOut`] if the server does not acknowledge it within `timeout`.
    ///
    /// # Errors
    ///
    /// Returns an error in the legacy era, where the server sends changes without a stream, or after
    /// `resources/subscribe`.
    // L-2
    pub fn listen(
        &mut self,
        now: Time,
        filter: SubscriptionFilter,
        timeout: Option<Duration>,
    ) -> Result<CallId, CommandError> {
        self.listen_with_meta(now, filter, None, timeout)
    }

    /// Opens a `subscriptions/listen` stream, as [`listen`](Self::listen) does, with metadata such as a trace context.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`listen`](Self::listen).
    pub fn listen_with_meta(
        &mut self,
        now: Time,
        filter: SubscriptionFilter,
        meta: Option<RequestMeta>,
        timeout: Option<Duration>,
    ) -> Result<CallId, CommandError> {
        let mut params = SubscriptionsListenRequestParams::new(filter);
        params.meta = meta;
        let params = RawObject::new(&params).map_err(|_| CommandError::NotAnObject)?;
        // K-15: the response is the end of the stream, so that it is never late. Only the acknowledgement can be.
        let options = CallOptions::default().idle_timeout(None).total_timeout(timeout);
        let call =
            self.start_call(now, &Method::SUBSCRIPTIONS_LISTEN, (&params).into(), options, CallHeaders::default())?;
        self.listening.insert(call, false);
        Ok(call)
    }

    /// Sends a notification to the server.
    ///
    /// # Errors
    ///
    /// Returns an error if the server's revision does not have the notification.
    pub fn notify(&mut self, method: &Method, params: &impl Serialize) -> Result<(), CommandError> {
        let revision = self.revision()?;
        self.check(method, revision)?;
        if self.outbox.is_full(&self.config.limits) {
            return Err(CommandError::OutboxFull);
        }
        self.send_notification(method, params).map_err(|_| CommandError::NotAnObject)
    }

    /// Cancels a call in the [configured way](super::ClientConfig::cancel_style). The outcome is
    /// [`CallError::Cancelled`].
    ///
    /// # Errors
    ///
    /// Returns [`CommandError::Ended`] if the call has ended.
    // K-1, K-2
    pub fn cancel(&mut self, call: CallId) -> Result<(), CommandError> {
        if !self.is_internal(call) && self.end_call(call, CallError::Cancelled) {
            Ok(())
        } else {
            Err(CommandError::Ended)
        }
    }

    /// Stops the timeouts of a call, or of all calls, while the transport waits for something else than the server, such as a
    /// user who logs in. All calls includes those that are made in the meantime, and the probe and the handshake.
    ///
    /// Each pause ends with [`resume_timeouts`](Self::resume_timeouts) for the same call.
    pub fn pause_timeouts(&mut self, now: Time, call: Option<CallId>) {
        self.calls.pause(now, call, &mut self.deadlines);
    }

    /// Continues the timeouts of a call, or of all calls, with what was left of them. No effect on a call that has ended, or
    /// that is in another pause.
    pub fn resume_timeouts(&mut self, now: Time, call: Option<CallId>) {
        self.calls.resume(now, call, &mut self.deadlines);
    }

    /// Checks that the application may send a method. Unknown methods may be sent: the server may have them.
    fn check(&self, method: &Method, revision: Revision) -> Result<(), CommandError> {
        if RESERVED_METHODS.contains(method) {
            return Err(CommandError::Reserved(method.clone()));
        }
        let Some(facts) = gate::method(method) else { return Ok(()) };
        let extended =
            facts.extension.is_some_and(|extension| extension.may_be_sent(Direction::ClientToServer, revision));
        if extended || facts.may_be_sent(Direction::ClientToServer, revision) {
            Ok(())
        } else {
            Err(CommandError::NotInRevision { method: method.clone(), revision })
        }
    }

    /// The `_meta` of modern requests, serialized once.
    fn envelope(&mut self, revision: Revision) -> &RawObject {
        if self.envelope.is_none() {
            let mut meta = RequestMeta::default();
            self.fill_envelope(&mut meta, revision);
            self.envelope = RawObject::new(&meta).ok();
        }
        self.envelope.get_or_insert_default()
    }

    fn send_call(
        &mut self,
        call: CallId,
        method: &Method,
        revision: Option<Revision>,
        headers: CallHeaders,
        message: EncodedMessage,
    ) {
        self.send(Transmit::Send { call: Some(call), method: Some(method.clone()), revision, headers, message });
    }

    pub(super) fn send_request(
        &mut self,
        now: Time,
        method: &Method,
        mut params: RequestParams,
        revision: Revision,
        options: CallOptions,
        headers: CallHeaders,
    ) -> CallId {
        let (call, id) = self.calls.start(now, options, &mut self.deadlines);
        let meta = params.meta.get_or_insert_default();
        if options.idle_timeout.is_some() || meta.progress_token.is_some() {
            // The id serves as the token, which makes tokens unique (P-2). The application's own token is restored when
            // progress arrives.
            let own = meta.progress_token.replace(ProgressToken::from(&id));
            if let Some(open) = self.calls.get_mut(call) {
                open.token = own;
            }
        }
        if revision.era() == Era::Modern {
            self.fill_envelope(meta, revision);
        } else {
            clear_envelope(meta);
        }
        params.meta.take_if(|meta| *meta == RequestMeta::default());
        // The parameters were an object when they were decoded.
        if let Ok(message) = EncodedMessage::request(&id, method, Some(&params)) {
            let revision = (*method != Method::INITIALIZE).then_some(revision);
            self.send_call(call, method, revision, headers, message);
        }
        call
    }

    /// Sets the members that the `_meta` of every modern request has.
    // X-7..X-10
    fn fill_envelope(&self, meta: &mut RequestMeta, revision: Revision) {
        meta.protocol_version = Some(ProtocolVersion::from(revision));
        meta.client_capabilities.get_or_insert_with(|| {
            let mut capabilities = self.config.capabilities.clone();
            // RO-1: only what the revision has.
            let _ = restrict_to(&mut capabilities, revision);
            Box::new(capabilities)
        });
        meta.client_info.get_or_insert_with(|| self.config.info.clone());
        meta.log_level = meta.log_level.or(self.log_level);
    }

    pub(super) fn send_notification(
        &mut self,
        method: &Method,
        params: &impl Serialize,
    ) -> Result<(), serde_json::Error> {
        let message = EncodedMessage::notification(method, Some(params))?;
        self.send_one_way(Some(method.clone()), message);
        Ok(())
    }

    /// Ends a call, and notifies the server.
    pub(super) fn end_call(&mut self, call: CallId, why: CallError) -> bool {
        let Some(ended) = self.calls.end(call, &mut self.deadlines) else { return false };
        self.has_abandoned |= self.listening.remove(&call).is_none();
        let has_stream = self.config.cancel_style == CancelStyle::CloseStream;
        if !self.is_modern() || !has_stream {
            let params = CancelledNotificationParams::default().request_id(ended.id);
            let _ = self.send_notification(&Method::NOTIFICATIONS_CANCELLED, &params);
        }
        // A legacy server ignores this, but a stream that is not read must not stay open.
        if has_stream {
            self.send(Transmit::Abort { call });
        }
        self.events.push_back(Event::CallFinished { call, outcome: Err(why) });
        true
    }
}

/// Removes the members that make a request a modern one, which forwarded parameters may have: a server of both eras would
/// serve it as such.
fn clear_envelope(meta: &mut RequestMeta) {
    (meta.protocol_version, meta.client_capabilities) = (None, None);
    (meta.client_info, meta.log_level) = (None, None);
}

/// The methods that only the connection sends.
const RESERVED_METHODS: [Method; 3] =
    [Method::INITIALIZE, Method::NOTIFICATIONS_INITIALIZED, Method::NOTIFICATIONS_CANCELLED];

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("stage", &self.stage)
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}
