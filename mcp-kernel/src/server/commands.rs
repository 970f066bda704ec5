//! What the application wants of the client.

use mcp_types::gate::{self, Direction, MethodFacts};
use mcp_types::jsonrpc::{EncodedMessage, PayloadBuf};
use mcp_types::{
    CancelledNotificationParams, ClientCapability, EmptyResult, Era, ErrorObject, LoggingLevel,
    LoggingMessageNotificationParams, Method, NotificationParams, Number, ProgressNotificationParams, ProgressToken,
    RawJson, RawObject, RequestId, RequestParams, Restriction, ResultBody, ResultMeta, ResultType, Revision,
    SubscriptionsListenResult, restrict_to,
};
use serde::Serialize;

use super::announcement::Announcement;
use super::connection::Connection;
use super::event::Event;
use super::in_flight::{Entry, Kind, Responder};
use super::outbox::Priority;
use super::transmit::{Failure, Route};
use crate::calls::CallOptions;
use crate::errors::{CallError, CommandError};
use crate::{CallId, Change, RequestKey, Time};

/// Whether something is on its way to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is or it is not")]
pub enum Delivery {
    /// It is queued.
    Queued,
    /// It was left out, because the client did not ask for it, does not wait for it any more, or does not read.
    NotSent,
}

impl Connection {
    /// Answers a request.
    ///
    /// What only some revisions have is added or removed: the kind of result, the server's name, cache hints, members
    /// that the client's revision lacks. The answer to a request that was cancelled is left out.
    // K-5
    pub fn respond<R: ResultBody>(&mut self, responder: Responder, outcome: Result<R, ErrorObject>) -> Delivery {
        let key = responder.key();
        let Some(entry) = self.in_flight.close(key) else { return Delivery::NotSent };
        let written = outcome.map_err(Some).and_then(|result| self.write_answer(key, &entry, result));
        match written {
            Ok(message) => self.answer(key, entry.batch, message),
            Err(error) => {
                let error = error.unwrap_or_else(|| ErrorObject::internal_error("the result cannot be sent"));
                let failure = Failure::Failed(error.code);
                self.answer_error(key, entry.batch, Some(&entry.scope.id), entry.scope.revision, &error, failure);
            }
        }
        self.admit_waiting();
        Delivery::Queued
    }

    /// Answers a request with a result that no type describes.
    pub fn respond_raw(&mut self, responder: Responder, result: &RawObject) -> Delivery {
        // The empty result keeps all members that it does not know, as they are.
        let mut result =
            result.decode::<EmptyResult>().map_err(|_| ErrorObject::internal_error("the result is not valid"));
        let entry = self.in_flight.get_mut(responder.key()).map(|entry| (entry.scope.facts, entry.scope.revision));
        if let (Ok(result), Some((facts, revision))) = (&mut result, entry) {
            self.add_cache_hints(result, facts, revision);
        }
        self.respond(responder, result)
    }

    /// Adds the cache hints, which the empty result does not know as such, where they are owed.
    // C-1, C-4
    fn add_cache_hints(&self, result: &mut EmptyResult, facts: Option<&MethodFacts>, revision: Revision) {
        let cacheable = facts.is_some_and(|facts| facts.cacheable.contains(revision));
        if !cacheable || result.result_type.as_ref().is_some_and(|kind| *kind != ResultType::COMPLETE) {
            return;
        }
        let scope = self.config.cache_scope.as_str();
        for (name, value) in [("ttlMs", self.config.ttl_ms.into()), ("cacheScope", serde_json::Value::from(scope))] {
            if result.extra.get(name).is_none() {
                result.extra.insert(name, RawJson::from(value));
            }
        }
    }

    fn write_answer<R: ResultBody>(
        &mut self,
        key: RequestKey,
        entry: &Entry,
        mut result: R,
    ) -> Result<EncodedMessage, Option<ErrorObject>> {
        self.complete(&mut result, entry.scope.facts, entry.scope.revision);
        // Asked before the revision takes the member away.
        let asks = result.result_type_mut().is_some_and(|kind| *kind == Some(ResultType::INPUT_REQUIRED));
        let restriction = self.restrict(&mut result, entry.scope.revision);
        let mut what: Vec<&'static str> = restriction.refused().iter().chain(restriction.missing()).copied().collect();
        let may_ask = entry.scope.facts.is_some_and(|facts| facts.may_ask.contains(entry.scope.revision));
        if asks && !may_ask {
            //
            what.push("InputRequiredResult");
        }
        if result.asks_nothing() {
            //
            what.push("InputRequiredResult without inputRequests and requestState");
        }
        if let Some(missing) = undeclared(&result, entry) {
            return Err(Some(missing));
        }
        let message =
            if what.is_empty() { self.write(&entry.scope.id, &mut result, entry.scope.revision) } else { None };
        if message.is_none() {
            self.emit(Event::NotExpressible { request: key, what });
        }
        message.ok_or(None)
    }

