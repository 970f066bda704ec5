//! The test plays the server, message by message, on a clock that goes when it is told to.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::task::noop_waker;
use mcp_client::types::{Revision, SubscriptionFilter};
use mcp_client::{
    CallHeaders, CallId, Change, Client, ClientBuilder, CloseReason, Error, Subscription, Time, Transport,
    TransportCommand, TransportHandle, TransportKind,
};
use serde_json::{Value, json};

pub(crate) const KINDS: [TransportKind; 2] = [TransportKind::Pipe, TransportKind::RequestPerCall];

/// Something under way, which is only looked at again after it was woken: a wake that is missed is a test that fails.
pub(crate) struct Task<T> {
    future: Option<Pin<Box<dyn Future<Output = T>>>>,
    woken: Arc<Woken>,
}

pub(crate) struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<T> Task<T> {
    /// Starts, and goes on until there is something to wait for.
    pub(crate) fn start(future: impl IntoFuture<Output = T, IntoFuture: 'static>) -> (Self, Option<T>) {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let mut task = Self { future: Some(Box::pin(future.into_future())), woken };
        let outcome = task.look();
        (task, outcome)
    }

    /// Starts something that has to wait.
    pub(crate) fn new(future: impl IntoFuture<Output = T, IntoFuture: 'static>) -> Self {
        let (task, outcome) = Self::start(future);
        assert!(outcome.is_none(), "it did not wait");
        task
    }

    /// Goes on, as far as it can.
    pub(crate) fn look(&mut self) -> Option<T> {
        if !self.woken.0.swap(false, Ordering::Relaxed) {
            return None;
        }
        let waker = Waker::from(Arc::clone(&self.woken));
        let future = self.future.as_mut().expect("it is over");
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => None,
            Poll::Ready(outcome) => {
                self.future = None;
                Some(outcome)
            }
        }
    }

    #[track_caller]
    pub(crate) fn done(&mut self) -> T {
        self.look().expect("it still waits")
    }

    #[track_caller]
    pub(crate) fn waits(&mut self) {
        assert!(self.look().is_none(), "it does not wait");
    }

    /// How many know how to wake this, besides itself.
    pub(crate) fn wakers(&self) -> usize {
        Arc::strong_count(&self.woken) - 1
    }

    pub(crate) fn drop_future(&mut self) {
        self.future = None;
    }
}

/// What a future that ends at once comes to.
#[track_caller]
pub(crate) fn now<T>(future: impl IntoFuture<Output = T, IntoFuture: 'static>) -> T {
    Task::start(future).1.expect("it waits")
}

/// A clock that goes when it is told to.
#[derive(Clone)]
struct Clock(Arc<Mutex<Time>>);

impl Clock {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Time::EPOCH)))
    }

    fn now(&self) -> Time {
        *self.0.lock().unwrap()
    }
}

/// A transport that only hands its link over.
struct HandOver {
    kind: TransportKind,
    clock: Clock,
    handle: Arc<Mutex<Option<TransportHandle>>>,
}

impl Transport for HandOver {
    fn kind(&self) -> TransportKind {
        self.kind
    }

    fn clock(&self) -> mcp_client::Clock {
        let clock = self.clock.clone();
        Arc::new(move || clock.now())
    }

    fn start(self, handle: TransportHandle) {
        *self.handle.lock().unwrap() = Some(handle);
    }
}

/// The server's end, played by the test.
pub(crate) struct Scene {
    pub(crate) handle: TransportHandle,
    kind: TransportKind,
    clock: Clock,
    commands: VecDeque<TransportCommand>,
    wake_at: Option<Time>,
    is_over: bool,
}

/// A request of the client.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) call: CallId,
    pub(crate) id: Value,
    pub(crate) params: Value,
    pub(crate) headers: CallHeaders,
    pub(crate) revision: Option<Revision>,
    pub(crate) text: String,
}

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1.0")
}

/// What a modern server says about itself.
pub(crate) fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
        "capabilities": { "tools": { "listChanged": true }, "resources": { "subscribe": true } },
    })
}

/// What a legacy server says about itself.
pub(crate) fn initialized(version: &str) -> Value {
    json!({
        "protocolVersion": version, "serverInfo": { "name": "old", "version": "1" }, "instructions": "Be kind",
        "capabilities": {
            "tools": { "listChanged": true }, "resources": { "subscribe": true, "listChanged": true }, "logging": {},
        },
    })
}

/// A result of a tool.
pub(crate) fn said(text: &str) -> Value {
    json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] })
}

