//! A client that says what a test tells it to say, and what handlers need to be watched.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use mcp_kernel::RequestKey;
use mcp_kernel::server::Route;
use mcp_server::types::{Era, Revision};
use mcp_server::{BuildError, Caller, Connection, Server, ServerBuilder, Time};
use serde_json::{Value, json};

pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The revisions with a handshake.
pub(crate) const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

pub(crate) const MODERN: Revision = Revision::V2026_07_28;

/// One client on one connection. Time passes only when the test says so.
pub(crate) struct Client {
    pub(crate) connection: Connection,
    /// Who the transport says is behind what is sent.
    pub(crate) caller: Caller,
    now: Time,
    revision: Revision,
    capabilities: Value,
    /// The number of the request that was sent last.
    last: i64,
    woken: Arc<Woken>,
    inbox: VecDeque<(Route, Value)>,
}

pub(crate) fn server(build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    build(Server::builder("demo", "1.0")).build().expect("a server")
}

pub(crate) fn refused(build: impl FnOnce(ServerBuilder) -> ServerBuilder) -> BuildError {
    build(Server::builder("demo", "1.0")).build().expect_err("a refusal")
}

impl Client {
    /// A client of a revision that declares nothing; a legacy one has shaken hands.
    pub(crate) fn new(server: &Server, revision: Revision) -> Self {
        Self::declaring(server, revision, json!({}))
    }

    /// A client of a revision with capabilities.
    pub(crate) fn declaring(server: &Server, revision: Revision, capabilities: Value) -> Self {
        let mut client = Self::over(Connection::long_lived(server), revision, capabilities);
        if revision.era() == Era::Legacy {
            let agreed = client.initialize();
            assert_eq!(agreed["result"]["protocolVersion"], revision.as_str(), "{agreed}");
            client.notify("notifications/initialized", json!({}));
        }
        client
    }

    /// A client on a connection that was made in a way of the test's choice, which has not said anything yet.
    pub(crate) fn over(connection: Connection, revision: Revision, capabilities: Value) -> Self {
        let now = Time::EPOCH;
        let (woken, inbox) = (Arc::new(Woken::default()), VecDeque::new());
        Self { connection, caller: Caller::default(), now, revision, capabilities, last: 0, woken, inbox }
    }

