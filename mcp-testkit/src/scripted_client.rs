//! A client for tests of servers.

use std::collections::VecDeque;
use std::task::Context;
use std::time::Duration;

use mcp_kernel::server::Route;
use mcp_kernel::{RequestKey, Time};
use mcp_server::{Caller, Connection, Server};
use mcp_types::{Era, Revision};
use serde_json::{Value, json};

use crate::envelope;
use crate::task::WakeFlag;

/// A client of any revision that sends the messages of a test to a server and collects those of the server, on one
/// connection, without a transport and without a runtime.
///
/// Handlers run inside of [`run`](Self::run), which the methods that send a request call, until all of them wait for
/// something. Time passes only in [`advance`](Self::advance). For handlers that need a runtime, such as for sockets, connect
/// a client with `mcp_client::MemoryTransport` instead. Like `assert!`, the methods panic if the server does not do what they
/// expect.
///
/// ```
/// use mcp_server::types::Revision;
/// use mcp_server::{NoArguments, Server, tool};
/// use mcp_testkit::ScriptedClient;
/// use serde_json::json;
///
/// let server = Server::builder("test", "1.0").tool(tool("hello", async |_, _: NoArguments| "Hello!")).build()?;
/// for revision in Revision::ALL {
///     let mut client = ScriptedClient::new(&server, revision);
///     assert_eq!(client.call_tool_text("hello", json!({})), "Hello!");
///     client.error("tools/call", json!({ "name": "goodbye" }), -32602);
///     client.assert_quiet();
/// }
/// # Ok::<(), mcp_server::BuildError>(())
/// ```
#[derive(Debug)]
pub struct ScriptedClient {
    /// The connection of the server.
    pub connection: Connection,
    /// The caller that handlers see, as the transport would set it.
    pub caller: Caller,
    now: Time,
    revision: Revision,
    capabilities: Value,
    last_id: i64,
    woken: WakeFlag,
    inbox: VecDeque<(Route, Value)>,
}

impl ScriptedClient {
    /// Connects a client without capabilities. A legacy client completes the handshake.
    #[must_use]
    pub fn new(server: &Server, revision: Revision) -> Self {
        Self::with_capabilities(server, revision, json!({}))
    }

    /// Connects a client with these capabilities. A legacy client completes the handshake.
    #[must_use]
    pub fn with_capabilities(server: &Server, revision: Revision, capabilities: Value) -> Self {
        let mut client = Self::on_connection(Connection::long_lived(server), revision, capabilities);
        if revision.era() == Era::Legacy {
            let response = client.initialize();
            assert_eq!(response["result"]["protocolVersion"], revision.as_str(), "{response}");
            client.notify("notifications/initialized", json!({}));
        }
        client
    }

    /// Creates a client on a new connection, on which nothing was sent.
    #[must_use]
    pub fn on_connection(connection: Connection, revision: Revision, capabilities: Value) -> Self {
        let (woken, inbox) = (WakeFlag::default(), VecDeque::new());
        let (caller, now) = (Caller::default(), Time::EPOCH);
        Self { connection, caller, now, revision, capabilities, last_id: 0, woken, inbox }
    }

    /// Sends `initialize` and returns the response.
    pub fn initialize(&mut self) -> Value {
        let initialize = envelope::initialize("init", self.revision.as_str(), self.capabilities.clone());
        self.send(&initialize);
        self.run();
        self.response_to("init")
    }

    /// Creates a request of the revision of this client, with the next id.
    pub fn build_request(&mut self, method: &str, mut params: Value) -> Value {
        self.last_id += 1;
        if self.revision.era() == Era::Modern {
            params = envelope::with_modern_meta(params, self.capabilities.clone());
        }
        envelope::request(self.last_id, method, params)
    }

    /// Sends a request and returns its id.
    pub fn start(&mut self, method: &str, params: Value) -> i64 {
        let request = self.build_request(method, params);
        self.send(&request);
        self.run();
        self.last_id
    }

    /// Sends `tools/call` without arguments and returns the id of the request.
    pub fn start_tool(&mut self, name: &str) -> i64 {
        self.start("tools/call", json!({ "name": name }))
    }

