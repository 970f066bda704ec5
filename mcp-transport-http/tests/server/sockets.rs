//! What only sockets show: clients that hang up, headers that are too long, the end of a server.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcp_testkit::envelope::tool_text;
use mcp_transport_http::{Drained, HttpServer, HttpService};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::demo::Demo;
use crate::raw_http::{Post, RequestBody};

/// A server that runs until it is told to stop.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) ended: JoinHandle<Drained>,
}

impl Running {
    async fn start(demo: &Demo) -> Self {
        Self::with(demo, |server| server).await
    }

    pub(crate) async fn with(demo: &Demo, set: impl FnOnce(HttpServer) -> HttpServer) -> Self {
        let server = set(HttpServer::bind("127.0.0.1:0").await.expect("a port"));
        let (address, (stop, stopped)) = (server.address(), oneshot::channel::<()>());
        assert!(server.url().starts_with(&format!("http://{address}/")));
        let service = HttpService::new(demo.server());
        let ended = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            server.serve(service, stopped).await
        });
        Self { address, stop, ended }
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.address).await
    }

    /// A client that speaks HTTP/2.
    async fn multiplexed(&self) -> SendRequest<RequestBody> {
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
        tokio::spawn(connection);
        sender
    }

    /// Tells the server to stop; how it ended is known later.
    fn stop(self) -> JoinHandle<Drained> {
        self.stop.send(()).expect("a server");
        self.ended
    }
}

/// A client that speaks HTTP/1.1, and hangs up when it is dropped.
pub(crate) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.expect("a connection"), read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, post: Post) {
        let content = post.content();
        let request = post.into_request();
        let mut text = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri());
        for (name, value) in request.headers() {
            text.push_str(&format!("{name}: {}\r\n", value.to_str().expect("text")));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n{content}", content.len()));
        self.stream.write_all(text.as_bytes()).await.expect("a connection");
    }

    /// Reads until a text comes; returns everything up to it.
    async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.read.windows(end.len()).position(|window| window == end.as_bytes()) {
                let rest = self.read.split_off(at + end.len());
                return String::from_utf8(std::mem::replace(&mut self.read, rest)).expect("text");
            }
            let count = timeout(PATIENCE, self.stream.read_buf(&mut self.read)).await.expect("no more waiting");
            assert!(count.is_ok_and(|count| count > 0), "no `{end}`: {}", String::from_utf8_lossy(&self.read));
        }
    }

    /// Reads a response that has one JSON object; returns its head, too.
    pub(crate) async fn response(&mut self) -> (String, Value) {
        let head = self.until("\r\n\r\n").await;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let length: usize = length.parse().expect("a number");
        while self.read.len() < length {
            self.stream.read_buf(&mut self.read).await.expect("the rest");
        }
        let rest = self.read.split_off(length);
        let body = std::mem::replace(&mut self.read, rest);
        (head, serde_json::from_slice(&body).expect("JSON"))
    }

    /// Whether the server hung up, without saying anything more.
    async fn is_hung_up(&mut self) -> bool {
        matches!(timeout(PATIENCE, self.stream.read_buf(&mut self.read)).await, Ok(Ok(0) | Err(_)))
    }
}

/// Waits until handlers left as many notes.
async fn notes(demo: &Demo, expected: &[&str]) {
    let (begin, mut all) = (Instant::now(), Vec::new());
    while all.len() < expected.len() && begin.elapsed() < PATIENCE {
        all.extend(demo.notes.take());
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(all, expected);
}

async fn body_of(response: http::Response<Incoming>) -> String {
    let mut body = response.into_body();
    let mut all = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        all.extend_from_slice(&frame.expect("a connection").into_data().expect("data"));
    }
    String::from_utf8(all).expect("text")
}

/// How long a test waits for what takes no time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Requests follow each other on a connection, and streams are sent as they grow.
// covers: H-1, H-14, S3.71
#[tokio::test]
async fn a_connection_serves_many_requests() {
    let demo = Demo::default();
    let running = Running::start(&demo).await;
    let mut client = running.client().await;
    for version in [None, Some("2025-06-18")] {
        client.send(Post::legacy_tool(version, "hello")).await;
        let (head, answer) = client.response().await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!(tool_text(&answer), "hello");
    }
    client.send(Post::tool("report_and_wait", json!({})).token()).await;
    let head = client.until("\r\n\r\n").await;
    assert!(head.contains("text/event-stream") && head.contains("x-accel-buffering: no"), "{head}");
    assert!(client.until("\n\n").await.contains("notifications/progress"));
    demo.gate.open();
    assert!(client.until("\r\n0\r\n\r\n").await.contains("waited"));
    client.send(Post::tool("hello", json!({})).uri("/elsewhere")).await;
    assert!(client.response().await.0.starts_with("HTTP/1.1 404"));
    client.send(Post::tool("hello", json!({})).header("host", "evil.example.com")).await;
    assert!(client.response().await.0.starts_with("HTTP/1.1 403"));
}

