//! Requests that the kernel responds to; all others are for the application.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcp_types::jsonrpc::{EncodedMessage, Incoming, Message, Payload, PayloadBuf, Request};
use mcp_types::{
    DiscoverResult, EmptyResult, Era, ErrorObject, InitializeRequestParams, Method, NotificationMeta, RawObject,
    RequestId, ResultBody, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequestParams, UnsubscribeRequestParams,
};
use serde::de::DeserializeOwned;

use super::admission::{Refusal, check_extension, is_modern};
use super::commands::Delivery;
use super::connection::Connection;
use super::envelope::RequestEnvelope;
use super::event::Event;
use super::in_flight::{Entry, Kind, Responder};
use super::lifecycle::{Lifecycle, SecondHandshake};
use super::outbox::Priority;
use super::scope::{Principal, RequestScope};
use super::transmit::{Failure, Route};
use crate::RequestKey;
use crate::errors::PeerMisbehaved;

impl Connection {
    /// Responds to a request that was admitted, or passes it to the application.
    pub(super) fn dispatch(
        &mut self,
        scope: Arc<RequestScope>,
        params: PayloadBuf,
        batch: Option<RequestKey>,
    ) -> Result<(), Refusal> {
        if scope.method == Method::PING {
            self.respond_now(&scope, batch, EmptyResult::default());
        } else if !BUILTIN_METHODS.contains(&scope.method) {
            self.open_request(scope, params, batch, false)?;
        } else if self.config.intercept_builtin.load(Ordering::Relaxed) {
            self.open_request(scope, params, batch, true)?;
        } else {
            self.serve(&scope, &params, batch)?;
        }
        Ok(())
    }

    /// Lets the kernel respond to a request that it passed to the application because of
    /// [`ServerConfig::intercept_builtin`](super::ServerConfig::intercept_builtin). Any other request gets the error
    /// "method not found".
    pub fn respond_builtin(&mut self, responder: Responder) -> Delivery {
        let key = responder.key();
        let Some(Entry { scope, batch, held, .. }) = self.in_flight.close(key) else {
            return Delivery::NotSent;
        };
        match held.map(|params| self.serve(&scope, &params, batch)) {
            Some(Ok(())) => {}
            Some(Err(refusal)) => self.refuse_request(key, batch, Some(&scope.id), scope.revision, *refusal),
            None => {
                let error = ErrorObject::method_not_found("the method is not supported");
                self.queue_error(key, batch, Some(&scope.id), scope.revision, &error, Failure::Refused);
            }
        }
        self.start_queued();
        Delivery::Queued
    }

    /// Responds to a request that is built in.
    pub(super) fn serve(
        &mut self,
        scope: &Arc<RequestScope>,
        params: &PayloadBuf,
        batch: Option<RequestKey>,
    ) -> Result<(), Refusal> {
        match scope.method.as_str() {
            "server/discover" => {
                let mut result =
                    DiscoverResult::new(self.config.versions(scope.era()), self.config.declared(scope.revision));
                result.instructions.clone_from(&self.config.instructions);
                self.respond_now(scope, batch, result);
            }
            "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" if self.lifecycle.is_stateless() => {
                return Err(PeerMisbehaved::NeedsSession(scope.method.clone()).into());
            }
            "logging/setLevel" => {
                let SetLevelRequestParams { level, .. } = decode(params)?;
                self.log_level = level;
                self.emit(Event::LogLevel(level));
                self.respond_now(scope, batch, EmptyResult::default());
            }
            "resources/subscribe" => {
                let SubscribeRequestParams { uri, .. } = decode(params)?;
                self.check_uri(&uri)?;
                let is_new = !self.rare.subscriptions.contains(&uri);
                let bytes = self.rare.subscriptions.iter().map(String::len).sum::<usize>() + uri.len();
                let limits = &self.config.limits;
                let is_full =
                    self.rare.subscriptions.len() >= limits.max_subscriptions || bytes > limits.max_subscription_bytes;
                if is_new && is_full {
                    return Err(PeerMisbehaved::TooManySubscriptions.into());
                }
                if is_new {
                    self.rare.make_mut().subscriptions.insert(uri.clone());
                    self.emit(Event::Subscription { uri, active: true });
                }
                self.respond_now(scope, batch, EmptyResult::default());
            }
            "resources/unsubscribe" => {
                let UnsubscribeRequestParams { uri, .. } = decode(params)?;
                if self.rare.get_mut().is_some_and(|rare| rare.subscriptions.remove(&uri)) {
                    self.emit(Event::Subscription { uri, active: false });
                }
                self.respond_now(scope, batch, EmptyResult::default());
            }
            "subscriptions/listen" => self.listen(scope, params)?,
            _ => return Err(PeerMisbehaved::UnknownMethod(scope.method.clone()).into()),
        }
        Ok(())
    }