    /// Sends a request and returns its response. Panics if the handler waits.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params);
        self.response_to(id)
    }

    /// Sends a request and returns its result.
    #[track_caller]
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let mut response = self.call(method, params);
        assert_eq!(response.get("error"), None, "{response}");
        response["result"].take()
    }

    /// Sends a request and returns its error. Panics if the error has another code.
    #[track_caller]
    pub fn error(&mut self, method: &str, params: Value, code: i64) -> Value {
        let mut response = self.call(method, params);
        assert_eq!(response["error"]["code"], code, "{response}");
        response["error"].take()
    }

    /// Calls a tool and returns its result.
    #[track_caller]
    pub fn call_tool(&mut self, name: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// Calls a tool and returns the text in its result.
    #[track_caller]
    pub fn call_tool_text(&mut self, name: &str, arguments: Value) -> String {
        let response = self.call("tools/call", json!({ "name": name, "arguments": arguments }));
        envelope::tool_text(&response).to_owned()
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&envelope::notification(method, params));
        self.run();
    }

    /// Cancels a request.
    pub fn cancel(&mut self, id: i64) {
        self.send(&envelope::cancelled(id));
        self.run();
    }

    /// Responds to a request of the server.
    pub fn respond(&mut self, request: &Value, result: Value) {
        self.send(&envelope::response(request["id"].clone(), result));
        self.run();
    }

    /// Sends a message, without running handlers.
    pub fn send(&mut self, message: &Value) -> Option<RequestKey> {
        self.send_text(&message.to_string())
    }

    /// Sends text that need not be a message, without running handlers.
    pub fn send_text(&mut self, text: &str) -> Option<RequestKey> {
        self.connection.feed(self.now, text.as_bytes(), &self.caller)
    }

    /// Polls the connection until all handlers wait, and collects its messages.
    pub fn run(&mut self) {
        let waker = self.woken.waker();
        let mut cx = Context::from_waker(&waker);
        for _ in 0..100 {
            let polled = self.connection.poll(&mut cx, self.now);
            let before = self.inbox.len();
            while let Some(transmit) = self.connection.poll_transmit() {
                let message = serde_json::from_slice(&transmit.message).expect("a message is JSON");
                self.inbox.push_back((transmit.route, message));
            }
            let has_output = self.inbox.len() > before || self.connection.is_closed();
            match polled.is_ready() {
                true => assert!(has_output, "ready means that there is something to send"),
                // Another thread may have published meanwhile; then it also wakes this task.
                false if has_output => assert!(self.is_woken_soon(), "output without a wake-up is not sent"),
                false => {}
            }
            if !self.woken.take() {
                return;
            }
        }
        panic!("the connection wakes itself without end");
    }

    /// Returns whether the connection was woken since it was last polled.
    #[must_use]
    pub fn is_woken(&self) -> bool {
        self.woken.is_set()
    }

    /// Returns whether the connection was woken since it was last polled, or another thread wakes it soon.
    fn is_woken_soon(&self) -> bool {
        (0..1_000_000).any(|_| {
            std::thread::yield_now();
            self.is_woken()
        })
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Moves the time forward.
    pub fn advance(&mut self, by: Duration) {
        self.now += by;
        self.connection.handle_timeout(self.now);
        self.run();
    }

    /// Removes and returns the response to a request.
    #[track_caller]
    pub fn response_to(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        let is_response = |(_, message): &(Route, Value)| message.get("method").is_none() && message["id"] == id;
        let response = self.inbox.iter().position(is_response).and_then(|index| self.inbox.remove(index));
        response.unwrap_or_else(|| panic!("no response to {id}: {:?}", self.inbox)).1
    }

    /// Removes and returns the next message. Panics if it is not a notification or request with this method.
    #[track_caller]
    pub fn expect_message(&mut self, method: &str) -> Value {
        let (_, message) = self.next_routed();
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Removes and returns the next message, with its route.
    #[track_caller]
    pub fn next_routed(&mut self) -> (Route, Value) {
        self.run();
        self.inbox.pop_front().expect("the server sends a message")
    }

    /// Removes all messages and returns their methods, with `response` for responses.
    pub fn methods(&mut self) -> Vec<String> {
        self.run();
        let method = |(_, message): (Route, Value)| message["method"].as_str().unwrap_or("response").to_owned();
        self.inbox.drain(..).map(method).collect()
    }

    /// Returns the number of collected messages.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.inbox.len()
    }

    /// Panics if the server has sent more messages.
    #[track_caller]
    pub fn assert_quiet(&mut self) {
        self.run();
        assert!(self.inbox.is_empty(), "{:?}", self.inbox);
    }
}

#[cfg(test)]
mod tests {
    use mcp_server::Change;

    use super::*;

    /// A change that another thread publishes between two polls is collected, whichever of them finds it.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the race is what is tested")]
    fn other_threads_may_publish() {
        let server = Server::builder("test", "1.0").offers_tools().build().unwrap();
        let mut client = ScriptedClient::new(&server, Revision::V2025_11_25);
        let publisher = std::thread::spawn(move || (0..20_000).for_each(|_| server.publish(&Change::Tools)));
        let mut notifications = 0;
        while !publisher.is_finished() {
            notifications += client.methods().len();
        }
        publisher.join().unwrap();
        notifications += client.methods().len();
        assert!(notifications > 0);
        client.assert_quiet();
    }
}
