//! The task that drives a client's transport.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, Aborted};
use futures_util::stream::FuturesUnordered;
use http::{HeaderValue, Method as Verb};
use mcp_client::{CallId, Closed, CredentialFingerprint, OutgoingMessage, TransportCommand, TransportHandle};
use mcp_types::{Era, Method, Revision};
use reqwest::Url;
use tokio::sync::mpsc;
use tokio::time::Sleep;

use super::driver_event::{DriverEvent, DriverHandle};
use super::request::event_reader::StreamError;
use super::request::headers::{self, Session};
use super::request::one_way_post::OneWayPost;
use super::request::post::{Post, PostKind};
use super::request::resumable_stream::ResumableStream;
use super::request::sender::RequestSender;
use super::request::standalone_stream::{forward, listen};

/// Executes the commands of a client, with one HTTP request per message, all in one task.
///
/// Calls run concurrently. Notifications and responses are sent one after the other, in order; while
/// `notifications/initialized` is being sent, calls wait.
pub(crate) struct Driver {
    client: TransportHandle,
    sender: Arc<RequestSender>,
    handle: DriverHandle,
    events: mpsc::Receiver<DriverEvent>,
    requests: FuturesUnordered<Abortable<Pin<Box<dyn Future<Output = Ended> + Send>>>>,
    calls: BTreeMap<CallId, AbortHandle>,
    /// The subscriptions among the calls, with the credentials that they were opened with.
    subscriptions: BTreeMap<CallId, CredentialFingerprint>,
    /// The credentials of the latest request, if there is an authorizer.
    credentials: Option<CredentialFingerprint>,
    listening: Option<AbortHandle>,
    /// Queued notifications and responses, and their size. Each is in a box, because the queue keeps the room of the most that
    /// it ever had.
    one_way_posts: VecDeque<Box<OneWayPost>>,
    one_way_bytes: usize,
    /// Whether one of them is being sent, and whether it opens the session.
    one_way_in_flight: Option<bool>,
    /// Calls that wait for the session to be open or for others to end. The client limits their number.
    queued_calls: VecDeque<OutgoingMessage>,
    /// Whether the message that opens the session is not accepted yet.
    is_opening: bool,
    session: Session,
    /// The negotiated legacy revision.
    revision: Option<Revision>,
    /// Whether to open a GET stream as soon as the session is open.
    wants_stream: bool,
    /// The message endpoint of an HTTP+SSE server.
    sse_endpoint: Option<Url>,
    alarm: Option<Pin<Box<Sleep>>>,
}

/// A request that has ended.
enum Ended {
    Call(CallId),
    OneWay,
    Stream,
}

/// The maximum number of concurrent calls, as each may need a connection.
const MAX_CONCURRENT_CALLS: usize = 512;

/// The capacity of the channel from requests to the driver.
const DRIVER_EVENT_BUFFER: usize = 64;

/// The maximum number and size of queued notifications and responses. Beyond it the server counts as one that sends
/// requests without accepting the responses.
const MAX_ONE_WAY_POSTS: usize = 4096;
const MAX_ONE_WAY_BYTES: usize = 64 << 20;

/// How long queued notifications and responses may take when the client is closed.
const FINAL_POSTS_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the server may take to end a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

impl Driver {
    /// Runs until the client is closed.
    pub(crate) async fn run(sender: RequestSender, client: TransportHandle) {
        let Ok(id) = client.session_id().map(|id| HeaderValue::from_str(&id)).transpose() else {
            let why = "the id of the session to resume has characters that are not allowed in a header";
            return client.close(Closed::Disconnected(why.to_owned()));
        };
        let owner = client.session_owner();
        let (handle, events) = DriverHandle::new(DRIVER_EVENT_BUFFER);
        let driver = Self {
            client,
            sender: Arc::new(sender),
            handle,
            events,
            requests: FuturesUnordered::new(),
            calls: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            credentials: None,
            listening: None,
            one_way_posts: VecDeque::new(),
            one_way_bytes: 0,
            one_way_in_flight: None,
            queued_calls: VecDeque::new(),
            is_opening: false,
            session: Session { id, generation: 0, owner },
            revision: None,
            wants_stream: false,
            sse_endpoint: None,
            alarm: None,
        };
        driver.work().await;
    }

    async fn work(mut self) {
        let why = loop {
            let alarm = async {
                match &mut self.alarm {
                    Some(alarm) => alarm.await,
                    None => std::future::pending().await,
                }
            };
            // Timers come first, so that nothing delays them. Commands come before events, so that responses do not pile
            // up in the client.
            tokio::select! {
                biased;
                () = alarm => {
                    self.alarm = None;
                    self.client.handle_timeout();
                }
                command = self.client.next_command() => match command {
                    Some(command) => self.execute(command),
                    None => break Closed::ByClient,
                },
                Some(event) = self.events.recv() => if let Some(why) = self.handle_event(event) {
                    break why;
                },
                Some(ended) = self.requests.next() => self.ended(ended),
            }
            if self.one_way_posts.len() > MAX_ONE_WAY_POSTS || self.one_way_bytes > MAX_ONE_WAY_BYTES {
                break Closed::Disconnected("the server does not accept messages: too many are queued".to_owned());
            }
        };
        self.shut_down(why).await;
    }