    /// Writes a result that is complete. The metadata that most answers share is not written anew for each.
    pub(super) fn write(
        &self,
        id: &RequestId,
        result: &mut impl ResultBody,
        revision: Revision,
    ) -> Option<EncodedMessage> {
        let has_no_meta = revision.era() == Era::Modern && result.meta_mut().is_some_and(|meta| meta.is_none());
        let mut message = EncodedMessage::result(id, result).ok()?;
        if let Some(meta) = self.config.info_meta().filter(|_| has_no_meta) {
            message.add_meta(meta);
        }
        Some(message)
    }

    /// Takes out what a revision lacks, and notes it.
    pub(super) fn restrict(&mut self, result: &mut impl ResultBody, revision: Revision) -> Restriction {
        let restriction = restrict_to(result, revision);
        if !restriction.dropped().is_empty() {
            let members = restriction.dropped().to_vec();
            self.emit(Event::Stripped { revision, members });
        }
        restriction
    }

    /// Fills in what the protocol layer owes a result.
    // M-6, X-15, C-1, C-4
    pub(super) fn complete(&self, result: &mut impl ResultBody, facts: Option<&MethodFacts>, revision: Revision) {
        if revision.era() == Era::Legacy {
            return;
        }
        let mut is_complete = true;
        let default = result.default_result_type();
        if let Some(kind) = result.result_type_mut() {
            is_complete = *kind.get_or_insert(default) == ResultType::COMPLETE;
        }
        if self.config.send_server_info
            && let Some(Some(meta)) = result.meta_mut()
        {
            meta.server_info.get_or_insert_with(|| self.config.info().clone());
        }
        let cacheable = facts.is_some_and(|facts| facts.cacheable.contains(revision));
        if is_complete
            && cacheable
            && let Some(hints) = result.cache_mut()
        {
            hints.ttl_ms.get_or_insert(self.config.ttl_ms);
            hints.scope.get_or_insert_with(|| self.config.cache_scope.clone());
        }
    }

    /// Reports progress of a request, if its client wants to hear of it.
    ///
    /// Values must grow; one that does not is left out.
    // S2.12, P-3, P-9
    pub fn progress(
        &mut self,
        request: RequestKey,
        progress: impl Into<Number>,
        total: Option<Number>,
        message: Option<String>,
    ) -> Delivery {
        let Some(entry) = self.in_flight.get_mut(request) else { return Delivery::NotSent };
        // H-19: a subscription carries changes alone.
        let token = entry.scope.progress_token.clone().filter(|_| entry.kind == Kind::Running);
        let Some(token) = token else { return Delivery::NotSent };
        let progress = progress.into();
        if entry.last_progress.as_ref().is_some_and(|last| progress.as_f64() <= last.as_f64()) {
            return Delivery::NotSent;
        }
        entry.last_progress = Some(progress.clone());
        let revision = entry.scope.revision;
        let mut params = ProgressNotificationParams::new(token, progress);
        (params.total, params.message) = (total, message);
        let _ = restrict_to(&mut params, revision);
        let route = self.related_route(request);
        self.queue_notification(route, &Method::NOTIFICATIONS_PROGRESS, &params, Priority::Progress)
    }

    /// Sends a log message about a request, or about the connection, if the client wants to see it.
    // Y-1..Y-4
    pub fn log(
        &mut self,
        request: Option<RequestKey>,
        level: LoggingLevel,
        data: impl Into<RawJson>,
        logger: Option<String>,
    ) -> Delivery {
        let (threshold, route) = match request {
            Some(key) => {
                let running = self.in_flight.get_mut(key).filter(|entry| entry.kind == Kind::Running);
                let threshold = running.and_then(|entry| match entry.scope.revision.era() {
                    Era::Modern => entry.scope.log_level,
                    // The level belongs to the connection and may have changed since the request came.
                    Era::Legacy => Some(self.log_level).filter(|_| !self.lifecycle.is_stateless()),
                });
                (threshold, self.related_route(key))
            }
            None if self.lifecycle.is_ready() => (Some(self.log_level), Route::Standalone),
            None => (None, Route::Standalone),
        };
        if self.config.capabilities.logging.is_none() || threshold.is_none_or(|threshold| level < threshold) {
            return Delivery::NotSent;
        }
        let mut params = LoggingMessageNotificationParams::new(level, data);
        params.logger = logger;
        self.queue_notification(route, &Method::NOTIFICATIONS_MESSAGE, &params, Priority::Log)
    }