impl Scene {
    /// Connects, and plays nothing yet.
    pub(crate) fn open(kind: TransportKind, builder: ClientBuilder) -> (Task<Result<Client, Error>>, Self) {
        Self::open_after(kind, builder, Duration::ZERO)
    }

    /// Connects after a while.
    pub(crate) fn open_after(
        kind: TransportKind,
        builder: ClientBuilder,
        wait: Duration,
    ) -> (Task<Result<Client, Error>>, Self) {
        let (task, connected, scene) = Self::begin(kind, builder, wait);
        assert!(connected.is_none(), "nothing was asked");
        (task, scene)
    }

    /// Connects a client that knows enough to begin at once.
    pub(crate) fn ready(kind: TransportKind, builder: ClientBuilder) -> (Client, Self) {
        let (_, connected, scene) = Self::begin(kind, builder, Duration::ZERO);
        (connected.expect("it has to ask").unwrap(), scene)
    }

    #[expect(clippy::type_complexity, reason = "both of those who call it take it apart")]
    fn begin(
        kind: TransportKind,
        builder: ClientBuilder,
        wait: Duration,
    ) -> (Task<Result<Client, Error>>, Option<Result<Client, Error>>, Self) {
        let (clock, handle) = (Clock::new(), Arc::new(Mutex::new(None)));
        *clock.0.lock().unwrap() += wait;
        let transport = HandOver { kind, clock: clock.clone(), handle: Arc::clone(&handle) };
        let (task, connected) = Task::start(builder.connect(transport));
        let handle = handle.lock().unwrap().take().unwrap();
        (task, connected, Self { handle, kind, clock, commands: VecDeque::new(), wake_at: None, is_over: false })
    }

    /// Connects as a modern server.
    pub(crate) fn modern(kind: TransportKind, builder: ClientBuilder) -> (Client, Self) {
        let (mut connecting, mut scene) = Self::open(kind, builder);
        let probe = scene.request("server/discover");
        scene.answer(&probe, discovered());
        (connecting.done().unwrap(), scene)
    }

    /// Connects as a legacy server.
    pub(crate) fn legacy(kind: TransportKind, builder: ClientBuilder) -> (Client, Self) {
        let builder = builder.mode(mcp_client::Mode::Legacy);
        let (mut connecting, mut scene) = Self::open(kind, builder);
        scene.shake_hands("2025-11-25");
        (connecting.done().unwrap(), scene)
    }

    pub(crate) fn shake_hands(&mut self, version: &str) {
        let initialize = self.request("initialize");
        self.answer(&initialize, initialized(version));
        self.notification("notifications/initialized");
        self.commands();
    }

    /// Takes orders until there are none.
    pub(crate) fn commands(&mut self) {
        let waker = noop_waker();
        loop {
            match self.handle.poll_command(&mut Context::from_waker(&waker)) {
                Poll::Ready(Some(TransportCommand::WakeAt(at))) => self.wake_at = Some(at),
                Poll::Ready(Some(TransportCommand::Ready { .. })) => {}
                Poll::Ready(Some(command)) => self.commands.push_back(command),
                Poll::Ready(None) => {
                    self.is_over = true;
                    return;
                }
                Poll::Pending => return,
            }
        }
    }

