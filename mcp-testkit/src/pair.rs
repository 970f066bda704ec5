//! The state machines of a client and a server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mcp_kernel::client::{self, ClientConfig};
use mcp_kernel::server::{self, RequestScope, Responder, ServerConfig};
use mcp_kernel::{CallError, CallId, CallOptions, Time};
use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{
    ClientCapabilities, ElicitationCapability, Implementation, Method, PromptsCapability, RawObject,
    ResourcesCapability, RootsCapability, SamplingCapability, ServerCapabilities, ToolsCapability,
};

/// The [state machines](mcp_kernel) of a client and a server, with a link between them that keeps the order, like a pipe.
///
/// For tests of code that is built on `mcp-kernel` alone. Messages are delivered by [`drive`](Self::drive), or by the test, which
/// may change, reorder or drop them. Like `assert!`, the methods panic if the two do not do what they expect.
///
/// ```
/// use mcp_testkit::Pair;
/// use mcp_types::{CallToolResult, Method};
///
/// let mut pair = Pair::ready(Pair::client_config(), Pair::server_config());
/// let call = pair.call(&Method::TOOLS_CALL, r#"{"name":"hello"}"#);
/// pair.drive();
/// let (_, _, responder) = pair.expect_request();
/// pair.server.respond(responder, Ok(CallToolResult::text("Hello!")));
/// pair.drive();
/// assert!(pair.finished(call).unwrap().contains("Hello!"));
/// pair.assert_idle();
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Pair {
    /// The client.
    pub client: client::Connection,
    /// The server.
    pub server: server::Connection,
    /// The time, which only [`advance`](Self::advance) and the test change.
    pub now: Time,
    /// Messages of the client that were not delivered yet.
    pub to_server: VecDeque<Vec<u8>>,
    /// Messages of the server that were not delivered yet.
    pub to_client: VecDeque<Vec<u8>>,
    /// Events of the client that the test has not taken yet.
    pub client_events: VecDeque<client::Event>,
    /// Events of the server that the test has not taken yet.
    pub server_events: VecDeque<server::Event>,
}

impl Pair {
    /// Creates a client and a server that have not exchanged anything.
    #[must_use]
    pub fn new(client: ClientConfig, server: ServerConfig) -> Self {
        Self {
            client: client::Connection::new(Arc::new(client)),
            server: server::Connection::long_lived(Arc::new(server)),
            now: Time::EPOCH,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            client_events: VecDeque::new(),
            server_events: VecDeque::new(),
        }
    }

    /// Creates a client and a server that are connected.
    #[must_use]
    pub fn ready(client: ClientConfig, server: ServerConfig) -> Self {
        let mut pair = Self::new(client, server);
        pair.client.start(pair.now, None);
        pair.drive();
        let event = pair.client_events.pop_front();
        assert!(matches!(event, Some(client::Event::Ready { .. })), "{event:?}");
        pair.server_events.clear();
        pair
    }

    /// Returns the configuration of a client with all capabilities.
    #[must_use]
    pub fn client_config() -> ClientConfig {
        let capabilities = ClientCapabilities::default()
            .elicitation(ElicitationCapability::default().form(RawObject::empty()))
            .sampling(SamplingCapability::default())
            .roots(RootsCapability::default());
        ClientConfig::new(Implementation::new("client", "1.0"), capabilities)
    }

    /// Returns the configuration of a server with all capabilities.
    #[must_use]
    pub fn server_config() -> ServerConfig {
        let capabilities = ServerCapabilities::default()
            .tools(ToolsCapability::default().list_changed(true))
            .prompts(PromptsCapability::default().list_changed(true))
            .resources(ResourcesCapability::default().list_changed(true).subscribe(true))
            .completions(RawObject::empty())
            .logging(RawObject::empty());
        ServerConfig::new(Implementation::new("server", "1.0"), capabilities)
    }

    /// Collects the messages and events of both sides, without delivering anything.
    pub fn collect(&mut self) {
        while let Some(transmit) = self.client.poll_transmit() {
            match transmit {
                client::Transmit::Send { message, .. } => self.to_server.push_back(message.into_bytes()),
                client::Transmit::Abort { .. } => {}
            }
        }
        while let Some(transmit) = self.server.poll_transmit() {
            self.to_client.push_back(transmit.message.into_bytes());
        }
        self.client_events.extend(std::iter::from_fn(|| self.client.poll_event()));
        self.server_events.extend(std::iter::from_fn(|| self.server.poll_event()));
    }

    /// Delivers messages until there are no more, for at most 1000 rounds.
    pub fn drive(&mut self) {
        for _ in 0..1000 {
            self.collect();
            match (self.to_server.pop_front(), self.to_client.pop_front()) {
                (None, None) => return,
                (to_server, to_client) => {
                    if let Some(message) = to_server {
                        self.server.handle_bytes(self.now, &message, None);
                    }
                    if let Some(message) = to_client {
                        self.client.handle_bytes(self.now, &message);
                    }
                }
            }
        }
        panic!("the exchange of messages does not end");
    }

    /// Moves the time forward on both sides.
    pub fn advance(&mut self, duration: Duration) {
        self.now += duration;
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    /// Starts a call of the client.
    pub fn call(&mut self, method: &Method, params: &str) -> CallId {
        let params = RawObject::parse(params).expect("params are an object");
        self.client.call(self.now, method, &params, CallOptions::default()).expect("the client accepts the call")
    }

    /// Returns the request of the next event of the server. Panics if that is another event.
    #[track_caller]
    pub fn expect_request(&mut self) -> (Arc<RequestScope>, PayloadBuf, Responder) {
        match self.server_events.pop_front() {
            Some(server::Event::Request { scope, params, responder }) => (scope, params, responder),
            other => panic!("expected a request, found {other:?}"),
        }
    }

    /// Returns the outcome of a call. Panics if the next event of the client is another one.
    ///
    /// # Errors
    ///
    /// Returns the error of the call if it failed.
    #[track_caller]
    pub fn finished(&mut self, call: CallId) -> Result<String, CallError> {
        match self.client_events.pop_front() {
            Some(client::Event::CallFinished { call: ended, outcome }) if ended == call => {
                outcome.map(|outcome| outcome.result.as_str().to_owned())
            }
            other => panic!("expected the end of the call, found {other:?}"),
        }
    }

    /// Delivers all messages. Panics if there are more events, or if something is in flight afterwards.
    #[track_caller]
    pub fn assert_idle(&mut self) {
        self.drive();
        assert!(self.client_events.is_empty(), "{:?}", self.client_events);
        assert!(self.server_events.is_empty(), "{:?}", self.server_events);
        assert!(self.client.is_idle(), "{:?}", self.client);
        assert!(self.server.is_idle(), "{:?}", self.server);
    }
}