    /// Where what belongs to a request goes: the requests of a batch share the stream of the batch.
    fn related_route(&mut self, key: RequestKey) -> Route {
        let Some(entry) = self.in_flight.get_mut(key) else { return Route::Related(key) };
        match entry.kind {
            Kind::Listening => Route::Listen(key),
            Kind::Running => Route::Related(entry.batch.unwrap_or(key)),
        }
    }

    /// Tells the client something that no other command says, such as what an extension defines.
    ///
    /// It goes with a request or a subscription, or with the connection as a whole; without a way there it is left out,
    /// and so it is if the client does not read.
    ///
    /// # Errors
    ///
    /// Fails if another command says this, or if the client's revision does not have the notification in this
    /// direction.
    // S1.7
    pub fn notify(
        &mut self,
        related: Option<RequestKey>,
        method: &Method,
        params: &RawObject,
    ) -> Result<Delivery, CommandError> {
        if RESERVED_NOTIFICATIONS.contains(method) {
            return Err(CommandError::Reserved(method.clone()));
        }
        let (revision, route) = match related {
            Some(key) => (self.in_flight.get_mut(key).map(|entry| entry.scope.revision), self.related_route(key)),
            None => {
                (self.negotiated().filter(|_| self.has_back_channel && self.lifecycle.is_ready()), Route::Standalone)
            }
        };
        let Some(revision) = revision else { return Ok(Delivery::NotSent) };
        if self.outbox.is_full(&self.config.limits, route) {
            return Ok(Delivery::NotSent);
        }
        if let Some(facts) = gate::method(method)
            && !facts.may_travel(Direction::ServerToClient, revision)
        {
            return Err(CommandError::NotInRevision { method: method.clone(), revision });
        }
        if gate::method(method).is_some_and(|facts| facts.listen_only.contains(revision)) {
            // S1.21: only those who asked for it may hear of it, and `publish` knows them.
            return Err(CommandError::Reserved(method.clone()));
        }
        if let Route::Listen(key) = route {
            // L-7: everything on the stream carries the id of the listen request.
            let mut params: NotificationParams = params.decode().map_err(|_| CommandError::NotAnObject)?;
            params.meta.get_or_insert_default().subscription_id =
                self.in_flight.get_mut(key).map(|entry| entry.scope.id.clone());
            return Ok(self.queue_notification(route, method, &params, Priority::Required));
        }
        Ok(self.queue_notification(route, method, params, Priority::Required))
    }

    /// Tells the client of a change: unasked by the rules of legacy, and to each subscription that asked for it.
    pub fn publish(&mut self, change: &Change) {
        self.announce(&Announcement::new(change));
    }

    /// Does what [`publish`](Self::publish) does, with what was written once for all clients.
    pub fn announce(&mut self, announcement: &Announcement) {
        let change = announcement.change();
        let has = &self.config.capabilities;
        let offered = match change {
            Change::Tools => has.tools.as_ref().and_then(|has| has.list_changed) == Some(true),
            Change::Prompts => has.prompts.as_ref().and_then(|has| has.list_changed) == Some(true),
            Change::Resources => has.resources.as_ref().and_then(|has| has.list_changed) == Some(true),
            Change::Resource(uri) => self.subscriptions.contains(uri),
        };
        if self.closed {
            return;
        }
        if offered && self.lifecycle.is_ready() && self.has_back_channel {
            self.send(Route::Standalone, announcement.unasked().clone(), Priority::Change);
        }
        let listeners: Vec<RequestKey> =
            self.listen_streams.iter().flat_map(|listeners| listeners.of(change)).collect();
        for key in listeners {
            let message = self.in_flight.get_mut(key).map(|entry| announcement.for_listen_stream(&entry.scope.id));
            if let Some(message) = message {
                self.send(Route::Listen(key), message, Priority::Change);
            }
        }
    }

    fn queue_notification(
        &mut self,
        route: Route,
        method: &Method,
        params: &impl Serialize,
        priority: Priority,
    ) -> Delivery {
        if priority <= Priority::Log && self.outbox.is_saturated(&self.config.limits) {
            // Each route has its own limit, but there may be many of them. It need not even be written.
            self.note_dropped(route, 1);
            return Delivery::NotSent;
        }
        if self.closed {
            return Delivery::NotSent;
        }
        let Ok(message) = EncodedMessage::notification(method, Some(params)) else { return Delivery::NotSent };
        self.send(route, message, priority);
        Delivery::Queued
    }