/// A client that hangs up has cancelled, with HTTP/1.1.
// covers: H-25, H-26, H-28, S3.32, S4.77, S4.100, RB-37, RB-42, RB-61
#[tokio::test]
async fn who_hangs_up_has_cancelled() {
    let demo = Demo::default();
    let running = Running::start(&demo).await;
    let mut client = running.client().await;
    client.send(Post::tool("wait", json!({}))).await;
    notes(&demo, &["began"]).await;
    drop(client);
    notes(&demo, &["dropped"]).await;
    let mut client = running.client().await;
    client.send(Post::tool("report_and_wait", json!({})).token()).await;
    client.until("notifications/progress").await;
    notes(&demo, &["began"]).await;
    drop(client);
    notes(&demo, &["dropped"]).await;
    assert_eq!(demo.notes.take(), [""; 0]);
}

/// With HTTP/2, one request is cancelled and the others on the connection go on.
// covers: H-25, H-28, S3.32, S4.92, S4.93, RB-61
#[tokio::test]
async fn streams_are_cancelled_one_by_one() {
    let demo = Demo::default();
    let running = Running::start(&demo).await;
    let mut client = running.multiplexed().await;
    let url = format!("http://{}/mcp", running.address);
    let call = |name: &str| Post::tool(name, json!({})).token().without("host").uri(&url).into_request();
    let stays = tokio::spawn(client.send_request(call("wait")));
    notes(&demo, &["began"]).await;
    let goes = tokio::spawn(client.send_request(call("wait")));
    notes(&demo, &["began"]).await;
    goes.abort();
    notes(&demo, &["dropped"]).await;
    let stream = client.send_request(call("report_and_wait")).await.expect("a stream");
    notes(&demo, &["began"]).await;
    drop(stream);
    notes(&demo, &["dropped"]).await;
    demo.gate.open();
    let stays = stays.await.expect("a task").expect("an answer");
    assert!(body_of(stays).await.contains("waited"));
    let hello = client.send_request(call("hello")).await.expect("an answer");
    assert_eq!(hello.status(), 200);
}

/// A connection has a hundred requests at work, and the next waits for one of them.
// covers: S4.92, S4.93, S4.100, S4.101
#[tokio::test]
async fn a_connection_has_so_many_streams() {
    let demo = Demo::default();
    let running = Running::start(&demo).await;
    let mut client = running.multiplexed().await;
    let url = format!("http://{}/mcp", running.address);
    let call = || Post::tool("wait", json!({})).without("host").uri(&url).into_request();
    let calls: Vec<_> = (0..101).map(|_| tokio::spawn(client.send_request(call()))).collect();
    notes(&demo, &["began"; 100]).await;
    sleep(Duration::from_millis(50)).await;
    assert_eq!(demo.notes.take(), [""; 0], "one more waits");
    demo.gate.open();
    for call in calls {
        assert!(body_of(call.await.expect("a task").expect("an answer")).await.contains("waited"));
    }
}

