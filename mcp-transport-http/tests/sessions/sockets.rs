//! What only sockets show: clients that hang up, and come back on another connection.

use std::net::SocketAddr;
use std::time::Duration;

use hyper::client::conn::http2::Builder;
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcp_server::{NoArguments, RequestContext, tool};
use mcp_transport_http::{HttpServer, HttpService};
use mcp_types::LoggingLevel;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::demo::server;
use crate::raw_http::Post;
use crate::session_client::{Client, NEWEST, Shop, metrics, stateful};

/// Nothing here takes this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection that hangs up when it is dropped.
struct Line {
    stream: TcpStream,
    read: String,
}

impl Line {
    /// Sends a request on a connection of its own.
    async fn send(address: SocketAddr, post: Post) -> Self {
        let content = post.content();
        let request = post.into_request();
        let mut text = format!("{} {} HTTP/1.1\r\n", request.method(), request.uri());
        for (name, value) in request.headers() {
            text.push_str(&format!("{name}: {}\r\n", value.to_str().expect("text")));
        }
        if request.method() == http::Method::POST {
            text.push_str(&format!("content-length: {}\r\n\r\n{content}", content.len()));
        } else {
            text.push_str("\r\n");
        }
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(text.as_bytes()).await.expect("a connection");
        Self { stream, read: String::new() }
    }

    /// Reads until a text comes; returns everything up to it.
    async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some((before, rest)) = self.read.split_once(end) {
                let (before, rest) = (before.to_owned(), rest.to_owned());
                self.read = rest;
                return before;
            }
            let mut bytes = Vec::new();
            let count = timeout(PATIENCE, self.stream.read_buf(&mut bytes)).await.expect("no more waiting");
            assert!(count.is_ok_and(|count| count > 0), "no `{end}`: {}", self.read);
            self.read.push_str(std::str::from_utf8(&bytes).expect("text"));
        }
    }

    /// The next message on a stream, with the id of its event.
    async fn event(&mut self) -> (String, Option<Value>) {
        self.until("id: ").await;
        let id = self.until("\n").await;
        self.until("data: ").await;
        let data = self.until("\n").await;
        (id, serde_json::from_str(&data).ok())
    }
}

/// A client that hangs up has not cancelled, and comes back on another connection.
// covers: S4.37, S4.78, S4.96, S4.117, RB-61
#[tokio::test]
async fn who_hangs_up_may_come_back() {
    let shop = Shop::default();
    let service = shop.service();
    let server = HttpServer::bind("127.0.0.1:0").await.expect("a port");
    let (address, (stop, stopped)) = (server.address(), oneshot::channel::<()>());
    let served = service.clone();
    let running = tokio::spawn(async move {
        let stopped = async {
            let _ = stopped.await;
        };
        server.serve(served, stopped).await
    });
    // The session is the service's, whichever way requests come to it.
    let client = Client::open(&service, NEWEST).await;
    let waiting = Line::send(address, client.tool("wait")).await;
    shop.steps.allow(2);
    let mut stepping = Line::send(address, client.tool("step").id(json!(2)).token()).await;
    let (_, first) = stepping.event().await;
    assert_eq!(first, None);
    let (id, first) = stepping.event().await;
    assert_eq!(first.expect("a message")["params"]["progress"], 1);
    drop((waiting, stepping));
    sleep(Duration::from_millis(300)).await;
    assert_eq!(shop.demo.notes.take(), ["began"]);
    assert_eq!(metrics(&service).active, 1);
    shop.steps.allow(10);
    shop.demo.gate.open();
    let mut again = Line::send(address, client.get().header("last-event-id", &id)).await;
    for step in 2..=10 {
        assert_eq!(again.event().await.1.expect("a message")["params"]["progress"], step);
    }
    assert_eq!(again.event().await.1.expect("a result")["id"], 2);
    timeout(PATIENCE, async {
        while metrics(&service).active > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("nobody uses it any more");
    let mut listening = Line::send(address, client.get()).await;
    assert_eq!(listening.event().await.1, None);
    stop.send(()).expect("a server");
    // The stream ends properly, and the server with it.
    listening.until("0\r\n\r\n").await;
    timeout(PATIENCE, running).await.expect("an end").expect("a server");
    assert_eq!(metrics(&service).live, 0);
}

/// A request that was cancelled counts as long as its client does not read what was said before.
#[tokio::test]
async fn what_is_cancelled_counts_until_its_stream_ends() {
    let talk = tool("talk", async |ctx: RequestContext, _: NoArguments| {
        ctx.log(LoggingLevel::Error, &"x".repeat(100 << 10));
        std::future::pending::<&str>().await
    });
    let hello = tool("hello", async |_, _: NoArguments| "hello");
    let server = server(|builder| builder.tool(talk).tool(hello));
    let service = HttpService::with_options(server, stateful().max_in_flight(1));
    let client = Client::open(&service, NEWEST).await;
    let server = HttpServer::bind("127.0.0.1:0").await.expect("a port");
    let stream = TcpStream::connect(server.address()).await.expect("a connection");
    tokio::spawn(server.serve(service.clone(), std::future::pending()));
    let (mut sender, connection) = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(16 << 10)
        .handshake(TokioIo::new(stream))
        .await
        .expect("HTTP/2");
    tokio::spawn(connection);
    let unread = sender.send_request(client.tool("talk").id("slow".into()).into_request()).await.expect("an answer");
    client.notify("notifications/cancelled", json!({ "requestId": "slow" })).await;
    client.tool("hello").json(&service, 503).await;
    drop(unread);
    let again = async {
        while client.tool("hello").to(&service).await.status.as_u16() != 200 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, again).await.expect("there is room again");
}