    /// Ends a subscription from this side: with its result, as both transports allow.
    ///
    /// # Errors
    ///
    /// Fails if the request is not a subscription that is open.
    // AMB-1, L-11
    pub fn end_listening(&mut self, request: RequestKey) -> Result<(), CommandError> {
        let entry = self.in_flight.get_mut(request).filter(|entry| entry.kind == Kind::Listening);
        let id = entry.map(|entry| entry.scope.id.clone()).ok_or(CommandError::Ended)?;
        let _ = self.in_flight.close(request);
        self.remove_listen_stream(request);
        let mut result = SubscriptionsListenResult::default();
        result.meta = Some(ResultMeta::default().subscription_id(id.clone()));
        self.complete(&mut result, gate::method(&Method::SUBSCRIPTIONS_LISTEN), Revision::LATEST);
        if let Some(message) = self.write(&id, &mut result, Revision::LATEST) {
            self.send(Route::Reply(request), message, Priority::Required);
        }
        self.emit(Event::ListeningEnded(request));
        Ok(())
    }

    /// Asks the client something, which only the legacy era allows.
    ///
    /// `related` is the request during which the question came up, on whose stream it travels. The outcome comes as
    /// [`Event::CallFinished`], exactly once.
    ///
    /// # Errors
    ///
    /// Fails, and sends nothing, if the client cannot be asked this.
    // M-15, B-10
    pub fn call(
        &mut self,
        now: Time,
        related: Option<RequestKey>,
        method: Method,
        params: &RawObject,
        options: CallOptions,
    ) -> Result<CallId, CommandError> {
        self.check_call(related, &method, params)?;
        let mut params: RequestParams = params.decode().map_err(|_| CommandError::NotAnObject)?;
        let (call, id) = self.calls.start(now, options, &mut self.deadlines);
        // The call's id serves as token, so that progress finds its way back; the application's own comes back with it.
        let token = params.meta.get_or_insert_default().progress_token.replace(ProgressToken::from(&id));
        if let Some(open) = self.calls.get_mut(call) {
            (open.token, open.related) = (token, related);
        }
        let Ok(message) = EncodedMessage::request(&id, &method, Some(&params)) else {
            let _ = self.calls.end(call, &mut self.deadlines);
            return Err(CommandError::NotAnObject);
        };
        let route = related.map_or(Route::Standalone, |key| self.related_route(key));
        self.send(route, message, Priority::Required);
        Ok(call)
    }

    fn check_call(
        &mut self,
        related: Option<RequestKey>,
        method: &Method,
        params: &RawObject,
    ) -> Result<(), CommandError> {
        if self.closed {
            return Err(CommandError::Closed);
        }
        if let Some(key) = related {
            let entry = self.in_flight.get_mut(key).ok_or(CommandError::Ended)?;
            if entry.scope.revision.era() == Era::Modern {
                return Err(CommandError::NoBackChannel("a modern request is answered with `input_required` instead"));
            }
        }
        if !self.has_back_channel {
            return Err(CommandError::NoBackChannel("a session is needed to ask the client something"));
        }
        let route = related.map_or(Route::Standalone, |key| self.related_route(key));
        if self.outbox.is_full(&self.config.limits, route) {
            return Err(CommandError::OutboxFull);
        }
        let agreed = self.lifecycle.agreed().ok_or(CommandError::NotReady)?;
        // A client that already asks for more than the handshake is done with it, though it never said so.
        let is_ready = self.lifecycle.is_ready() || (related.is_some() && !self.config.require_initialized);
        if !is_ready && *method != Method::PING {
            return Err(CommandError::NotReady);
        }
        if let Some(facts) = gate::method(method)
            && !facts.may_travel(Direction::ServerToClient, agreed.revision)
        {
            return Err(CommandError::NotInRevision { method: method.clone(), revision: agreed.revision });
        }
        let needed = needed_for(method, params, agreed.revision);
        let client = agreed.client.read();
        let missing = needed.into_iter().find(|needed| !needed.is_declared(&client.capabilities));
        if let Some(missing) = missing {
            return Err(CommandError::MissingCapability(missing.name()));
        }
        let limit = self.config.limits.max_calls;
        if self.calls.len() >= limit { Err(CommandError::TooManyCalls { limit }) } else { Ok(()) }
    }

    /// Gives a call up and tells the client; the outcome is [`CallError::Cancelled`].
    ///
    /// # Errors
    ///
    /// Fails if the call has ended.
    pub fn cancel(&mut self, call: CallId) -> Result<(), CommandError> {
        if self.cancel_call(call, CallError::Cancelled) { Ok(()) } else { Err(CommandError::Ended) }
    }