    pub(crate) fn initialize(&mut self) -> Value {
        let client = json!({ "name": "script", "version": "1" });
        let version = self.revision.as_str();
        let params =
            json!({ "protocolVersion": version, "capabilities": self.capabilities.clone(), "clientInfo": client });
        self.send(&json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params }));
        self.run();
        self.reply_to("init")
    }

    /// Sends a request by the rules of the revision; returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> i64 {
        let request = self.request(method, params);
        self.send(&request);
        self.run();
        self.last
    }

    /// A request by the rules of the revision, which has not been sent yet.
    pub(crate) fn request(&mut self, method: &str, mut params: Value) -> Value {
        self.last += 1;
        if self.revision.era() == Era::Modern {
            let mut meta = json!({ VERSION: self.revision.as_str(), CAPABILITIES: self.capabilities.clone() });
            if let (Some(own), Some(all)) = (params.get("_meta").and_then(Value::as_object), meta.as_object_mut()) {
                all.extend(own.clone());
            }
            params["_meta"] = meta;
        }
        json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params })
    }

    /// Sends a request and returns the whole answer.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.reply_to(id)
    }

    /// Sends a request that must succeed.
    pub(crate) fn result(&mut self, method: &str, params: Value) -> Value {
        let mut reply = self.call(method, params);
        assert_eq!(reply.get("error"), None, "{reply}");
        reply["result"].take()
    }

    /// Sends a request that must fail with a code.
    pub(crate) fn error(&mut self, method: &str, params: Value, code: i64) -> Value {
        let mut reply = self.call(method, params);
        assert_eq!(reply["error"]["code"], code, "{reply}");
        reply["error"].take()
    }

    /// Calls a tool that must succeed.
    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// Calls a tool and returns the text that it gives.
    pub(crate) fn tool_text(&mut self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments);
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
    }

    /// Calls a tool that will not answer at once; returns the id of the request.
    pub(crate) fn start_tool(&mut self, name: &str) -> i64 {
        self.ask("tools/call", json!({ "name": name }))
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        self.run();
    }

    pub(crate) fn cancel(&mut self, id: i64) {
        self.notify("notifications/cancelled", json!({ "requestId": id }));
    }

    /// Answers a question of the server.
    pub(crate) fn respond(&mut self, question: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }));
        self.run();
    }

    /// Sends something as it is, without having the server look at it yet.
    pub(crate) fn send(&mut self, message: &Value) -> Option<RequestKey> {
        self.send_text(&message.to_string())
    }

    pub(crate) fn send_text(&mut self, text: &str) -> Option<RequestKey> {
        self.connection.feed(self.now, text.as_bytes(), &self.caller)
    }

    /// Polls as long as the connection has itself woken, and reads what it says.
    pub(crate) fn run(&mut self) {
        let waker = Waker::from(Arc::clone(&self.woken));
        let mut cx = Context::from_waker(&waker);
        for _ in 0..100 {
            let polled = self.connection.poll(&mut cx, self.now);
            let before = self.inbox.len();
            while let Some(transmit) = self.connection.poll_transmit() {
                let message = serde_json::from_slice(&transmit.message).expect("JSON");
                self.inbox.push_back((transmit.route, message));
            }
            let said_something = self.inbox.len() > before || self.connection.is_closed();
            assert_eq!(polled.is_ready(), said_something, "ready means that there is something to send");
            if !self.woken.take() {
                return;
            }
        }
        panic!("the connection wakes itself without end");
    }

    /// Whether the connection had itself woken since it was polled last.
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::SeqCst)
    }

    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, time: Duration) {
        self.now += time;
        self.connection.handle_timeout(self.now);
        self.run();
    }

    /// The answer to a request, which there must be.
    pub(crate) fn reply_to(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        self.has_reply(&id).unwrap_or_else(|| panic!("no answer to {id}: {:?}", self.inbox))
    }

    /// The answer to a request, if there is one.
    pub(crate) fn has_reply(&mut self, id: &Value) -> Option<Value> {
        let is_reply = |(_, message): &(Route, Value)| message.get("method").is_none() && message["id"] == *id;
        let index = self.inbox.iter().position(is_reply)?;
        self.inbox.remove(index).map(|(_, message)| message)
    }

    /// The next message, which must be of a method: a notification, or a question.
    pub(crate) fn next(&mut self, method: &str) -> Value {
        let (_, message) = self.next_routed();
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub(crate) fn next_routed(&mut self) -> (Route, Value) {
        self.run();
        self.inbox.pop_front().expect("a message of the server")
    }

    /// The methods of everything that the server said and nobody looked at.
    pub(crate) fn methods(&mut self) -> Vec<String> {
        self.run();
        let method = |(_, message): (Route, Value)| message["method"].as_str().unwrap_or("answer").to_owned();
        self.inbox.drain(..).map(method).collect()
    }

    /// How many messages of the server nobody looked at.
    pub(crate) fn unread(&self) -> usize {
        self.inbox.len()
    }

    /// The server says nothing more.
    pub(crate) fn silence(&mut self) {
        self.run();
        assert!(self.inbox.is_empty(), "{:?}", self.inbox);
    }
}

/// Whether somebody has to look.
#[derive(Default)]
struct Woken(AtomicBool);

impl Woken {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Something that handlers wait for until the test lets them go on.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Mutex<(bool, Vec<Waker>)>>);

impl Gate {
    pub(crate) fn open(&self) {
        let mut state = self.0.lock().expect("a gate");
        state.0 = true;
        state.1.drain(..).for_each(Waker::wake);
    }

    pub(crate) fn wait(&self) -> impl Future<Output = ()> + Send + use<> {
        let state = Arc::clone(&self.0);
        poll_fn(move |cx| {
            let mut state = state.lock().expect("a gate");
            if state.0 {
                return Poll::Ready(());
            }
            state.1.push(cx.waker().clone());
            Poll::Pending
        })
    }
}

/// What handlers leave for the test to read.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn add(&self, note: impl Into<String>) {
        self.0.lock().expect("notes").push(note.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("notes"))
    }
}

/// Leaves a note when it is dropped.
pub(crate) struct OnDrop(pub(crate) Notes, pub(crate) &'static str);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.add(self.1);
    }
}

/// Removes a tool; returns whether it was there.
pub(crate) fn removed(server: &Server, tool: &str) -> bool {
    let mut was_there = false;
    let update = server.update(|registry| {
        was_there = registry.remove_tool(tool);
        Ok(())
    });
    update.expect("an update");
    was_there
}

/// What a handler does that has a bug.
pub(crate) fn fails() {
    panic!("this is what the test wants");
}
