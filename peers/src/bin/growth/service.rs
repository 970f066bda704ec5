//! A service without sockets: requests go in, responses come out, in the thread that asks.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use mcp_server::Server;
use mcp_transport_http::{HttpOptions, HttpService, ResponseBody, ResponseFuture, SessionMode, SessionOptions};
use tokio::runtime::{Builder, Runtime};
use tower_service::Service as _;

/// A service, and the runtime whose clock and tasks it uses.
#[derive(Clone)]
pub(crate) struct Service {
    http: HttpService,
    runtime: Arc<Runtime>,
}

impl Service {
    /// Serves with sessions for legacy clients, and with limits above all that is measured.
    pub(crate) fn new(server: Server) -> Self {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let sessions = SessionOptions::default().idle_limit(usize::MAX).idle_bytes_limit(usize::MAX);
        let options = HttpOptions::default()
            .sessions(SessionMode::Stateful)
            .session_options(sessions)
            .body_limit(8 << 20)
            .max_in_flight(MANY)
            .max_listen_streams(MANY);
        let http = {
            let _guard = runtime.enter();
            HttpService::with_options(server, options)
        };
        Self { http, runtime: Arc::new(runtime) }
    }

    /// Starts a request, and polls it once.
    pub(crate) fn start(&self, request: Request<Full<Bytes>>) -> Started {
        let _guard = self.runtime.enter();
        let mut future = Box::pin(self.http.clone().call(request));
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(response)) => Started::Ready(response),
            Poll::Pending => Started::Pending(future),
        }
    }

    /// Returns the response to a request for which nothing has to wait.
    pub(crate) fn response(&self, request: Request<Full<Bytes>>) -> Response<ResponseBody> {
        match self.start(request) {
            Started::Ready(response) => response,
            Started::Pending(future) => match self.runtime.block_on(future) {
                Ok(response) => response,
            },
        }
    }

    /// Returns the body of a response that ends.
    pub(crate) fn body(&self, request: Request<Full<Bytes>>) -> Bytes {
        let response = self.response(request);
        let status = response.status();
        let mut body = response.into_body();
        let mut all = self.frame(&mut body).unwrap_or_default();
        while let Some(more) = self.frame(&mut body) {
            let mut joined = BytesMut::from(all);
            joined.extend_from_slice(&more);
            all = joined.freeze();
        }
        assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&all));
        all
    }

    /// Returns what a body has ready, if anything.
    pub(crate) fn frame(&self, body: &mut ResponseBody) -> Option<Bytes> {
        let _guard = self.runtime.enter();
        match Pin::new(&mut body.frame()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
            Poll::Ready(None) | Poll::Pending => None,
        }
    }

    /// Creates a session; returns its id.
    pub(crate) fn session(&self) -> String {
        let response = self.response(post(INITIALIZE.to_owned(), &[]));
        let id = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).expect("a session").to_owned();
        self.response(in_session(INITIALIZED.to_owned(), &id));
        id
    }

    /// Ends a session.
    pub(crate) fn end(&self, session: &str) {
        let mut request = Request::new(Full::default());
        *request.method_mut() = Method::DELETE;
        *request.uri_mut() = http::Uri::from_static("/mcp");
        set(&mut request, &[("host", "localhost"), (SESSION, session), VERSION]);
        let status = self.response(request).status();
        assert!(status.is_success(), "{status}");
    }

    /// Opens the stream of a session.
    pub(crate) fn stream(&self, session: &str) -> ResponseBody {
        let mut request = Request::new(Full::default());
        *request.uri_mut() = http::Uri::from_static("/mcp");
        set(&mut request, &[("host", "localhost"), ("accept", "text/event-stream"), (SESSION, session), VERSION]);
        self.opened(request)
    }

    /// Returns a stream that stays open, of which all was read that is there.
    pub(crate) fn opened(&self, request: Request<Full<Bytes>>) -> ResponseBody {
        let response = self.response(request);
        assert!(response.status().is_success(), "{}", response.status());
        let mut body = response.into_body();
        while self.frame(&mut body).is_some() {}
        body
    }
}

/// A request that was polled once.
pub(crate) enum Started {
    Ready(Response<ResponseBody>),
    Pending(Pin<Box<ResponseFuture<Full<Bytes>>>>),
}

/// A modern call of a tool.
pub(crate) fn call(tool: &str, arguments: &str) -> Request<Full<Bytes>> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{{META}}}}}}}"#
    );
    post(body, &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)])
}

/// A call of a tool in a session.
pub(crate) fn session_call(session: &str, id: usize, tool: &str, arguments: &str) -> Request<Full<Bytes>> {
    let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
    in_session(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#), session)
}

/// A subscription to changes of the list of tools.
pub(crate) fn listen(id: usize) -> Request<Full<Bytes>> {
    let params = format!(r#"{{"notifications":{{"toolsListChanged":true}},"_meta":{{{META}}}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{params}}}"#);
    post(body, &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")])
}

fn in_session(body: String, session: &str) -> Request<Full<Bytes>> {
    post(body, &[VERSION, (SESSION, session)])
}

fn post(body: String, headers: &[(&'static str, &str)]) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static("/mcp");
    let all = [("host", "localhost"), ("content-type", "application/json"), ACCEPT];
    set(&mut request, &all);
    set(&mut request, headers);
    request
}

fn set(request: &mut Request<Full<Bytes>>, headers: &[(&'static str, &str)]) {
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().expect("a header"));
    }
}

const MANY: usize = 1 << 20;
const SESSION: &str = "mcp-session-id";
const VERSION: (&str, &str) = ("mcp-protocol-version", "2025-11-25");
const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");
const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0"}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1.0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
