//! A server for tests of clients.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_client::{
    CallHeaders, CallId, Client, ClientBuilder, CloseReason, Error, Mode, Time, TransportCommand, TransportHandle,
    TransportKind,
};
use mcp_types::meta::key::SUBSCRIPTION_ID;
use mcp_types::{Era, Revision};
use serde_json::{Value, json};

use crate::{Clock, ManualTransport, Task, envelope};

/// A server whose messages are sent by a test, for clients on either kind of transport, without a runtime.
///
/// A [`Task`] polls the future of a call until it waits for the server; then the test takes the request and responds. Time
/// passes only in [`advance`](Self::advance). Like `assert!`, the methods panic if the client does not do what they expect.
///
/// ```
/// use std::time::Duration;
///
/// use mcp_client::{Client, TransportKind};
/// use mcp_testkit::{ScriptedServer, Task, envelope};
///
/// let builder = Client::builder("test", "1.0");
/// let (client, mut server) = ScriptedServer::modern(TransportKind::Pipe, builder);
/// let mut call = Task::start(client.call_tool("hello"));
/// let request = server.expect_request("tools/call");
/// assert_eq!(request.params["name"], "hello");
/// server.respond(&request, envelope::tool_result("Hello!"));
/// assert_eq!(call.finish()?.content[0].as_text(), Some("Hello!"));
///
/// let mut call = Task::start(client.call_tool("hello").total_timeout(Duration::from_secs(5)));
/// let request = server.expect_request("tools/call");
/// server.advance(Duration::from_secs(6));
/// assert!(call.finish().is_err());
/// server.expect_cancelled(&request);
/// # Ok::<(), mcp_client::Error>(())
/// ```
pub struct ScriptedServer {
    /// The handle of the transport, for events other than messages, such as an HTTP status or the loss of a session.
    pub handle: TransportHandle,
    kind: TransportKind,
    clock: Clock,
    commands: VecDeque<TransportCommand>,
    wake_at: Option<Time>,
    is_closed: bool,
}

/// A request of the client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReceivedRequest {
    /// The call that it belongs to.
    pub call: CallId,
    /// Its id.
    pub id: Value,
    /// Its params.
    pub params: Value,
    /// The headers that an HTTP transport would send with it.
    pub headers: CallHeaders,
    /// The revision of the client, once it is known.
    pub revision: Option<Revision>,
    /// The whole message.
    pub text: String,
}

impl ScriptedServer {
    /// Starts to connect a client, up to its first request.
    #[must_use]
    pub fn connect(kind: TransportKind, builder: ClientBuilder) -> (Task<Result<Client, Error>>, Self) {
        Self::connect_at(kind, builder, &Clock::new())
    }

    /// Starts to connect a client that measures time with this clock.
    #[must_use]
    pub fn connect_at(
        kind: TransportKind,
        builder: ClientBuilder,
        clock: &Clock,
    ) -> (Task<Result<Client, Error>>, Self) {
        let transport = ManualTransport::new(kind, clock);
        let mut connecting = Task::new(builder.connect(transport.clone()));
        connecting.run();
        let (handle, clock) = (transport.take_handle(), clock.clone());
        (connecting, Self { handle, kind, clock, commands: VecDeque::new(), wake_at: None, is_closed: false })
    }

    /// Connects a client as a modern server with all capabilities.
    #[must_use]
    #[track_caller]
    pub fn modern(kind: TransportKind, builder: ClientBuilder) -> (Client, Self) {
        let (mut connecting, mut server) = Self::connect(kind, builder);
        let probe = server.expect_request("server/discover");
        server.respond(&probe, envelope::discover_result(Self::capabilities()));
        (connecting.finish().expect("the client connects"), server)
    }

    /// Connects a client as a server of the latest legacy revision with all capabilities.
    #[must_use]
    #[track_caller]
    pub fn legacy(kind: TransportKind, builder: ClientBuilder) -> (Client, Self) {
        let (mut connecting, mut server) = Self::connect(kind, builder.mode(Mode::Legacy));
        server.handshake(Revision::LATEST_LEGACY.as_str());
        (connecting.finish().expect("the client connects"), server)
    }

