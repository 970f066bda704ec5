//! Instances, what they share, and clients that are sent from one to the other.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use mcp_server::types::LoggingLevel;
use mcp_server::{NoArguments, Principal, RequestContext, Server, text_resource, tool};
use mcp_transport_http::session::{
    EventIdKey, MemoryEventStore, MemorySessionStore, RecordVersion, SaveOutcome, SessionId, SessionRecord,
    SessionStore, StoreError, VersionedRecord, async_trait,
};
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

/// A store that does not answer, or not any more once it has saved so much.
#[derive(Default)]
pub(crate) struct Gone {
    before: Option<MemorySessionStore>,
    saves: AtomicUsize,
}

impl Gone {
    pub(crate) fn after(before: MemorySessionStore, saves: usize) -> Self {
        Self { before: Some(before), saves: AtomicUsize::new(saves) }
    }
}

fn unavailable() -> StoreError {
    StoreError("unavailable".to_owned())
}

#[async_trait]
impl SessionStore for Gone {
    async fn load(&self, id: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
        self.before.as_ref().ok_or_else(unavailable)?.load(id).await
    }

    async fn save(
        &self,
        id: SessionId,
        new: SessionRecord,
        read: RecordVersion,
        time: Duration,
    ) -> Result<SaveOutcome, StoreError> {
        let is_there = self.saves.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        self.before.as_ref().filter(|_| is_there).ok_or_else(unavailable)?.save(id, new, read, time).await
    }

    async fn touch(&self, id: SessionId, time: Duration) -> Result<bool, StoreError> {
        self.before.as_ref().ok_or_else(unavailable)?.touch(id, time).await
    }

    async fn remove(&self, id: SessionId) -> Result<bool, StoreError> {
        self.before.as_ref().ok_or_else(unavailable)?.remove(id).await
    }
}

/// A store that is asked and never answers.
#[derive(Clone, Default)]
pub(crate) struct Silent(pub(crate) Arc<AtomicUsize>);

#[async_trait]
impl SessionStore for Silent {
    async fn load(&self, _: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }

    async fn save(
        &self,
        _: SessionId,
        _: SessionRecord,
        _: RecordVersion,
        _: Duration,
    ) -> Result<SaveOutcome, StoreError> {
        std::future::pending().await
    }

    async fn touch(&self, _: SessionId, _: Duration) -> Result<bool, StoreError> {
        std::future::pending().await
    }

    async fn remove(&self, _: SessionId) -> Result<bool, StoreError> {
        std::future::pending().await
    }
}

/// A store that does some things, and fails at others as soon as it is told to.
#[derive(Default)]
pub(crate) struct Faulty {
    pub(crate) store: MemorySessionStore,
    /// Saving does not come to an end.
    pub(crate) hangs_at_save: AtomicBool,
    /// How often that was tried.
    pub(crate) hanging: AtomicUsize,
    /// Records cannot be removed.
    pub(crate) fails_at_remove: AtomicBool,
    /// Nothing is said about a session that is in use.
    pub(crate) hangs_at_touch: Mutex<Option<SessionId>>,
}

#[async_trait]
impl SessionStore for Faulty {
    async fn load(&self, id: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
        self.store.load(id).await
    }

    async fn save(
        &self,
        id: SessionId,
        new: SessionRecord,
        read: RecordVersion,
        time: Duration,
    ) -> Result<SaveOutcome, StoreError> {
        if self.hangs_at_save.load(Ordering::SeqCst) {
            self.hanging.fetch_add(1, Ordering::SeqCst);
            return std::future::pending().await;
        }
        self.store.save(id, new, read, time).await
    }

    async fn touch(&self, id: SessionId, time: Duration) -> Result<bool, StoreError> {
        if *self.hangs_at_touch.lock().expect("no panic") == Some(id) {
            return std::future::pending().await;
        }
        self.store.touch(id, time).await
    }

    async fn remove(&self, id: SessionId) -> Result<bool, StoreError> {
        if self.fails_at_remove.load(Ordering::SeqCst) { Err(unavailable()) } else { self.store.remove(id).await }
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
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send(service, "POST", &[], body).await
    }

    pub(crate) async fn shake_hands(&self, service: &HttpService) -> Answer {
        let info = json!({ "name": "c", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        self.ask(service, "initialize", params).await
    }

    pub(crate) async fn initialize(service: &HttpService, principal: Option<Principal>) -> Self {
        let mut client = Self { session: String::new(), principal };
        let answer = client.shake_hands(service).await;
        client.session = answer.session.clone().expect("a session");
        answer.json(200).await;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        client.send(service, "POST", &[], ready).await.json(202).await;
        client
    }
}

/// A store that is slow, and in which records go while they are used.
pub(crate) struct Leaky(pub(crate) MemorySessionStore);

#[async_trait]
impl SessionStore for Leaky {
    async fn load(&self, id: SessionId) -> Result<Option<VersionedRecord>, StoreError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.load(id).await
    }

    async fn save(
        &self,
        id: SessionId,
        new: SessionRecord,
        read: RecordVersion,
        time: Duration,
    ) -> Result<SaveOutcome, StoreError> {
        if !new.subscriptions.is_empty() {
            self.0.remove(id).await?;
        }
        self.0.save(id, new, read, time).await
    }

    async fn touch(&self, id: SessionId, time: Duration) -> Result<bool, StoreError> {
        self.0.touch(id, time).await
    }

    async fn remove(&self, id: SessionId) -> Result<bool, StoreError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.remove(id).await
    }
}