    /// Returns whether a message is a second `initialize` for which the driver has to replace this connection by a new
    /// one: several clients share it ([`SecondHandshake::Restart`]), no request is in flight, and the message is valid.
    #[must_use]
    pub fn is_restart(&self, incoming: &Incoming<'_>) -> bool {
        let Incoming::Single(Message::Request(request)) = incoming else { return false };
        let is_second = matches!(self.lifecycle, Lifecycle::Negotiated(_) | Lifecycle::Ready(_));
        let rare = &self.rare;
        let is_idle =
            self.in_flight.is_empty() && rare.queued.is_empty() && rare.batches.is_empty() && rare.calls.len() == 0;
        self.second_handshake == SecondHandshake::Restart
            && request.method == Method::INITIALIZE
            && !is_modern(request)
            && is_second
            && is_idle
            && self.check_id(request).is_ok()
            && RequestEnvelope::read(request, &self.config.limits).is_ok()
            && self.read_initialize(request).is_ok()
    }

    /// Responds to `initialize`. It is never in flight, so that it cannot be cancelled, and its id cannot be a
    /// duplicate.
    // B-6
    pub(super) fn initialize(
        &mut self,
        key: RequestKey,
        request: &Request<'_>,
        principal: Option<&Principal>,
    ) -> Result<(), Refusal> {
        let (decoded, params) = self.read_initialize(request)?;
        if self.intercept_handshake(key, request, &decoded, principal)? {
            return Ok(());
        }
        self.complete_handshake(key, &request.id, decoded, || params.to_object(), principal.is_some())
    }

    /// Responds to `initialize`, whose parameters are kept as text. `has_principal` tells whether its sender is known.
    pub(super) fn complete_handshake(
        &mut self,
        key: RequestKey,
        id: &RequestId,
        params: InitializeRequestParams,
        text: impl FnOnce() -> RawObject,
        has_principal: bool,
    ) -> Result<(), Refusal> {
        let config = Arc::clone(&self.config);
        let mut result = self.lifecycle.initialize(params, text, &config, self.second_handshake)?;
        if config.task_list_needs_principal && !has_principal {
            result.capabilities.tasks.iter_mut().for_each(|tasks| tasks.list = None);
        }
        if let Some(revision) = result.protocol_version.revision() {
            let _ = self.restrict(&mut result, revision);
        }
        if let Ok(message) = EncodedMessage::result(id, &result) {
            self.queue_response(key, None, message, None);
        }
        Ok(())
    }

    /// Reads the parameters of `initialize`, and returns them with their text.
    fn read_initialize<'a, 'b>(
        &self,
        request: &'a Request<'b>,
    ) -> Result<(InitializeRequestParams, &'a Payload<'b>), Refusal> {
        let config = &self.config;
        // V-9: a modern server names its versions in every error.
        let malformed = |fault: &dyn std::fmt::Display| {
            let versions = config.versions(Era::Modern);
            let serves_legacy = config.serves(Era::Legacy);
            invalid(if serves_legacy { fault.to_string() } else { format!("{fault}; supported: {versions:?}") })
        };
        let params = request.params.as_ref().ok_or_else(|| malformed(&"missing field `protocolVersion`"))?;
        let limit = config.limits.max_initialize_bytes;
        if params.as_str().len() > limit {
            return Err(malformed(&format_args!("more than {limit} bytes (`max_initialize_bytes`)")));
        }
        Ok((params.decode().map_err(|fault| malformed(&fault))?, params))
    }

    /// Responds to a request that was not in flight.
    fn respond_now(&mut self, scope: &RequestScope, batch: Option<RequestKey>, mut result: impl ResultBody) {
        self.complete(&mut result, scope.facts, scope.revision);
        let _ = self.restrict(&mut result, scope.revision);
        if let Some(message) = self.write(&scope.id, &mut result, scope.revision) {
            self.queue_response(scope.key, batch, message, None);
        }
    }

    /// Opens the listen stream of a `subscriptions/listen` that the kernel passed to the application because of
    /// [`ServerConfig::intercept_builtin`](super::ServerConfig::intercept_builtin), with a filter that the application has
    /// restricted. Any other request gets the error "method not found".
    pub fn respond_listening(&mut self, responder: Responder, filter: SubscriptionFilter) -> Delivery {
        let is_listen =
            self.in_flight.get(responder.key()).is_some_and(|entry| entry.scope.method == Method::SUBSCRIPTIONS_LISTEN);
        if !is_listen {
            return self.respond_builtin(responder);
        }
        let key = responder.key();
        let Some(Entry { scope, batch, .. }) = self.in_flight.close(key) else { return Delivery::NotSent };
        if let Err(refusal) = self.open_listen_stream(&scope, filter) {
            self.refuse_request(key, batch, Some(&scope.id), scope.revision, *refusal);
        }
        self.start_queued();
        Delivery::Queued
    }

