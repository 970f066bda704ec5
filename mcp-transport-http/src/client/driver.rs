//! The task that works for a client.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, Aborted};
use futures_util::stream::FuturesUnordered;
use http::{HeaderValue, Method as Verb};
use mcp_client::{CallId, Closed, CredentialFingerprint, Link, Order, Outgoing};
use mcp_types::{Era, Method, Revision};
use reqwest::Url;
use tokio::sync::mpsc;
use tokio::time::Sleep;

use super::events::StreamFault;
use super::head::{self, Session};
use super::listening::{forward, listen};
use super::news::{Heard, News};
use super::post::{Post, Way};
use super::resumption::Resumption;
use super::saying::Saying;
use super::wire::Wire;

/// Does what a client wants, one request for each message, all of them in this task.
///
/// Calls run side by side. What needs no answer is sent one after the other, so that nothing overtakes what was said
/// before; and while the message that opens a session is on its way, calls wait.
pub(super) struct Driver {
    link: Link,
    wire: Arc<Wire>,
    news: News,
    heard: mpsc::Receiver<Heard>,
    requests: FuturesUnordered<Abortable<Pin<Box<dyn Future<Output = Ended> + Send>>>>,
    calls: BTreeMap<CallId, AbortHandle>,
    /// The subscriptions among them, and whose credentials they were opened with.
    subscriptions: BTreeMap<CallId, CredentialFingerprint>,
    /// Whose credentials the latest request was sent with, where they may change.
    sender: Option<CredentialFingerprint>,
    listening: Option<AbortHandle>,
    /// The messages that need no answer, and their size. Each is in a box, because the queue keeps the room of the most that
    /// it ever had.
    sayings: VecDeque<Box<Saying>>,
    sayings_bytes: usize,
    /// Whether one of them is on its way, and whether it opens the session.
    saying: Option<bool>,
    /// Calls that wait for a session to be open, or for others to end; the client limits how many there are.
    held: VecDeque<Outgoing>,
    /// Whether the message that opens the session is not accepted yet.
    is_opening: bool,
    session: Session,
    /// The legacy revision that is spoken, from the end of the handshake on.
    revision: Option<Revision>,
    /// Whether a stream is to be opened as soon as the session is.
    wants_stream: bool,
    /// Where messages to a server of HTTP+SSE go.
    old_endpoint: Option<Url>,
    alarm: Option<Pin<Box<Sleep>>>,
}

/// Which request has ended.
enum Ended {
    Call(CallId),
    Saying,
    Stream,
}

/// How many calls are on their way at a time; each may need a connection.
const MOST_REQUESTS: usize = 512;

/// How much of what was heard waits to be told.
const MOST_NEWS: usize = 64;

/// How many messages wait for the server to accept others, and how large they are, before it counts as one that asks
/// without hearing the answers.
const MOST_SAYINGS: usize = 4096;
const MOST_SAYINGS_BYTES: usize = 64 << 20;

/// How long it may take to say what was left to be said at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long the server may take to end a session.
const DELETE_TIME: Duration = Duration::from_secs(5);

impl Driver {
    /// Works for a client until it has nothing more to do.
    pub(super) async fn run(wire: Wire, link: Link) {
        let Ok(id) = link.session_id().map(|id| HeaderValue::from_str(&id)).transpose() else {
            let why = "the session to go on with is named with characters that no header can have";
            return link.closed(Closed::Lost(why.to_owned()));
        };
        let owner = link.session_owner();
        let (news, heard) = News::new(MOST_NEWS);
        let driver = Self {
            link,
            wire: Arc::new(wire),
            news,
            heard,
            requests: FuturesUnordered::new(),
            calls: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            sender: None,
            listening: None,
            sayings: VecDeque::new(),
            sayings_bytes: 0,
            saying: None,
            held: VecDeque::new(),
            is_opening: false,
            session: Session { id, age: 0, owner },
            revision: None,
            wants_stream: false,
            old_endpoint: None,
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
            // What the client wants comes before what is heard, so that answers do not pile up in it; and nothing keeps it
            // from hearing that it is time.
            tokio::select! {
                biased;
                () = alarm => {
                    self.alarm = None;
                    self.link.timeout();
                }
                order = self.link.next() => match order {
                    Some(order) => self.obey(order),
                    None => break Closed::ByClient,
                },
                Some(heard) = self.heard.recv() => if let Some(why) = self.hear(heard) {
                    break why;
                },
                Some(ended) = self.requests.next() => self.ended(ended),
            }
            if self.sayings.len() > MOST_SAYINGS || self.sayings_bytes > MOST_SAYINGS_BYTES {
                break Closed::Lost("the server takes no more messages".to_owned());
            }
        };
        self.let_go(why).await;
    }

