//! Instances, what they share, and clients that are sent from one to the other.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use mcp_server::types::LoggingLevel;
use mcp_server::{NoArguments, Principal, RequestContext, Server, text_resource, tool};
use mcp_testkit::envelope;
use mcp_transport_http::session::{EventIdKey, MemoryEventStore, MemorySessionStore};
use mcp_transport_http::{HttpOptions, HttpService, ResponseBody, ResponseStream, SessionMode};
use serde_json::{Value, json};
use tower_service::Service;

/// A body that is there at once.
struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

pub(crate) fn server() -> Server {
    Server::builder("shared", "1.0")
        .tool(tool("level", async |ctx: RequestContext, _: NoArguments| {
            ctx.log(LoggingLevel::Info, "info");
            ctx.log(LoggingLevel::Error, "error");
            "logged"
        }))
        .tool(tool("slow", async |ctx: RequestContext, _: NoArguments| {
            if let Some(stream) = ctx.extension::<ResponseStream>() {
                stream.close(Duration::from_millis(1));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            "done"
        }))
        .tool(tool("stay", async |_, _: NoArguments| std::future::pending::<&str>().await))
        .resource(text_resource("a:b", "b", "text"))
        .resource_subscriptions()
        .build()
        .expect("a server")
}

/// What instances share.
#[derive(Clone, Default)]
pub(crate) struct Shared {
    pub(crate) sessions: MemorySessionStore,
    pub(crate) events: MemoryEventStore,
}

impl Shared {
    pub(crate) fn options(&self) -> HttpOptions {
        HttpOptions::default()
            .sessions(SessionMode::Stateful)
            .session_store(Arc::new(self.sessions.clone()), Duration::from_secs(60))
            .event_store(Arc::new(self.events.clone()), EventIdKey::new([7; 32]))
    }

    pub(crate) fn instance(&self) -> (HttpService, Server) {
        let server = server();
        (HttpService::with_options(server.clone(), self.options()), server)
    }
}

/// A client that is sent wherever the test wants.
#[derive(Default)]
pub(crate) struct Client {
    pub(crate) session: String,
    pub(crate) principal: Option<Principal>,
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) session: Option<String>,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: ResponseBody,
}

impl Answer {
    pub(crate) async fn text(&mut self, until: &str) -> String {
        let mut text = String::new();
        while !text.contains(until) {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx));
            let frame = tokio::time::timeout(Duration::from_secs(10), frame).await.expect("it does not hang");
            let Some(Ok(frame)) = frame else { break };
            text.push_str(&String::from_utf8_lossy(&frame.into_data().unwrap_or_default()));
        }
        text
    }

    pub(crate) async fn json(mut self, status: u16) -> Value {
        let text = self.text("no such thing").await;
        assert_eq!(self.status.as_u16(), status, "{text}");
        serde_json::from_str(&text).unwrap_or_default()
    }
}

impl Client {
    pub(crate) async fn send(&self, service: &HttpService, verb: &str, more: &[(&str, &str)], body: Value) -> Answer {
        let mut request = Request::builder().method(verb).uri("/mcp").header("host", "localhost");
        request = request.header("content-type", "application/json").header("accept", "*/*");
        if !self.session.is_empty() {
            request = request.header("mcp-session-id", &self.session);
        }
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = request.body(Whole(Some(text.into()))).expect("a request");
        if let Some(principal) = &self.principal {
            request.extensions_mut().insert(principal.clone());
        }
        let response = service.clone().call(request).await.unwrap_or_else(|never| match never {});
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok().map(str::to_owned));
        let (session, retry_after) = (header("mcp-session-id"), header("retry-after"));
        Answer { status: response.status(), session, retry_after, body: response.into_body() }
    }

    pub(crate) async fn ask(&self, service: &HttpService, method: &str, params: Value) -> Answer {
        self.send(service, "POST", &[], envelope::request(1, method, params)).await
    }

    pub(crate) async fn shake_hands(&self, service: &HttpService) -> Answer {
        self.send(service, "POST", &[], envelope::initialize(1, "2025-11-25", json!({}))).await
    }

    pub(crate) async fn initialize(service: &HttpService, principal: Option<Principal>) -> Self {
        let mut client = Self { session: String::new(), principal };
        let answer = client.shake_hands(service).await;
        client.session = answer.session.clone().expect("a session");
        answer.json(200).await;
        client.send(service, "POST", &[], envelope::initialized()).await.json(202).await;
        client
    }
}
