//! A client of the old transport, as far as a test wants it to go.

use std::task::Poll;

use http::Method;
use mcp_server::{Principal, Server};
use mcp_testkit::envelope::{initialize, initialized, request};
use mcp_transport_http::{HttpOptions, HttpService, LegacySseService, SessionMode};
use serde_json::{Value, json};
use tower_service::Service;

use crate::demo::Demo;
use crate::raw_http::{Post, Reply};

/// A service with sessions, and the old transport beside it.
pub(crate) fn both(server: Server, options: HttpOptions) -> (HttpService, LegacySseService) {
    let service = HttpService::with_options(server, options.sessions(SessionMode::Stateful));
    let sse = service.legacy_sse().expect("sessions");
    (service, sse)
}

pub(crate) fn sse(demo: &Demo) -> LegacySseService {
    both(demo.server(), HttpOptions::default()).1
}

/// Sends a request and waits for the response.
pub(crate) async fn send(post: Post, sse: &LegacySseService) -> Reply {
    let response = sse.clone().call(post.into_request()).await;
    Reply::new(response.unwrap_or_else(|never| match never {}))
}

/// The request for a stream.
pub(crate) fn get() -> Post {
    Post::message(Value::Null)
        .verb(Method::GET)
        .uri("/sse")
        .without("content-type")
        .header("accept", "text/event-stream")
}

pub(crate) fn call(id: impl Into<Value>, tool: &str) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": {} }))
}

/// A client with an open stream.
pub(crate) struct Client {
    sse: LegacySseService,
    principal: Option<Principal>,
    pub(crate) stream: Reply,
    /// Where its messages go.
    pub(crate) endpoint: String,
}

impl Client {
    pub(crate) async fn open(sse: &LegacySseService) -> Self {
        Self::open_as(sse, None).await
    }

    pub(crate) async fn open_as(sse: &LegacySseService, principal: Option<&Principal>) -> Self {
        let post = principal.into_iter().fold(get(), |post, principal| post.extension(principal.clone()));
        let mut stream = send(post, sse).await;
        let first = stream.block().await.expect("an event");
        let endpoint = first.strip_prefix("event: endpoint\ndata: ").expect("the endpoint comes first").to_owned();
        Self { sse: sse.clone(), principal: principal.cloned(), stream, endpoint }
    }

    /// A client that has shaken hands.
    pub(crate) async fn ready(sse: &LegacySseService) -> Self {
        let mut client = Self::open(sse).await;
        client.shake_hands("2024-11-05").await;
        client
    }

    pub(crate) async fn shake_hands(&mut self, version: &str) {
        self.tell(initialize("hello", version, json!({ "elicitation": {} }))).await;
        let answer = self.message().await;
        assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!("hello"), &json!(version)));
        self.tell(initialized()).await;
    }

    /// A message that has not been sent yet.
    pub(crate) fn post(&self, message: Value) -> Post {
        let post = Post::message(message).uri(&self.endpoint).without("accept");
        self.principal.iter().fold(post, |post, principal| post.extension(principal.clone()))
    }

    pub(crate) fn send(&self, message: Value) -> impl Future<Output = Reply> + use<> {
        let (post, sse) = (self.post(message), self.sse.clone());
        async move { send(post, &sse).await }
    }

    /// Sends a message, which is accepted.
    pub(crate) fn tell(&self, message: Value) -> impl Future<Output = ()> + use<> {
        let sending = self.send(message);
        async move {
            let mut reply = sending.await;
            assert_eq!((reply.status.as_u16(), reply.rest().await.as_str()), (202, ""));
        }
    }

    /// The next message on the stream.
    pub(crate) async fn message(&mut self) -> Value {
        message_of(&self.stream.block().await.expect("an event"))
    }

    /// Lets the server do what it can, which is nothing that is heard.
    pub(crate) async fn works(&mut self) {
        let polled = self.stream.poll_frame().await;
        assert!(polled.is_pending(), "{polled:?}");
    }

    /// Whether the stream is over, with nothing more on it.
    pub(crate) async fn is_over(&mut self) -> bool {
        self.stream.poll_frame().await == Poll::Ready(None)
    }
}

pub(crate) fn message_of(block: &str) -> Value {
    let data = block.strip_prefix("event: message\ndata: ").unwrap_or_else(|| panic!("no message: {block}"));
    serde_json::from_str(data).unwrap_or_else(|_| panic!("no JSON: {data}"))
}