    /// Ends everything that is open.
    async fn let_go(mut self, why: Closed) {
        // There is nobody to tell any more.
        self.heard.close();
        if why == Closed::ByClient {
            let _ = tokio::time::timeout(LAST_WORDS, self.finish_saying()).await;
        }
        drop(self.requests);
        if self.wire.options.end_session_on_close && self.session.id.is_some() && self.old_endpoint.is_none() {
            let head = head::of_end(self.revision, &self.session);
            let ending = self.wire.send(Verb::DELETE, &self.wire.url, &head, None, &self.session, &self.news);
            // Servers need not know how (405), and may have forgotten the session already.
            let _ = tokio::time::timeout(DELETE_TIME, ending).await;
        }
        self.link.closed(why);
    }

    /// Says what the client has said already.
    async fn finish_saying(&mut self) {
        self.held.clear();
        self.wants_stream = false;
        while self.saying.is_some()
            && let Some(ended) = self.requests.next().await
        {
            self.ended(ended);
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Send(outgoing) => self.send(outgoing),
            Order::Abort { call } => {
                self.abort(call);
                self.held.retain(|held| held.call != Some(call));
            }
            Order::Ready { revision } => {
                self.revision = Some(revision).filter(|revision| revision.era() == Era::Legacy);
                // Not only since 2025-03-26: servers that agree on the oldest revision at this address have it, too.
                self.wants_stream =
                    revision.era() == Era::Legacy && self.wire.options.standalone_stream && self.old_endpoint.is_none();
                self.go_on();
            }
            Order::WakeAt(at) => {
                let duration = at.saturating_duration_since(self.link.now());
                self.alarm = Some(Box::pin(tokio::time::sleep(duration)));
            }
        }
    }

    fn send(&mut self, outgoing: Outgoing) {
        if outgoing.method == Some(Method::INITIALIZE) {
            self.forget_session();
        }
        match outgoing.call {
            Some(_) => self.held.push_back(outgoing),
            None => self.say(outgoing),
        }
        self.go_on();
    }

    /// Lines up a message that needs no answer.
    fn say(&mut self, outgoing: Outgoing) {
        let head = match head::of_message(&outgoing, &self.session) {
            Ok(head) => head,
            Err(why) => return tracing::warn!(target: "mcp", why, "a message cannot be sent"),
        };
        let opens_session = outgoing.method == Some(Method::NOTIFICATIONS_INITIALIZED);
        self.is_opening |= opens_session;
        self.sayings_bytes += outgoing.message.len();
        self.sayings.push_back(Box::new(Saying {
            to: self.old_endpoint.as_ref().unwrap_or(&self.wire.url).clone(),
            head,
            body: Bytes::from(outgoing.message.into_bytes()),
            session: self.session.clone(),
            opens_session,
        }));
    }

    /// Starts whatever can be started.
    fn go_on(&mut self) {
        if self.saying.is_none()
            && let Some(saying) = self.sayings.pop_front()
        {
            self.saying = Some(saying.opens_session);
            self.sayings_bytes -= saying.body.len();
            let run = saying.run(Arc::clone(&self.wire), self.news.clone());
            self.start(async move {
                run.await;
                Ended::Saying
            });
        }
        if self.is_opening {
            return;
        }
        if std::mem::take(&mut self.wants_stream) {
            let stream =
                Resumption::new(Arc::clone(&self.wire), self.news.clone(), self.revision, self.session.clone());
            let listening = self.start(async move {
                listen(stream).await;
                Ended::Stream
            });
            self.listening = Some(listening);
        }
        while self.calls.len() < MOST_REQUESTS
            && let Some(outgoing) = self.held.pop_front()
        {
            self.call(outgoing);
        }
    }

