//! Notifications to the client, and the end of a connection.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_types::gate::{self, Direction};
use mcp_types::jsonrpc::EncodedMessage;
use mcp_types::{
    Era, LoggingLevel, LoggingMessageNotificationParams, Method, NotificationMeta, NotificationParams, Number,
    ProgressNotificationParams, RawJson, RawObject, ResultMeta, Revision, SubscriptionsListenResult, restrict_to,
};
use serde::Serialize;

use super::announcement::Announcement;
use super::connection::Connection;
use super::event::Event;
use super::in_flight::Kind;
use super::outbox::Priority;
use super::scope::RequestScope;
use super::transmit::Route;
use crate::errors::{CallError, CommandError};
use crate::{Change, RequestKey};

/// Whether a message was queued for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is or it is not")]
pub enum Delivery {
    /// It was queued.
    Queued,
    /// It was not sent: the client did not request it, cancelled the request, or does not read.
    NotSent,
}

impl Connection {
    /// Reports the progress of a request, if the client requested it. A value that is not greater than the last one is
    /// not sent.
    // S2.12, P-3, P-9
    pub fn progress(
        &mut self,
        request: RequestKey,
        progress: impl Into<Number>,
        total: Option<Number>,
        message: Option<String>,
    ) -> Delivery {
        self.progress_with_meta(request, progress, (total, message), None)
    }

    /// Reports the progress of a request with metadata, as [`progress`](Self::progress) does: with the total and the message,
    /// if there are any.
    pub fn progress_with_meta(
        &mut self,
        request: RequestKey,
        progress: impl Into<Number>,
        (total, message): (Option<Number>, Option<String>),
        meta: Option<NotificationMeta>,
    ) -> Delivery {
        let Some(entry) = self.in_flight.get_mut(request) else { return Delivery::NotSent };
        // H-19: a listen stream carries no progress.
        let token = entry.scope.progress_token.clone().filter(|_| entry.kind == Kind::Running);
        let Some(token) = token else { return Delivery::NotSent };
        let progress = progress.into();
        if entry.last_progress.as_ref().is_some_and(|last| progress.as_f64() <= last.as_f64()) {
            return Delivery::NotSent;
        }
        entry.last_progress = Some(progress.clone());
        let revision = entry.scope.revision;
        let mut params = ProgressNotificationParams::new(token, progress);
        (params.total, params.message, params.meta) = (total, message, meta);
        let _ = restrict_to(&mut params, revision);
        let route = self.related_route(request);
        self.queue_notification(route, &Method::NOTIFICATIONS_PROGRESS, &params, Priority::Progress)
    }

    /// Sends a log message about a request, or about the connection, if it has at least the level that the client
    /// requested.
    // Y-1..Y-4
    pub fn log(
        &mut self,
        request: Option<RequestKey>,
        level: LoggingLevel,
        data: impl Into<RawJson>,
        logger: Option<String>,
    ) -> Delivery {
        let mut params = LoggingMessageNotificationParams::new(level, data);
        params.logger = logger;
        self.log_message(request, &params)
    }

    /// Sends a log message with all members of the notification, as [`log`](Self::log) does.
    // S1.35
    pub fn log_message(&mut self, request: Option<RequestKey>, params: &LoggingMessageNotificationParams) -> Delivery {
        if !self.may_log(request, params.level) {
            return Delivery::NotSent;
        }
        let route = request.map_or(Route::Standalone, |key| self.related_route(key));
        self.queue_notification(route, &Method::NOTIFICATIONS_MESSAGE, params, Priority::Log)
    }

    /// Returns whether a log message about a request, or about the connection, has at least the level that the client requested.
    #[must_use]
    pub fn may_log(&self, request: Option<RequestKey>, level: LoggingLevel) -> bool {
        let threshold = match request {
            Some(key) => {
                let running = self.in_flight.get(key).filter(|entry| entry.kind == Kind::Running);
                running.and_then(|entry| match entry.scope.revision.era() {
                    Era::Modern => entry.scope.log_level,
                    // The level of a connection may have changed since the request arrived.
                    Era::Legacy => Some(self.log_level).filter(|_| !self.lifecycle.is_stateless()),
                })
            }
            None => Some(self.log_level).filter(|_| self.lifecycle.is_ready()),
        };
        self.config.capabilities.logging.is_some() && threshold.is_some_and(|threshold| level >= threshold)
    }

    /// The route of messages that belong to a request. The requests of a batch share the stream of the batch.
    pub(super) fn related_route(&mut self, key: RequestKey) -> Route {
        let Some(entry) = self.in_flight.get_mut(key) else { return Route::Related(key) };
        match entry.kind {
            Kind::Listening => Route::Listen(key),
            Kind::Running => Route::Related(entry.batch.unwrap_or(key)),
        }
    }