    /// Sends queued messages, and ends the session.
    async fn shut_down(mut self, why: Closed) {
        // Nothing is reported to the client any more.
        self.events.close();
        if why == Closed::ByClient {
            let _ = tokio::time::timeout(FINAL_POSTS_TIMEOUT, self.finish_one_way_posts()).await;
        }
        drop(self.requests);
        if self.sender.options.end_session_on_close && self.session.id.is_some() && self.sse_endpoint.is_none() {
            let head = headers::for_delete(self.revision, &self.session);
            let ending = self.sender.send(Verb::DELETE, &self.sender.url, &head, None, &self.session, &self.handle);
            // Servers may not support DELETE (405), or may have lost the session.
            let _ = tokio::time::timeout(DELETE_TIMEOUT, ending).await;
        }
        self.client.close(why);
    }

    /// Sends the queued notifications and responses.
    async fn finish_one_way_posts(&mut self) {
        self.queued_calls.clear();
        self.wants_stream = false;
        while self.one_way_in_flight.is_some()
            && let Some(ended) = self.requests.next().await
        {
            self.ended(ended);
        }
    }

    fn execute(&mut self, command: TransportCommand) {
        match command {
            TransportCommand::Send(outgoing) => self.send(outgoing),
            TransportCommand::Abort { call } => {
                self.abort(call);
                self.queued_calls.retain(|queued_calls| queued_calls.call != Some(call));
            }
            TransportCommand::Ready { revision } => {
                self.revision = Some(revision).filter(|revision| revision.era() == Era::Legacy);
                // Also for 2024-11-05: servers that negotiate it over Streamable HTTP may have the stream, too.
                self.wants_stream = revision.era() == Era::Legacy
                    && self.sender.options.standalone_stream
                    && self.sse_endpoint.is_none();
                self.start_pending();
            }
            TransportCommand::WakeAt(at) => {
                let duration = at.duration_since(self.client.now());
                self.alarm = Some(Box::pin(tokio::time::sleep(duration)));
            }
        }
    }

    fn send(&mut self, outgoing: OutgoingMessage) {
        if outgoing.method == Some(Method::INITIALIZE) {
            self.forget_session();
        }
        match outgoing.call {
            Some(_) => self.queued_calls.push_back(outgoing),
            None => self.queue_one_way(outgoing),
        }
        self.start_pending();
    }

    /// Queues a notification or response.
    fn queue_one_way(&mut self, outgoing: OutgoingMessage) {
        let head = match headers::for_message(&outgoing, &self.session) {
            Ok(head) => head,
            Err(why) => return tracing::warn!(target: "mcp", why, "message cannot be sent"),
        };
        let opens_session = outgoing.method == Some(Method::NOTIFICATIONS_INITIALIZED);
        self.is_opening |= opens_session;
        self.one_way_bytes += outgoing.message.len();
        self.one_way_posts.push_back(Box::new(OneWayPost {
            to: self.sse_endpoint.as_ref().unwrap_or(&self.sender.url).clone(),
            head,
            body: Bytes::from(outgoing.message.into_bytes()),
            session: self.session.clone(),
            opens_session,
        }));
    }

    /// Starts the requests that can be started.
    fn start_pending(&mut self) {
        if self.one_way_in_flight.is_none()
            && let Some(post) = self.one_way_posts.pop_front()
        {
            self.one_way_in_flight = Some(post.opens_session);
            self.one_way_bytes -= post.body.len();
            let run = post.run(Arc::clone(&self.sender), self.handle.clone());
            self.start(async move {
                run.await;
                Ended::OneWay
            });
        }
        if self.is_opening {
            return;
        }
        if std::mem::take(&mut self.wants_stream) {
            let stream = ResumableStream::new(
                Arc::clone(&self.sender),
                self.handle.clone(),
                self.revision,
                self.session.clone(),
            );
            let listening = self.start(async move {
                listen(stream).await;
                Ended::Stream
            });
            self.listening = Some(listening);
        }
        while self.calls.len() < MAX_CONCURRENT_CALLS
            && let Some(outgoing) = self.queued_calls.pop_front()
        {
            self.call(outgoing);
        }
    }