/// Headers have a limit, and what is no HTTP at all harms nobody.
// covers: RB-34, RB-62
#[tokio::test]
async fn headers_have_a_limit() {
    let demo = Demo::default();
    let running = Running::start(&demo).await;
    for size in [30 << 10, 62 << 10] {
        let mut client = running.client().await;
        client.send(Post::tool("hello", json!({})).header("x-long", &"a".repeat(size))).await;
        assert!(client.response().await.0.starts_with("HTTP/1.1 200"));
    }
    for size in [64 << 10, 100 << 10] {
        let mut client = running.client().await;
        let long = format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-long: {}\r\n\r\n", "a".repeat(size));
        // The server may hang up before it has read everything.
        let _ = client.stream.write_all(long.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = timeout(PATIENCE, client.stream.read_to_end(&mut answer)).await.expect("no more waiting");
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
    let mut client = running.client().await;
    let _ = client.stream.write_all(b"\0\x01\x02 this is no HTTP\r\n\r\n").await;
    let _ = timeout(PATIENCE, client.stream.read_to_end(&mut Vec::new())).await.expect("no more waiting");
    let mut client = running.client().await;
    client.send(Post::tool("hello", json!({}))).await;
    assert!(client.response().await.0.starts_with("HTTP/1.1 200"));
}

/// At the end idle connections are closed, streams end properly, and calls may finish.
// covers: RB-17, RB-60, S4.84, L-11
#[tokio::test]
async fn the_end_is_graceful() {
    let demo = Demo::default();
    let running = Running::start(&demo).await;
    let (mut idle, mut call, mut listener) = (running.client().await, running.client().await, running.client().await);
    idle.send(Post::tool("hello", json!({}))).await;
    idle.response().await;
    call.send(Post::tool("wait", json!({}))).await;
    listener.send(Post::listen(json!({ "toolsListChanged": true }))).await;
    listener.until("acknowledged").await;
    notes(&demo, &["began"]).await;
    let address = running.address;
    let ended = running.stop();
    assert!(idle.is_hung_up().await);
    assert!(listener.until("\r\n0\r\n\r\n").await.contains(r#""resultType":"complete""#));
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    assert!(!ended.is_finished());
    demo.gate.open();
    assert_eq!(tool_text(&call.response().await.1), "waited");
    assert!(call.is_hung_up().await);
    let drained = timeout(PATIENCE, ended).await.expect("no more waiting").expect("an end");
    assert_eq!((drained.finished, drained.aborted), (2, 0));
}

/// What takes too long is cut off, and the server is gone in time.
// covers: RB-17, RB-60, S4.84
#[tokio::test]
async fn the_end_is_bounded() {
    let demo = Demo::default();
    let running = Running::with(&demo, |server| server.drain_timeout(Duration::from_millis(50)).path("/")).await;
    let mut client = running.client().await;
    client.send(Post::tool("wait", json!({})).uri("/")).await;
    notes(&demo, &["began"]).await;
    let ended = running.stop();
    let (head, answer) = client.response().await;
    assert!(head.starts_with("HTTP/1.1 503"), "{head}");
    assert_eq!(answer["id"], 1);
    notes(&demo, &["dropped"]).await;
    let drained = timeout(PATIENCE, ended).await.expect("no more waiting").expect("an end");
    assert_eq!((drained.finished, drained.aborted), (0, 1));
}

/// As many connections as there may be; the next waits until there is a place.
// covers: RB-52, RB-62
#[tokio::test]
async fn connections_have_a_limit() {
    let demo = Demo::default();
    let running = Running::with(&demo, |server| server.max_connections(1)).await;
    let mut first = running.client().await;
    first.send(Post::tool("hello", json!({}))).await;
    first.response().await;
    let mut second = running.client().await;
    second.send(Post::tool("hello", json!({}))).await;
    let waiting = timeout(Duration::from_millis(50), second.stream.read_buf(&mut second.read)).await;
    assert!(waiting.is_err(), "there is no place yet");
    drop(first);
    assert_eq!(tool_text(&second.response().await.1), "hello");
}

/// What is printed is where clients on this machine can go.
// covers: RB-70
#[tokio::test]
async fn the_address_can_be_used() {
    for (address, host) in [("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.1")] {
        let server = HttpServer::bind(address).await.expect("a socket").path("tools");
        assert_eq!(server.url(), format!("http://{host}:{}/tools", server.address().port()));
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    let address = listener.local_addr().expect("an address");
    assert_eq!(HttpServer::new(listener).expect("a server").max_connections(usize::MAX).address(), address);
}

/// The beginning of a request: a head that is not complete.
const HALF_A_HEAD: &[u8] = b"POST /mcp HTTP/1.1\r\nhost: local";

/// How long a client may take for the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

impl Client {
    /// How long it takes until the server hangs up.
    async fn time_until_hung_up(&mut self) -> Duration {
        let since = Instant::now();
        let read = self.stream.read_buf(&mut self.read).await;
        assert!(matches!(read, Ok(0) | Err(_)), "{}", String::from_utf8_lossy(&self.read));
        since.elapsed()
    }
}

/// The first head has to arrive in time, and so have later ones after each response.
// covers: RB-34, RB-62
#[tokio::test(start_paused = true)]
async fn heads_have_a_time() {
    let demo = Demo::default();
    let running = Running::start(&demo).await;
    let slack = Duration::from_secs(1);
    for head in [&b""[..], b"PRI * HTT", HALF_A_HEAD] {
        let mut client = running.client().await;
        client.stream.write_all(head).await.expect("a connection");
        let time = client.time_until_hung_up().await;
        assert!(time >= HEADER_TIMEOUT - slack && time <= HEADER_TIMEOUT + slack, "{time:?}");
    }
    for head in [&b""[..], HALF_A_HEAD] {
        let mut client = running.client().await;
        for _ in 0..3 {
            sleep(Duration::from_secs(50)).await;
            client.send(Post::tool("hello", json!({}))).await;
            assert_eq!(tool_text(&client.response().await.1), "hello");
        }
        client.stream.write_all(head).await.expect("a connection");
        let time = client.time_until_hung_up().await;
        assert!(time >= HEADER_TIMEOUT - slack && time <= HEADER_TIMEOUT + slack, "{time:?}");
    }
}

/// A request that takes long is no silence, and there is as much time as ever after it.
// covers: RB-34
#[tokio::test(start_paused = true)]
async fn long_requests_are_not_idle() {
    let demo = Demo::default();
    let running = Running::start(&demo).await;
    let mut client = running.client().await;
    client.send(Post::tool("wait", json!({}))).await;
    notes(&demo, &["began"]).await;
    sleep(Duration::from_secs(1000)).await;
    demo.gate.open();
    assert!(client.until("0\r\n\r\n").await.contains("waited"));
    sleep(HEADER_TIMEOUT - Duration::from_secs(1)).await;
    client.send(Post::tool("hello", json!({}))).await;
    assert_eq!(tool_text(&client.response().await.1), "hello");
    assert!(client.time_until_hung_up().await <= HEADER_TIMEOUT + Duration::from_secs(1));
}