    /// Sends a notification that no other command sends, such as one of an extension.
    ///
    /// It belongs to a request, to a listen stream, or to the connection. It is not sent if there is no such route, or
    /// if the client does not read.
    ///
    /// # Errors
    ///
    /// Returns an error if another command sends this notification, or if the client's revision does not have it.
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
            && !facts.may_be_sent(Direction::ServerToClient, revision)
        {
            return Err(CommandError::NotInRevision { method: method.clone(), revision });
        }
        if gate::method(method).is_some_and(|facts| facts.listen_only.contains(revision)) {
            // S1.21: it goes to the listen streams that asked for it, with `publish`.
            return Err(CommandError::Reserved(method.clone()));
        }
        if let Route::Listen(key) = route {
            // L-7: every message on the stream has the id of the listen request.
            let mut params: NotificationParams = params.decode().map_err(|_| CommandError::NotAnObject)?;
            params.meta.get_or_insert_default().subscription_id =
                self.in_flight.get_mut(key).map(|entry| entry.scope.id.clone());
            return Ok(self.queue_notification(route, method, &params, Priority::Required));
        }
        Ok(self.queue_notification(route, method, params, Priority::Required))
    }

    /// Sends a notification of an extension on a listen stream whose filter asked for it, such as `notifications/tasks`. If the
    /// client does not read, the stream ends, so that it learns that it missed something.
    ///
    /// # Errors
    ///
    /// Returns an error if the request is not an open listen stream, if the notification is not one of an extension, or if the
    /// parameters are not an object.
    // L-7, L-17
    pub fn notify_listener(
        &mut self,
        stream: RequestKey,
        method: &Method,
        params: &RawObject,
    ) -> Result<Delivery, CommandError> {
        let scope = self.listen_scope(stream).ok_or(CommandError::Ended)?;
        let is_own = gate::method(method).is_some_and(|facts| facts.extension.is_none());
        if is_own || RESERVED_NOTIFICATIONS.contains(method) {
            return Err(CommandError::Reserved(method.clone()));
        }
        let id = scope.id.clone();
        let mut params: NotificationParams = params.decode().map_err(|_| CommandError::NotAnObject)?;
        params.meta.get_or_insert_default().subscription_id = Some(id);
        Ok(self.queue_notification(Route::Listen(stream), method, &params, Priority::Change))
    }

    /// Notifies the client of a change, on each listen stream whose filter includes it.
    ///
    /// A legacy client is notified after its handshake, if the server declared `listChanged`, or if the client
    /// subscribed to the resource.
    pub fn publish(&mut self, change: &Change) {
        self.announce(&Announcement::new(change));
    }

    /// Does the same as [`publish`](Self::publish) with a notification that is serialized once for all connections.
    pub fn announce(&mut self, announcement: &Announcement) {
        self.announce_on(Route::Standalone, announcement);
        let Some(streams) = &self.listen_streams else { return };
        let mut streams = streams.of(announcement.change());
        // Most connections with listen streams have one, which needs no list.
        let (first, others) = (streams.next(), streams.collect::<Vec<_>>());
        for key in first.into_iter().chain(others) {
            self.announce_on(Route::Listen(key), announcement);
        }
    }

    /// Returns the routes on which the client is notified of a change: [`Route::Standalone`] for a legacy client, and one
    /// for each listen stream whose filter includes the change.
    ///
    /// With [`announce_on`](Self::announce_on), the application can notify some of them only.
    pub fn recipients(&self, change: &Change) -> impl Iterator<Item = Route> {
        let standalone = self.is_offered(change).then_some(Route::Standalone);
        let listeners = self.listen_streams.iter().flat_map(|listeners| listeners.of(change)).map(Route::Listen);
        standalone.into_iter().chain(listeners).filter(|_| !self.closed)
    }

    /// Returns the URIs of the resources whose changes the client is notified of, each once.
    #[must_use]
    pub fn subscribed_resources(&self) -> Vec<String> {
        let listening = self.listen_streams.iter().flat_map(|streams| streams.uris());
        listening.chain(&self.rare.subscriptions).cloned().collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Notifies the client of a change on one route, if it is still one of the [`recipients`](Self::recipients).
    pub fn announce_on(&mut self, route: Route, announcement: &Announcement) {
        let change = announcement.change();
        let message = match route {
            _ if self.closed => None,
            Route::Standalone => self.is_offered(change).then(|| announcement.legacy.clone()),
            Route::Listen(key) if self.listen_streams.as_ref().is_some_and(|streams| streams.includes(key, change)) => {
                self.in_flight.get(key).map(|entry| announcement.for_listen_stream(&entry.scope.id))
            }
            Route::Listen(_) | Route::Reply(_) | Route::Related(_) => None,
        };
        if let Some(message) = message {
            self.send(route, message, Priority::Change);
        }
    }

    /// Returns whether a legacy client is notified of a change.
    fn is_offered(&self, change: &Change) -> bool {
        let has = &self.config.capabilities;
        let is_offered = match change {
            Change::Tools => has.tools.as_ref().and_then(|has| has.list_changed) == Some(true),
            Change::Prompts => has.prompts.as_ref().and_then(|has| has.list_changed) == Some(true),
            Change::Resources => has.resources.as_ref().and_then(|has| has.list_changed) == Some(true),
            Change::Resource(uri) => self.rare.subscriptions.contains(uri),
        };
        is_offered && self.lifecycle.is_ready() && self.has_back_channel
    }

    /// Returns the request of a listen stream, as long as the stream is open.
    #[must_use]
    pub fn listen_scope(&self, stream: RequestKey) -> Option<&Arc<RequestScope>> {
        // Few connections have listen streams, and this is called for each message.
        self.listen_streams.as_ref()?;
        self.in_flight.get(stream).filter(|entry| entry.kind == Kind::Listening).map(|entry| &entry.scope)
    }

    pub(super) fn queue_notification(
        &mut self,
        route: Route,
        method: &Method,
        params: &impl Serialize,
        priority: Priority,
    ) -> Delivery {
        if priority <= Priority::Log && self.outbox.is_saturated(&self.config.limits) {
            // Routes have limits of their own, but there may be many of them.
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

    /// Ends a listen stream with its result.
    ///
    /// # Errors
    ///
    /// Returns [`CommandError::Ended`] if the request is not an open listen stream.
    // AMB-1, L-11
    pub fn end_listening(&mut self, request: RequestKey) -> Result<(), CommandError> {
        let entry = self.in_flight.get_mut(request).filter(|entry| entry.kind == Kind::Listening);
        let id = entry.map(|entry| entry.scope.id.clone()).ok_or(CommandError::Ended)?;
        let _ = self.in_flight.close(request);
        self.remove_listen_stream(request);
        let mut result = SubscriptionsListenResult::default();
        result.meta = Some(Box::new(ResultMeta::default().subscription_id(id.clone())));
        self.complete(&mut result, gate::method(&Method::SUBSCRIPTIONS_LISTEN), Revision::LATEST);
        if let Some(message) = self.write(&id, &mut result, Revision::LATEST) {
            self.send(Route::Reply(request), message, Priority::Required);
        }
        self.emit(Event::ListeningEnded(request));
        Ok(())
    }

    /// Prepares for closing: ends listen streams with their result and calls with [`CallError::Disconnected`], since no
    /// response will be read. Responses to requests in flight are still sent.
    pub fn drain(&mut self) {
        for key in self.in_flight.keys() {
            let _ = self.end_listening(key);
        }
        for call in self.rare.calls.all() {
            self.finish_call(call, Err(CallError::Disconnected));
        }
        self.has_back_channel = false;
        self.draining = true;
    }

    /// Closes the connection: listen streams end with their result, requests and calls are cancelled.
    pub fn close(&mut self) {
        if self.closed {
            return;
        }
        for key in self.in_flight.keys() {
            let _ = self.end_listening(key);
        }
        self.end();
    }

    /// Ends requests and calls, and emits the last event.
    pub(super) fn end(&mut self) {
        // The application does not know queued requests. They must not start now.
        let queued = self.rare.get_mut().map(|rare| {
            rare.batches.clear();
            std::mem::take(&mut rare.queued)
        });
        if queued.as_ref().is_some_and(|queued| !queued.is_empty()) {
            self.report_queue();
        }
        for event in queued.into_iter().flatten() {
            if let Event::Request { responder, .. } = &event {
                let _ = self.in_flight.close(responder.key());
            }
            self.report_unqueued(event);
        }
        self.handshake = None;
        for call in self.rare.calls.all() {
            self.finish_call(call, Err(CallError::Disconnected));
        }
        for key in self.in_flight.keys() {
            self.cancel_request(key, None);
        }
        let subscriptions = self.rare.get_mut().map(|rare| std::mem::take(&mut rare.subscriptions));
        for uri in subscriptions.into_iter().flatten() {
            self.emit(Event::Subscription { uri, active: false });
        }
        self.closed = true;
        self.emit(Event::Closed);
    }
}

/// The notifications that other commands send.
const RESERVED_NOTIFICATIONS: [Method; 4] = [
    Method::NOTIFICATIONS_PROGRESS,
    Method::NOTIFICATIONS_MESSAGE,
    Method::NOTIFICATIONS_CANCELLED,
    Method::NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED,
];
