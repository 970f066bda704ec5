//! Both machines, a link between them, and a clock that only the test moves.

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

/// A client and a server that talk over a link which loses nothing and keeps the order, like stdio.
pub(crate) struct Pair {
    pub(crate) client: client::Connection,
    pub(crate) server: server::Connection,
    pub(crate) now: Time,
    pub(crate) to_server: VecDeque<Vec<u8>>,
    pub(crate) to_client: VecDeque<Vec<u8>>,
    pub(crate) client_events: VecDeque<client::Event>,
    pub(crate) server_events: VecDeque<server::Event>,
}

/// A server that offers everything.
pub(crate) fn server_config() -> ServerConfig {
    let capabilities = ServerCapabilities::default()
        .tools(ToolsCapability::default().list_changed(true))
        .prompts(PromptsCapability::default().list_changed(true))
        .resources(ResourcesCapability::default().list_changed(true).subscribe(true))
        .completions(RawObject::empty())
        .logging(RawObject::empty());
    ServerConfig::new(Implementation::new("server", "1.0"), capabilities)
}

/// A client that can do everything.
pub(crate) fn client_config() -> ClientConfig {
    let capabilities = ClientCapabilities::default()
        .elicitation(ElicitationCapability::default().form(RawObject::empty()))
        .sampling(SamplingCapability::default())
        .roots(RootsCapability::default());
    ClientConfig::new(Implementation::new("client", "1.0"), capabilities)
}

impl Pair {
    pub(crate) fn new(client: ClientConfig, server: ServerConfig) -> Self {
        let now = Time::EPOCH;
        Self {
            client: client::Connection::new(Arc::new(client)),
            server: server::Connection::long_lived(Arc::new(server)),
            now,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            client_events: VecDeque::new(),
            server_events: VecDeque::new(),
        }
    }

    /// A pair that is ready to talk, with no news left.
    pub(crate) fn ready(client: ClientConfig, server: ServerConfig) -> Self {
        let mut pair = Self::new(client, server);
        pair.client.start(pair.now, None);
        pair.drive();
        let event = pair.client_events.pop_front();
        assert!(matches!(event, Some(client::Event::Ready { .. })), "{event:?}");
        pair.server_events.clear();
        pair
    }

    /// Takes what both sides have to say, without delivering it.
    pub(crate) fn collect(&mut self) {
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

    /// Delivers until nobody has anything to say; a bound keeps a fault from lasting for ever.
    pub(crate) fn drive(&mut self) {
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
        panic!("the two never stop talking");
    }

    /// Lets time pass, and tells both sides.
    pub(crate) fn wait(&mut self, duration: Duration) {
        self.now += duration;
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    pub(crate) fn call(&mut self, method: &Method, params: &str) -> CallId {
        let params = RawObject::parse(params).expect("an object");
        self.client.call(self.now, method, &params, CallOptions::default()).expect("a call")
    }

    /// The request that the server's application got.
    pub(crate) fn expect_request(&mut self) -> (Arc<RequestScope>, PayloadBuf, Responder) {
        match self.server_events.pop_front() {
            Some(server::Event::Request { scope, params, responder }) => (scope, params, responder),
            other => panic!("expected a request, found {other:?}"),
        }
    }

    /// How a call of the client ended.
    pub(crate) fn finished(&mut self, call: CallId) -> Result<String, CallError> {
        match self.client_events.pop_front() {
            Some(client::Event::CallFinished { call: ended, outcome }) if ended == call => {
                outcome.map(|outcome| outcome.result.as_str().to_owned())
            }
            other => panic!("expected the end of the call, found {other:?}"),
        }
    }

    /// Nothing is open, queued, due or untold, on either side.
    pub(crate) fn assert_nothing_left(&mut self) {
        self.drive();
        assert!(self.client_events.is_empty(), "{:?}", self.client_events);
        assert!(self.server_events.is_empty(), "{:?}", self.server_events);
        assert!(self.client.is_idle(), "{:?}", self.client);
        assert!(self.server.is_idle(), "{:?}", self.server);
    }
}
