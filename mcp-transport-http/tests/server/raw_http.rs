//! Requests that a test writes down, and responses that it reads bit by bit.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body::{Body, Frame};
use mcp_testkit::{Gate, envelope};
use mcp_transport_http::{HttpService, ResponseBody, ResponseFuture};
use serde_json::{Value, json};
use tower_service::Service;

/// The only modern revision.
pub(crate) const MODERN: &str = "2026-07-28";

/// The revisions that HTTP requests can name.
pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// A request that has not been sent yet.
pub(crate) struct Post {
    verb: Method,
    uri: String,
    headers: HeaderMap,
    extensions: http::Extensions,
    message: Value,
    body: Option<RequestBody>,
}

impl Post {
    /// A modern request with everything that belongs to it.
    pub(crate) fn modern(method: &str, params: Value) -> Self {
        let post = Self::message(envelope::modern_request(1, method, params));
        let params = &post.message["params"];
        let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str).map(str::to_owned);
        let post = name.into_iter().fold(post, |post, name| post.header("mcp-name", &name));
        post.header("mcp-protocol-version", MODERN).header("mcp-method", method)
    }

    /// A modern call of a tool.
    pub(crate) fn tool(name: &str, arguments: Value) -> Self {
        Self::modern("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// A request for changes.
    pub(crate) fn listen(filter: Value) -> Self {
        Self::modern("subscriptions/listen", json!({ "notifications": filter }))
    }

    /// A legacy request; older clients name no revision.
    pub(crate) fn legacy(version: Option<&str>, method: &str, params: Value) -> Self {
        let post = Self::message(envelope::request(1, method, params));
        version.into_iter().fold(post, |post, version| post.header("mcp-protocol-version", version))
    }

    /// A legacy call of a tool.
    pub(crate) fn legacy_tool(version: Option<&str>, name: &str) -> Self {
        Self::legacy(version, "tools/call", json!({ "name": name }))
    }

    /// Any message, with the headers that every request has.
    pub(crate) fn message(message: Value) -> Self {
        let (headers, extensions) = (HeaderMap::new(), http::Extensions::new());
        Self { verb: Method::POST, uri: "/mcp".to_owned(), headers, extensions, message, body: None }
            .header("host", "localhost:8000")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
    }

    /// Any text, with the headers that every request has.
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self::message(Value::Null).body(RequestBody::whole(text))
    }

    pub(crate) fn verb(mut self, verb: Method) -> Self {
        self.verb = verb;
        self
    }

    pub(crate) fn uri(mut self, uri: &str) -> Self {
        self.uri = uri.to_owned();
        self
    }

    pub(crate) fn id(mut self, id: Value) -> Self {
        self.message["id"] = id;
        self
    }

    /// Sets a member of the metadata; `null` removes it.
    pub(crate) fn meta(mut self, key: &str, value: Value) -> Self {
        let meta = &mut self.message["params"]["_meta"];
        meta[key] = value;
        if meta[key].is_null() {
            meta.as_object_mut().expect("metadata").remove(key);
        }
        self
    }

    /// Asks to hear of progress.
    pub(crate) fn token(self) -> Self {
        self.meta("progressToken", json!("token"))
    }

    /// Sets a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.remove(name);
        self.more(name, value)
    }

    /// Adds a header that may be there already.
    pub(crate) fn more(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        self.headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    pub(crate) fn extension<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }

    pub(crate) fn body(mut self, body: RequestBody) -> Self {
        self.body = Some(body);
        self
    }

    /// What the body says, unless it is another one.
    pub(crate) fn content(&self) -> String {
        self.message.to_string()
    }

    pub(crate) fn into_request(self) -> Request<RequestBody> {
        let text = self.content();
        let mut request = Request::new(self.body.unwrap_or_else(|| RequestBody::whole(text)));
        *request.method_mut() = self.verb;
        *request.uri_mut() = self.uri.parse().expect("an address");
        *request.headers_mut() = self.headers;
        *request.extensions_mut() = self.extensions;
        request
    }

    /// Hands the request to a service, which has not looked at it yet.
    pub(crate) fn send(self, service: &HttpService) -> Pending {
        Pending(Box::pin(service.clone().call(self.into_request())))
    }

    /// Sends the request and waits for the response.
    pub(crate) async fn to(self, service: &HttpService) -> Reply {
        self.send(service).reply().await
    }

    /// Sends a request that is answered with one JSON object.
    pub(crate) async fn json(self, service: &HttpService, status: u16) -> Value {
        self.to(service).await.json(status).await
    }
}

/// A body that comes in parts.
#[derive(Default)]
pub(crate) struct RequestBody {
    parts: VecDeque<Part>,
    length: Option<u64>,
}

pub(crate) enum Part {
    Data(Bytes),
    /// The rest comes when the gate is open.
    Wait(Gate),
    /// The client goes away.
    Broken,
    Trailers,
}