    fn listen(&mut self, scope: &Arc<RequestScope>, params: &PayloadBuf) -> Result<(), Refusal> {
        let SubscriptionsListenRequestParams { notifications, .. } = decode(params)?;
        self.open_listen_stream(scope, notifications)
    }

    /// Opens a listen stream. Its first message is the acknowledgement, with the filter that the server accepts.
    // L-3, L-5
    fn open_listen_stream(&mut self, scope: &Arc<RequestScope>, asked: SubscriptionFilter) -> Result<(), Refusal> {
        let limits = &self.config.limits;
        if self.in_flight.listening() >= limits.max_listen_streams {
            return Err(PeerMisbehaved::TooManyListenStreams.into());
        }
        let most = limits.max_uris_per_listen_stream;
        if asked.resource_subscriptions.as_ref().is_some_and(|uris| uris.len() > most) {
            return Err(invalid(format!(
                "`resourceSubscriptions`: more than {most} URIs (`max_uris_per_listen_stream`)"
            )));
        }
        for uri in asked.resource_subscriptions.iter().flatten() {
            self.check_uri(uri)?;
        }
        let filter = self.honoured(asked, scope)?;
        let entry =
            Entry { scope: Arc::clone(scope), last_progress: None, batch: None, kind: Kind::Listening, held: None };
        let _ = self.in_flight.open(scope.key, entry);
        self.listen_streams.get_or_insert_default().insert(scope.key, &filter);
        let mut params = SubscriptionsAcknowledgedNotificationParams::new(filter.clone());
        params.meta = Some(NotificationMeta::default().subscription_id(scope.id.clone()));
        let method = Method::NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED;
        if let Ok(message) = EncodedMessage::notification(&method, Some(&params)) {
            self.send(Route::Listen(scope.key), message, Priority::Required);
        }
        self.emit(Event::Listening { scope: Arc::clone(scope), filter });
        if self.draining {
            let _ = self.end_listening(scope.key);
        }
        Ok(())
    }

    /// Removes a listen stream, and with the last one the index.
    pub(super) fn remove_listen_stream(&mut self, key: RequestKey) {
        if let Some(listeners) = &mut self.listen_streams {
            listeners.remove(key);
        }
        self.listen_streams.take_if(|listeners| listeners.is_empty());
    }

    /// Checks the length of a URI, which is stored as long as it is subscribed to.
    fn check_uri(&self, uri: &str) -> Result<(), Refusal> {
        let limit = self.config.limits.max_uri_bytes;
        if uri.len() > limit {
            Err(invalid(format!("`uri`: more than {limit} bytes (`max_uri_bytes`)")))
        } else {
            Ok(())
        }
    }

    /// Returns the part of a filter that the server supports.
    ///
    /// Members of an extension need the client's declaration, and unknown members are removed.
    // L-5, L-17, L-19
    fn honoured(&self, asked: SubscriptionFilter, scope: &RequestScope) -> Result<SubscriptionFilter, Refusal> {
        let has = &self.config.capabilities;
        let both =
            |asked: Option<bool>, offered: Option<bool>| (asked == Some(true) && offered == Some(true)).then_some(true);
        let resources = has.resources.as_ref();
        let mut filter = SubscriptionFilter::default();
        filter.tools_list_changed = both(asked.tools_list_changed, has.tools.as_ref().and_then(|has| has.list_changed));
        filter.prompts_list_changed =
            both(asked.prompts_list_changed, has.prompts.as_ref().and_then(|has| has.list_changed));
        filter.resources_list_changed = both(asked.resources_list_changed, resources.and_then(|has| has.list_changed));
        if resources.is_some_and(|has| has.subscribe == Some(true)) {
            filter.resource_subscriptions = asked.resource_subscriptions;
        }
        for (name, value) in asked.extra {
            let Some(extension) = self.config.extension_of_filter(&name) else { continue };
            check_extension(scope.capabilities(), extension)?;
            filter.extra.insert(name, value);
        }
        Ok(filter)
    }
}

/// The methods that the kernel implements, apart from `initialize` and `ping`.
const BUILTIN_METHODS: [Method; 5] = [
    Method::SERVER_DISCOVER,
    Method::LOGGING_SET_LEVEL,
    Method::RESOURCES_SUBSCRIBE,
    Method::RESOURCES_UNSUBSCRIBE,
    Method::SUBSCRIPTIONS_LISTEN,
];

fn decode<T: DeserializeOwned>(params: &PayloadBuf) -> Result<T, Refusal> {
    params.decode().map_err(|fault| invalid(fault.to_string()))
}

fn invalid(reason: impl Into<Cow<'static, str>>) -> Refusal {
    PeerMisbehaved::InvalidParams(reason.into()).into()
}
