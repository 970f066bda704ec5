//! Any requests to a server over HTTP, one after the other.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Method as Verb, Request, StatusCode, Uri};
use http_body::{Body, Frame};
use mcp_server::{NoArguments, RequestContext, Server, text_resource, tool};
use mcp_transport_http::internals::read_events;
use mcp_transport_http::{HttpOptions, HttpService, SessionMode};
use mcp_types::jsonrpc::{Limits, parse};
use reqwest::Url;
use tokio::time::timeout;
use tower_service::Service as _;

use super::client::runtime;

/// Whatever requests come, a server answers each of them with a status of its own choice and a body that can be read; and
/// it answers nobody who names another host, or comes from a page of another origin.
///
/// The first line may begin with `@`, followed by letters: `n` for a server without sessions for legacy clients, `m` for
/// one that refuses them, `k` for one that takes small bodies only.
///
/// Requests are separated by lines with `---`. The first line of a request is its method and address, those up to an empty
/// one are its headers, and the rest is its body. The usual headers are added unless a line of the headers is `-`; a value
/// `$` stands for the id of the newest session.
///
/// # Panics
///
/// Panics if one of these promises does not hold.
pub fn server_http(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n').peekable();
    let start = lines.next_if(|line| line.first() == Some(&b'@')).unwrap_or_default();
    let sessions = match () {
        () if start.contains(&b'n') => SessionMode::Stateless,
        () if start.contains(&b'm') => SessionMode::Off,
        () => SessionMode::Stateful,
    };
    let mut options = HttpOptions::default().sessions(sessions);
    if start.contains(&b'k') {
        options = options.body_limit(100);
    }
    let lines: Vec<&[u8]> = lines.collect();
    runtime().block_on(async {
        let mut service = HttpService::with_options(server(), options);
        let mut session = HeaderValue::from_static("none");
        for lines in lines.split(|line| *line == b"---").take(MOST) {
            let Some(request) = request(lines, &session) else { continue };
            let (uri, headers) = (request.uri().clone(), request.headers().clone());
            let reply = exchange(&mut service, request).await;
            is_sound(&reply);
            if reply.status != StatusCode::FORBIDDEN {
                is_welcome(&uri, &headers);
            }
            if let Some(id) = reply.headers.get("mcp-session-id") {
                session = id.clone();
            }
        }
    });
}

/// How many requests are looked at.
const MOST: usize = 16;

/// How long a response is read.
const READING: Duration = Duration::from_secs(40);

/// Everything that a server may answer with.
const STATUSES: [u16; 14] = [200, 202, 204, 400, 403, 404, 405, 406, 408, 409, 413, 415, 429, 503];

fn server() -> Server {
    Server::builder("server", "1.0")
        .tool(tool("echo", async |_, _: NoArguments| "hello"))
        .tool(tool("slow", async |ctx: RequestContext, _: NoArguments| {
            ctx.progress(1);
            tokio::time::sleep(Duration::from_secs(20)).await;
            "done"
        }))
        .resource(text_resource("a:b", "resource", "text"))
        .resource_subscriptions()
        .build()
        .expect("a server")
}

/// Reads a request; none if HTTP itself has no such thing.
fn request(lines: &[&[u8]], session: &HeaderValue) -> Option<Request<BodyOf>> {
    let (first, rest) = lines.split_first()?;
    let mut words = first.split(|byte| *byte == b' ');
    let verb = Verb::from_bytes(words.next().filter(|verb| !verb.is_empty()).unwrap_or(b"POST")).ok()?;
    let uri = Uri::try_from(words.next().unwrap_or(b"/mcp")).ok()?;
    let end = rest.iter().position(|line| line.is_empty()).unwrap_or(rest.len());
    let (heads, body) = rest.split_at(end);
    let mut headers = HeaderMap::new();
    if !heads.contains(&&b"-"[..]) {
        headers.insert(HOST, HeaderValue::from_static("localhost"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    }
    for line in heads {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let Ok(name) = HeaderName::from_bytes(&line[..colon]) else { continue };
        let value = match line[colon + 1..].trim_ascii() {
            b"$" => session.clone(),
            value => HeaderValue::from_bytes(value).ok()?,
        };
        // The usual headers are replaced, others may come repeatedly.
        if name == HOST || name == CONTENT_TYPE || name == ACCEPT {
            headers.insert(name, value);
        } else {
            headers.append(name, value);
        }
    }
    let body = body.get(1..).unwrap_or_default().join(&b'\n');
    let mut request = Request::new(BodyOf(Some(Bytes::from(body))));
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (verb, uri, headers);
    Some(request)
}

/// A response, as far as it was read.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// Whether it was read to its end.
    is_whole: bool,
}

/// Sends a request, and reads the response for a while.
pub(super) async fn exchange(service: &mut HttpService, request: Request<BodyOf>) -> Reply {
    let response = timeout(READING, service.call(request)).await.expect("a request is answered in time");
    let (head, body) = response.unwrap_or_else(|never| match never {}).into_parts();
    let mut body = pin!(body);
    let mut read = Vec::new();
    let reading = async {
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            if let Ok(data) = frame.unwrap_or_else(|never| match never {}).into_data() {
                read.extend_from_slice(&data);
            }
        }
    };
    let is_whole = timeout(READING, reading).await.is_ok();
    Reply { status: head.status, headers: head.headers, body: read, is_whole }
}

/// A response says what it is, and is that.
fn is_sound(reply: &Reply) {
    let Reply { status, headers, body, is_whole } = reply;
    let text = String::from_utf8_lossy(body);
    assert!(STATUSES.contains(&status.as_u16()), "{status} with {text}");
    for value in headers.values() {
        assert!(value.to_str().is_ok(), "{value:?} is not visible ASCII");
    }
    let is_message = |message: &[u8]| assert!(parse(message, &Limits::default()).is_ok(), "{status} with {text}");
    match headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) {
        Some("application/json") => is_message(body),
        Some("text/event-stream") => {
            let stream = read_events([&body[..]], usize::MAX);
            stream.events.iter().for_each(|(_, data)| is_message(data));
        }
        Some(kind) => assert!(kind.starts_with("text/plain") && *is_whole, "{kind} with {text}"),
        None => assert!(body.is_empty() && *is_whole, "{text} is of no type"),
    }
}

/// Who is answered would be of this machine to a browser, too.
fn is_welcome(uri: &Uri, headers: &HeaderMap) {
    let is_near = |url: &str| {
        let url = Url::parse(url).ok();
        url.is_some_and(|url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")))
    };
    let hosts = headers.get_all(HOST).iter().map(HeaderValue::as_bytes);
    for host in hosts.chain(uri.authority().map(|authority| authority.as_str().as_bytes())) {
        let host = String::from_utf8_lossy(host);
        assert!(is_near(&format!("http://{host}/")), "{host} is another machine");
    }
    for origin in headers.get_all(ORIGIN) {
        let origin = String::from_utf8_lossy(origin.as_bytes());
        assert!(is_near(&origin), "{origin} is another origin");
    }
}

/// A body that is there at once.
pub(super) struct BodyOf(pub(super) Option<Bytes>);

impl Body for BodyOf {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}