    fn call(&mut self, outgoing: Outgoing) {
        let Some(call) = outgoing.call else { return };
        let head = match head::of_message(&outgoing, &self.session) {
            Ok(head) => head,
            Err(why) => return self.link.stream_ended(call, Some(why)),
        };
        let way = match &self.old_endpoint {
            Some(endpoint) => Way::OldServer(endpoint.clone()),
            None if outgoing.method == Some(Method::INITIALIZE) => Way::Handshake,
            None => Way::Response,
        };
        let post = Post {
            wire: Arc::clone(&self.wire),
            news: self.news.clone(),
            call,
            head,
            body: Bytes::from(outgoing.message.into_bytes()),
            revision: outgoing.revision,
            session: self.session.clone(),
            way,
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
            Ok(Ended::Saying) => {
                if self.saying.take() == Some(true) {
                    self.is_opening = false;
                }
            }
            Ok(Ended::Stream) | Err(Aborted) => {}
        }
        self.go_on();
    }

    /// Tells the client what was heard; returns why, if there is nothing to go on with.
    fn hear(&mut self, heard: Heard) -> Option<Closed> {
        match heard {
            Heard::Reply { call, message } => self.link.reply(call, &message),
            Heard::Message(message) => self.link.message(&message),
            Heard::Missed => self.link.missed_changes(),
            Heard::Status { call, status, body } => self.link.status(call, status, &body),
            Heard::Ended { call, why } => self.link.stream_ended(call, why),
            Heard::Credentials(by) => self.identified(by),
            Heard::Subscribed { call, by } => {
                if self.calls.contains_key(&call) {
                    self.subscriptions.insert(call, by);
                    self.end_foreign_subscriptions();
                }
            }
            Heard::Session { id, owner } => {
                let name = id.as_ref().and_then(|id| id.to_str().ok()).map(str::to_owned);
                self.link.set_session(name, Some(owner));
                (self.session.id, self.session.owner) = (id, Some(owner));
            }
            Heard::SessionLost { call, age, reason } => {
                let is_latest = age == self.session.age;
                if is_latest {
                    self.forget_session();
                    // Those that wait were meant for that session, too.
                    for outgoing in self.held.drain(..) {
                        self.link.session_lost(outgoing.call, false, reason);
                    }
                }
                self.link.session_lost(call, is_latest, reason);
            }
            Heard::OldServer { endpoint, mut events, owner } => {
                (self.old_endpoint, self.session.owner) = (Some(endpoint), Some(owner));
                let news = self.news.clone();
                let listening = self.start(async move {
                    let why = match forward(&mut events, &news).await {
                        Ok(_) => "the server ended its stream".to_owned(),
                        Err(StreamFault::Broken(why) | StreamFault::Unreadable(why)) => why,
                    };
                    news.tell(Heard::Unreachable(why)).await;
                    Ended::Stream
                });
                self.listening = Some(listening);
            }
            Heard::Unreachable(why) => return Some(Closed::Lost(why)),
        }
        None
    }

    /// Requests are sent with these credentials from now on: subscriptions of others end, and are opened again.
    fn identified(&mut self, by: CredentialFingerprint) {
        self.link.set_credentials(by);
        self.sender = Some(by);
        self.end_foreign_subscriptions();
    }

    fn end_foreign_subscriptions(&mut self) {
        let is_foreign = |by: &CredentialFingerprint| self.sender.is_some_and(|sender| sender != *by);
        let foreign: Vec<_> =
            self.subscriptions.iter().filter(|(_, by)| is_foreign(by)).map(|(call, _)| *call).collect();
        for call in foreign {
            self.abort(call);
            self.link.stream_ended(call, Some("the credentials changed".to_owned()));
        }
    }

    /// There is no session any more: nothing is left to be said or heard in it.
    fn forget_session(&mut self) {
        self.session = Session { id: None, age: self.session.age + 1, owner: None };
        self.old_endpoint = None;
        self.sayings.clear();
        self.sayings_bytes = 0;
        self.is_opening = self.saying == Some(true);
        self.wants_stream = false;
        if let Some(listening) = self.listening.take() {
            listening.abort();
        }
    }
}