    fn call(&mut self, outgoing: OutgoingMessage) {
        let Some(call) = outgoing.call else { return };
        let head = match headers::for_message(&outgoing, &self.session) {
            Ok(head) => head,
            Err(why) => return self.client.handle_stream_ended(call, Some(why)),
        };
        let kind = match &self.sse_endpoint {
            Some(endpoint) => PostKind::LegacySse(endpoint.clone()),
            None if outgoing.method == Some(Method::INITIALIZE) => PostKind::Handshake,
            None => PostKind::Call,
        };
        let post = Post {
            sender: Arc::clone(&self.sender),
            driver: self.handle.clone(),
            call,
            head,
            body: Bytes::from(outgoing.message.into_bytes()),
            revision: outgoing.revision,
            session: self.session.clone(),
            kind,
            subscribes: outgoing.method == Some(Method::SUBSCRIPTIONS_LISTEN),
        };
        let handle = self.start(async move {
            post.run().await;
            Ended::Call(call)
        });
        self.calls.insert(call, handle);
    }

    fn start(&self, work: impl Future<Output = Ended> + Send + 'static) -> AbortHandle {
        let (handle, registration) = AbortHandle::new_pair();
        self.requests.push(Abortable::new(Box::pin(work), registration));
        handle
    }

    fn abort(&mut self, call: CallId) {
        self.subscriptions.remove(&call);
        if let Some(handle) = self.calls.remove(&call) {
            handle.abort();
        }
    }

    fn ended(&mut self, ended: Result<Ended, Aborted>) {
        match ended {
            Ok(Ended::Call(call)) => {
                self.calls.remove(&call);
                self.subscriptions.remove(&call);
            }
            Ok(Ended::OneWay) => {
                if self.one_way_in_flight.take() == Some(true) {
                    self.is_opening = false;
                }
            }
            Ok(Ended::Stream) | Err(Aborted) => {}
        }
        self.start_pending();
    }

    /// Passes an event on to the client. Returns the reason if the connection is lost.
    fn handle_event(&mut self, event: DriverEvent) -> Option<Closed> {
        match event {
            DriverEvent::Reply { call, message } => self.client.handle_reply(call, &message),
            DriverEvent::Message(message) => self.client.handle_message(&message),
            DriverEvent::ChangesMissed => self.client.handle_missed_changes(),
            DriverEvent::Status { call, status, body } => self.client.handle_status(call, status, &body),
            DriverEvent::Ended { call, why } => self.client.handle_stream_ended(call, why),
            DriverEvent::Credentials(by) => self.identified(by),
            DriverEvent::Subscribed { call, by } => {
                if self.calls.contains_key(&call) {
                    self.subscriptions.insert(call, by);
                    self.end_foreign_subscriptions();
                }
            }
            DriverEvent::Session { id, owner } => {
                let name = id.as_ref().and_then(|id| id.to_str().ok()).map(str::to_owned);
                self.client.set_session(name, Some(owner));
                (self.session.id, self.session.owner) = (id, Some(owner));
            }
            DriverEvent::SessionLost { call, generation, reason } => {
                let is_latest = generation == self.session.generation;
                if is_latest {
                    self.forget_session();
                    // Queued calls were meant for that session, too.
                    for outgoing in self.queued_calls.drain(..) {
                        self.client.handle_session_lost(outgoing.call, false, reason);
                    }
                }
                self.client.handle_session_lost(call, is_latest, reason);
            }
            DriverEvent::LegacySse { endpoint, mut events, owner } => {
                (self.sse_endpoint, self.session.owner) = (Some(endpoint), Some(owner));
                let driver = self.handle.clone();
                let listening = self.start(async move {
                    let why = match forward(&mut events, &driver).await {
                        Ok(_) => "the server ended its stream".to_owned(),
                        Err(StreamError::Broken(why) | StreamError::Unreadable(why)) => why,
                    };
                    driver.send(DriverEvent::Unreachable(why)).await;
                    Ended::Stream
                });
                self.listening = Some(listening);
            }
            DriverEvent::Unreachable(why) => return Some(Closed::Disconnected(why)),
        }
        None
    }

    /// Records the credentials of a request. Subscriptions with other credentials end, and are opened again.
    fn identified(&mut self, by: CredentialFingerprint) {
        self.client.set_credentials(by);
        self.credentials = Some(by);
        self.end_foreign_subscriptions();
    }

    fn end_foreign_subscriptions(&mut self) {
        let is_foreign = |by: &CredentialFingerprint| self.credentials.is_some_and(|credentials| credentials != *by);
        let foreign: Vec<_> =
            self.subscriptions.iter().filter(|(_, by)| is_foreign(by)).map(|(call, _)| *call).collect();
        for call in foreign {
            self.abort(call);
            self.client.handle_stream_ended(call, Some("the credentials changed".to_owned()));
        }
    }

    /// Forgets the session, and everything queued or open in it.
    fn forget_session(&mut self) {
        self.session = Session { id: None, generation: self.session.generation + 1, owner: None };
        self.sse_endpoint = None;
        self.one_way_posts.clear();
        self.one_way_bytes = 0;
        self.is_opening = self.one_way_in_flight == Some(true);
        self.wants_stream = false;
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
    }
}