    /// Takes orders, and returns whether something that is done then wakes the transport.
    pub(crate) fn is_woken_by<T>(&mut self, work: impl FnOnce(&TransportHandle) -> T) -> (bool, T) {
        self.commands();
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&woken));
        assert!(self.handle.poll_command(&mut Context::from_waker(&waker)).is_pending());
        let done = work(&self.handle);
        (woken.0.load(Ordering::Relaxed), done)
    }

    #[track_caller]
    fn next(&mut self) -> TransportCommand {
        self.commands();
        self.commands.pop_front().expect("the client sends nothing")
    }

    /// The next message, which is a request.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str) -> Request {
        let command = self.next();
        let TransportCommand::Send(outgoing) = command else { panic!("{method} is due, not {command:?}") };
        let message: Value = serde_json::from_slice(&outgoing.message).unwrap();
        assert_eq!(message["method"], method, "{message}");
        Request {
            call: outgoing.call.expect("a request has a call"),
            id: message["id"].clone(),
            params: message["params"].clone(),
            headers: outgoing.headers,
            revision: outgoing.revision,
            text: String::from_utf8(outgoing.message.into_bytes()).unwrap(),
        }
    }

    /// The next message, which is a notification; returns its parameters.
    #[track_caller]
    pub(crate) fn notification(&mut self, method: &str) -> Value {
        let message = self.message();
        assert_eq!(message["method"], method, "{message}");
        assert_eq!(message.get("id"), None);
        message["params"].clone()
    }

    /// The next message, whatever it is.
    #[track_caller]
    pub(crate) fn message(&mut self) -> Value {
        let command = self.next();
        let TransportCommand::Send(outgoing) = command else { panic!("not a message: {command:?}") };
        serde_json::from_slice(&outgoing.message).unwrap()
    }

    /// The client gives a call up, in the way of the transport and the era.
    #[track_caller]
    pub(crate) fn given_up(&mut self, request: &Request) {
        let is_modern = request.revision == Some(Revision::V2026_07_28);
        if self.kind == TransportKind::Pipe || !is_modern {
            assert_eq!(self.notification("notifications/cancelled")["requestId"], request.id);
        }
        if self.kind == TransportKind::RequestPerCall {
            let command = self.next();
            assert!(matches!(command, TransportCommand::Abort { call } if call == request.call), "{command:?}");
        }
    }

    /// The client has nothing to say.
    #[track_caller]
    pub(crate) fn silence(&mut self) {
        self.commands();
        assert!(self.commands.is_empty(), "{:?}", self.commands);
    }

    pub(crate) fn answer(&self, request: &Request, result: Value) {
        self.reply(request, json!({ "jsonrpc": "2.0", "id": request.id, "result": result }));
    }

    pub(crate) fn refuse(&self, request: &Request, code: i64) {
        self.refuse_with(request, json!({ "code": code, "message": "no" }));
    }

    pub(crate) fn refuse_with(&self, request: &Request, error: Value) {
        self.reply(request, json!({ "jsonrpc": "2.0", "id": request.id, "error": error }));
    }

    /// Tells something on the stream of a request, if it has one.
    pub(crate) fn tell(&self, request: &Request, method: &str, params: Value) {
        self.say(Some(request), json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Tells something unasked.
    pub(crate) fn tell_all(&self, method: &str, params: Value) {
        self.say(None, json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Asks the client something, as legacy servers do.
    pub(crate) fn ask(&mut self, id: &str, method: &str, params: Value) {
        self.say(None, json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.commands();
    }

    fn reply(&self, request: &Request, message: Value) {
        self.say(Some(request), message);
        if self.kind == TransportKind::RequestPerCall {
            self.handle.responses().handle_stream_ended(request.call, None);
        }
    }

    pub(crate) fn say(&self, request: Option<&Request>, message: Value) {
        let text = serde_json::to_vec(&message).unwrap();
        match request.filter(|_| self.kind == TransportKind::RequestPerCall) {
            Some(request) => drop(self.handle.responses().handle_reply(request.call, &text)),
            None => self.handle.handle_message(&text),
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.commands();
        *self.clock.0.lock().unwrap() += by;
        if self.wake_at.take_if(|at| *at <= self.clock.now()).is_some() {
            self.handle.handle_timeout();
        }
        self.commands();
    }

    /// Whether the transport is to let go of the server.
    pub(crate) fn is_over(&mut self) -> bool {
        self.commands();
        self.is_over
    }

    /// The connection ends.
    pub(crate) fn end(self, why: CloseReason) {
        self.handle.close(why);
    }

    /// Acknowledges a subscription.
    pub(crate) fn acknowledge(&self, listen: &Request, filter: Value) {
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": listen.id });
        let params = json!({ "_meta": meta, "notifications": filter });
        self.tell(listen, "notifications/subscriptions/acknowledged", params);
    }

    /// Tells of a change on a subscription.
    pub(crate) fn change(&self, listen: &Request, what: &str) {
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": listen.id });
        self.tell(listen, &format!("notifications/{what}"), json!({ "_meta": meta }));
    }
}

/// The next change of a listener, which goes on to live.
pub(crate) fn hearing(mut listener: Subscription) -> Task<(Option<Result<Change, Error>>, Subscription)> {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let future = async move {
        let change = listener.next().await;
        (change, listener)
    };
    Task { future: Some(Box::pin(future)), woken }
}

/// All changes that are there already.
pub(crate) fn heard(listener: &mut Subscription) -> Vec<Change> {
    let waker = noop_waker();
    let mut all = Vec::new();
    while let Poll::Ready(Some(change)) = listener.poll_next_unpin(&mut Context::from_waker(&waker)) {
        all.push(change.unwrap());
    }
    all
}

pub(crate) fn tools_filter() -> SubscriptionFilter {
    SubscriptionFilter::default().tools_list_changed(true)
}