    pub(super) fn cancel_call(&mut self, call: CallId, why: CallError) -> bool {
        let Some(ended) = self.calls.end(call, &mut self.deadlines) else { return false };
        let params = CancelledNotificationParams::default().request_id(ended.id);
        let method = Method::NOTIFICATIONS_CANCELLED;
        // It follows the request that it is about, as long as there is a stream to follow on.
        let related = ended.related.filter(|key| self.in_flight.get_mut(*key).is_some());
        let route = related.map_or(Route::Standalone, |key| self.related_route(key));
        let _ = self.queue_notification(route, &method, &params, Priority::Required);
        self.emit(Event::CallFinished { call, outcome: Err(why) });
        true
    }

    pub(super) fn finish_call(&mut self, call: CallId, outcome: Result<PayloadBuf, CallError>) {
        if self.calls.end(call, &mut self.deadlines).is_some() {
            self.emit(Event::CallFinished { call, outcome });
        }
    }

    /// Prepares for the end: subscriptions end with their result, and questions to the client are given up, since no
    /// answer will be read. Requests that are open may still be answered.
    pub fn drain(&mut self) {
        for key in self.in_flight.keys() {
            let _ = self.end_listening(key);
        }
        for call in self.calls.all() {
            self.finish_call(call, Err(CallError::Disconnected));
        }
        self.has_back_channel = false;
        self.draining = true;
    }

    /// Ends the connection from this side: subscriptions end with their result, everything else is given up.
    pub fn close(&mut self) {
        if self.closed {
            return;
        }
        for key in self.in_flight.keys() {
            let _ = self.end_listening(key);
        }
        self.end();
    }

    /// Ends what is left; nothing happens after this.
    pub(super) fn end(&mut self) {
        // What waits was never heard of; it must not start to run now.
        for event in std::mem::take(&mut self.waiting) {
            if let Event::Request { responder, .. } = event {
                let _ = self.in_flight.close(responder.key());
            }
        }
        self.batches.clear();
        for call in self.calls.all() {
            self.finish_call(call, Err(CallError::Disconnected));
        }
        for key in self.in_flight.keys() {
            self.cancel_request(key, None);
        }
        self.subscriptions.clear();
        self.closed = true;
        self.emit(Event::Closed);
    }
}

/// What other commands say, by the rules that belong to it.
const RESERVED_NOTIFICATIONS: [Method; 4] = [
    Method::NOTIFICATIONS_PROGRESS,
    Method::NOTIFICATIONS_MESSAGE,
    Method::NOTIFICATIONS_CANCELLED,
    Method::NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED,
];

/// Refuses questions that the client cannot be asked, and says what it would have to declare.
//
fn undeclared(result: &impl ResultBody, entry: &Entry) -> Option<ErrorObject> {
    if entry.scope.revision.era() == Era::Legacy {
        return None;
    }
    let needed = result.questions()?.iter().flat_map(|(_, question)| ClientCapability::needed_for(question));
    let mut required = None;
    for missing in needed.filter(|needed| !needed.is_declared(&entry.scope.client.capabilities)) {
        missing.require(required.get_or_insert_default());
    }
    required.map(ErrorObject::missing_required_client_capability)
}

/// What a client must have declared to be asked this.
// X-13, SA-2, SA-4, EL-2
fn needed_for(method: &Method, params: &RawObject, revision: Revision) -> Vec<ClientCapability> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Features {
        mode: Option<String>,
        tools: Option<RawJson>,
        tool_choice: Option<RawJson>,
        include_context: Option<String>,
    }

    let asked = params.decode::<Features>().ok();
    match method.as_str() {
        "elicitation/create" => {
            let by_url = asked.is_some_and(|asked| asked.mode.as_deref() == Some("url"));
            vec![if by_url { ClientCapability::ElicitationUrl } else { ClientCapability::ElicitationForm }]
        }
        "sampling/createMessage" => {
            let mut needed = vec![ClientCapability::Sampling];
            if let Some(asked) = asked {
                if asked.tools.is_some() || asked.tool_choice.is_some() {
                    needed.push(ClientCapability::SamplingTools);
                }
                // Before 2025-11-25 there was no capability for this.
                let declarable = revision >= Revision::V2025_11_25;
                if declarable && asked.include_context.is_some_and(|context| context != "none") {
                    needed.push(ClientCapability::SamplingContext);
                }
            }
            needed
        }
        "roots/list" => vec![ClientCapability::Roots],
        _ => Vec::new(),
    }
}