    /// Returns the capabilities of a server that offers everything.
    #[must_use]
    pub fn capabilities() -> Value {
        json!({
            "tools": { "listChanged": true }, "prompts": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true }, "completions": {}, "logging": {},
        })
    }

    /// Completes the handshake as a legacy server with all capabilities.
    #[track_caller]
    pub fn handshake(&mut self, version: &str) {
        let initialize = self.expect_request("initialize");
        self.respond(&initialize, envelope::initialize_result(version, Self::capabilities()));
        self.expect_notification("notifications/initialized");
        self.poll();
    }

    /// Collects the pending commands of the client.
    pub fn poll(&mut self) {
        loop {
            match self.handle.poll_command(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(TransportCommand::WakeAt(at))) => self.wake_at = Some(at),
                Poll::Ready(Some(TransportCommand::Ready { .. })) => {}
                Poll::Ready(Some(command)) => self.commands.push_back(command),
                Poll::Ready(None) => {
                    self.is_closed = true;
                    return;
                }
                Poll::Pending => return,
            }
        }
    }

    #[track_caller]
    fn next_command(&mut self) -> TransportCommand {
        self.poll();
        self.commands.pop_front().expect("the client sends a message")
    }

    /// Returns the next message, which must be a request with this method.
    #[track_caller]
    pub fn expect_request(&mut self, method: &str) -> ReceivedRequest {
        let command = self.next_command();
        let TransportCommand::Send(outgoing) = command else { panic!("expected {method}, found {command:?}") };
        let text = String::from_utf8(outgoing.message.into_bytes()).expect("a message is UTF-8");
        let mut message: Value = serde_json::from_str(&text).expect("a message is JSON");
        assert_eq!(message["method"], method, "{message}");
        ReceivedRequest {
            call: outgoing.call.unwrap_or_else(|| panic!("not a request: {text}")),
            id: message["id"].take(),
            params: message["params"].take(),
            headers: outgoing.headers,
            revision: outgoing.revision,
            text,
        }
    }

    /// Returns the params of the next message, which must be a notification with this method.
    #[track_caller]
    pub fn expect_notification(&mut self, method: &str) -> Value {
        let mut message = self.next_message();
        assert_eq!(message["method"], method, "{message}");
        assert_eq!(message.get("id"), None);
        message["params"].take()
    }

    /// Returns the next message.
    #[track_caller]
    pub fn next_message(&mut self) -> Value {
        let command = self.next_command();
        let TransportCommand::Send(outgoing) = command else { panic!("not a message: {command:?}") };
        serde_json::from_slice(&outgoing.message).expect("a message is JSON")
    }

    /// Panics if the client does not cancel a request next, in the way of its transport and era.
    #[track_caller]
    pub fn expect_cancelled(&mut self, request: &ReceivedRequest) {
        let is_modern = request.revision.is_some_and(|revision| revision.era() == Era::Modern);
        if self.kind == TransportKind::Pipe || !is_modern {
            assert_eq!(self.expect_notification("notifications/cancelled")["requestId"], request.id);
        }
        if self.kind == TransportKind::RequestPerCall {
            let command = self.next_command();
            assert!(matches!(command, TransportCommand::Abort { call } if call == request.call), "{command:?}");
        }
    }

    /// Panics if the client has sent more messages.
    #[track_caller]
    pub fn assert_quiet(&mut self) {
        self.poll();
        assert!(self.commands.is_empty(), "{:?}", self.commands);
    }

    /// Responds to a request with a result.
    pub fn respond(&self, request: &ReceivedRequest, result: Value) {
        self.send_response(request, &envelope::response(request.id.clone(), result));
    }

    /// Responds to a request with an error that has this code.
    pub fn respond_error(&self, request: &ReceivedRequest, code: i64) {
        self.respond_error_object(request, json!({ "code": code, "message": "no" }));
    }

    /// Responds to a request with this error object, such as one with `data`.
    pub fn respond_error_object(&self, request: &ReceivedRequest, error: Value) {
        self.send_response(request, &json!({ "jsonrpc": "2.0", "id": request.id, "error": error }));
    }

    fn send_response(&self, request: &ReceivedRequest, message: &Value) {
        self.send_on(request, message);
        if self.kind == TransportKind::RequestPerCall {
            self.handle.responses().handle_stream_ended(request.call, None);
        }
    }

    /// Sends a message on the stream of a request, if the transport has one for each.
    pub fn send_on(&self, request: &ReceivedRequest, message: &Value) {
        match self.kind {
            TransportKind::RequestPerCall => {
                self.handle.responses().handle_reply(request.call, message.to_string().as_bytes());
            }
            TransportKind::Pipe | _ => self.send(message),
        }
    }

    /// Sends a message that does not belong to a request.
    pub fn send(&self, message: &Value) {
        self.handle.handle_message(message.to_string().as_bytes());
    }

    /// Sends a notification on the stream of a request.
    pub fn notify_on(&self, request: &ReceivedRequest, method: &str, params: Value) {
        self.send_on(request, &envelope::notification(method, params));
    }

    /// Sends a notification that does not belong to a request.
    pub fn notify(&self, method: &str, params: Value) {
        self.send(&envelope::notification(method, params));
    }

    /// Sends a request to the client, as legacy servers do.
    pub fn send_request(&mut self, id: &str, method: &str, params: Value) {
        self.send(&envelope::request(id, method, params));
        self.poll();
    }

    /// Acknowledges a subscription (`subscriptions/listen`).
    pub fn acknowledge(&self, listen: &ReceivedRequest, filter: Value) {
        let params = json!({ "_meta": { SUBSCRIPTION_ID: listen.id }, "notifications": filter });
        self.notify_on(listen, "notifications/subscriptions/acknowledged", params);
    }

    /// Reports a change on a subscription, such as `tools/list_changed`.
    pub fn notify_change(&self, listen: &ReceivedRequest, change: &str) {
        let params = json!({ "_meta": { SUBSCRIPTION_ID: listen.id } });
        self.notify_on(listen, &format!("notifications/{change}"), params);
    }

    /// Moves the time forward.
    pub fn advance(&mut self, by: Duration) {
        self.poll();
        self.clock.advance(by);
        if self.wake_at.take_if(|at| *at <= self.clock.now()).is_some() {
            self.handle.handle_timeout();
        }
        self.poll();
    }

    /// Returns whether the client has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        self.poll();
        self.is_closed
    }

    /// Closes the connection.
    pub fn close(self, why: CloseReason) {
        self.handle.close(why);
    }
}

impl std::fmt::Debug for ScriptedServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedServer")
            .field("kind", &self.kind)
            .field("commands", &self.commands)
            .finish_non_exhaustive()
    }
}