impl RequestBody {
    pub(crate) fn whole(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        Self { length: Some(text.len() as u64), parts: VecDeque::from([Part::Data(text)]) }
    }

    /// A body whose length nobody knows in advance.
    pub(crate) fn parts(parts: impl IntoIterator<Item = Part>) -> Self {
        Self { parts: parts.into_iter().collect(), length: None }
    }

    /// Says how long it is, whether that is so or not.
    pub(crate) fn announcing(self, length: u64) -> Self {
        Self { length: Some(length), ..self }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            let frame = match self.parts.front() {
                None => return Poll::Ready(None),
                Some(Part::Wait(gate)) => {
                    if pin!(gate.wait()).poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    self.parts.pop_front();
                    continue;
                }
                Some(Part::Data(data)) => Ok(Frame::data(data.clone())),
                Some(Part::Broken) => Err(io::ErrorKind::ConnectionReset.into()),
                Some(Part::Trailers) => Ok(Frame::trailers(HeaderMap::new())),
            };
            self.parts.pop_front();
            return Poll::Ready(Some(frame));
        }
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.length.map(http_body::SizeHint::with_exact).unwrap_or_default()
    }
}

/// A response that has not come yet; dropping it is what hyper does when the client goes away.
pub(crate) struct Pending(Pin<Box<ResponseFuture<RequestBody>>>);

impl Pending {
    pub(crate) async fn reply(self) -> Reply {
        let response = self.0.await.unwrap_or_else(|never| match never {});
        Reply::new(response)
    }

    /// Lets the service do what it can without waiting.
    pub(crate) async fn poll(&mut self) -> Option<Reply> {
        let polled = poll_fn(|cx| Poll::Ready(self.0.as_mut().poll(cx))).await;
        match polled {
            Poll::Ready(Ok(response)) => Some(Reply::new(response)),
            Poll::Ready(Err(never)) => match never {},
            Poll::Pending => None,
        }
    }

    /// Lets the service do what it can, which is not enough for a response.
    pub(crate) async fn starts(&mut self) {
        let reply = self.poll().await;
        assert!(reply.is_none(), "there is a response already: {:?}", reply.map(|reply| reply.status));
    }
}

/// A response whose body is read as far as the test wants to.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: ResponseBody,
    read: String,
}

impl Reply {
    pub(crate) fn new(response: http::Response<ResponseBody>) -> Self {
        let (parts, body) = response.into_parts();
        // Where there are no sessions no request gets one, whatever happens.
        assert!(crate::HAS_SESSIONS || !parts.headers.contains_key("mcp-session-id"));
        assert_eq!(parts.headers.get("last-event-id"), None);
        Self { status: parts.status, headers: parts.headers, body, read: String::new() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    /// The next piece of the body, if there is one without waiting.
    pub(crate) async fn poll_frame(&mut self) -> Poll<Option<String>> {
        poll_fn(|cx| Poll::Ready(Pin::new(&mut self.body).poll_frame(cx).map(text_of))).await
    }

    /// The next piece of the body.
    pub(crate) async fn frame(&mut self) -> Option<String> {
        poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx).map(text_of)).await
    }

    /// All of the body that is left.
    pub(crate) async fn rest(&mut self) -> String {
        let mut all = std::mem::take(&mut self.read);
        while let Some(frame) = self.frame().await {
            all.push_str(&frame);
        }
        assert!(self.body.is_end_stream());
        all
    }

    /// The one JSON object that the body is.
    pub(crate) async fn json(mut self, status: u16) -> Value {
        let text = self.rest().await;
        assert_eq!(self.status, status, "{text}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// The response is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The next event, which may be a comment.
    pub(crate) async fn block(&mut self) -> Option<String> {
        assert!(self.is_stream() && self.status == StatusCode::OK, "no stream: {}", self.status);
        loop {
            if let Some((block, rest)) = self.read.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.read = rest;
                return Some(block);
            }
            let frame = self.frame().await?;
            self.read.push_str(&frame);
        }
    }

    /// The next message on the stream.
    pub(crate) async fn event(&mut self) -> Value {
        let block = self.block().await.expect("an event");
        message_of(&block)
    }

    /// Everything that is left on the stream: a message each, and `null` for comments.
    pub(crate) async fn events(&mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(block) = self.block().await {
            events.push(if block == ":" { Value::Null } else { message_of(&block) });
        }
        events
    }
}

/// The message of an event, which has nothing but data, on one line.
fn message_of(block: &str) -> Value {
    let data = block.strip_prefix("data: ").unwrap_or_else(|| panic!("not only data: {block}"));
    serde_json::from_str(data).unwrap_or_else(|_| panic!("no JSON: {data}"))
}

fn text_of(frame: Option<Result<Frame<Bytes>, std::convert::Infallible>>) -> Option<String> {
    let frame = frame?.unwrap_or_else(|never| match never {});
    let data = frame.into_data().unwrap_or_else(|_| panic!("nothing but data is sent"));
    Some(String::from_utf8(data.to_vec()).expect("text"))
}
