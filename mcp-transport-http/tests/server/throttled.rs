//! Clients that read slowly, but do read.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use http_body::Body;
use hyper::client::conn::http2::Builder;
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcp_server::{NoArguments, Progress, RequestContext, tool};
use mcp_testkit::Recorder;
use mcp_transport_http::{HttpServer, HttpService};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

use crate::demo::server;
use crate::raw_http::Post;

/// How long a client may read nothing.
const STALL: Duration = Duration::from_secs(1);

/// How long a test waits for all that it reads.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that says as many bytes in the first event of a stream, and as many in the last.
async fn start(bytes: usize) -> SocketAddr {
    start_observed(bytes, &Recorder::default()).await
}

async fn start_observed(bytes: usize, recorder: &Recorder) -> SocketAddr {
    let long = move |ctx: RequestContext, _: NoArguments| async move {
        ctx.progress(Progress::new(1.0).message("x".repeat(bytes)));
        tokio::task::yield_now().await;
        "y".repeat(bytes)
    };
    let service = HttpService::new(server(|builder| builder.observer(recorder.observer()).tool(tool("long", long))));
    let server = HttpServer::bind("127.0.0.1:0").await.expect("a port").stall_timeout(STALL);
    let address = server.address();
    tokio::spawn(server.serve(service, std::future::pending()));
    address
}

/// Reading one event takes longer than a client may read nothing.
#[tokio::test]
async fn one_large_event_is_progress_over_http1() {
    const BYTES: usize = 16 << 20;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(64 << 10).expect("a small window");
    let mut stream = socket.connect(start(BYTES).await).await.expect("a connection");
    let post = Post::tool("long", json!({})).token();
    let content = post.content();
    let request = post.into_request();
    let mut text = format!("POST {} HTTP/1.1\r\nconnection: close\r\n", request.uri());
    for (name, value) in request.headers() {
        text.push_str(&format!("{name}: {}\r\n", value.to_str().expect("text")));
    }
    text.push_str(&format!("content-length: {}\r\n\r\n{content}", content.len()));
    stream.write_all(text.as_bytes()).await.expect("a connection");
    let read = async {
        let (mut read, mut part) = (0, vec![0; 128 << 10]);
        loop {
            let count = stream.read(&mut part).await.expect("no reset");
            if count == 0 {
                break read;
            }
            read += count;
            if read % (128 << 10) < count {
                sleep(Duration::from_millis(15)).await;
            }
        }
    };
    let read = timeout(PATIENCE, read).await.expect("an end");
    assert!(read > 2 * BYTES, "the connection was cut after {read} bytes");
}

/// As above; a stream has a window of its own.
#[tokio::test]
async fn one_large_event_is_progress_over_http2() {
    const BYTES: usize = 1 << 20;
    let stream = TcpStream::connect(start(BYTES).await).await.expect("a connection");
    let (mut sender, connection) = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(64 << 10)
        .handshake(TokioIo::new(stream))
        .await
        .expect("HTTP/2");
    tokio::spawn(connection);
    let response = sender.send_request(Post::tool("long", json!({})).token().into_request()).await.expect("an answer");
    let mut body = response.into_body();
    let read = async {
        let mut read = 0;
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let count = frame.expect("no reset").into_data().expect("data").len();
            read += count;
            sleep(Duration::from_millis(30)).await;
        }
        read
    };
    let read = timeout(PATIENCE, read).await.expect("an end");
    assert!(read > 2 * BYTES, "the stream was cut after {read} bytes");
}

/// A stream that is reset because its client does not read is reported, although its connection stays open.
#[tokio::test]
async fn a_stalled_stream_over_http2_is_reported() {
    let recorder = Recorder::default();
    let stream = TcpStream::connect(start_observed(1 << 20, &recorder).await).await.expect("a connection");
    let (mut sender, connection) = Builder::new(TokioExecutor::new())
        .initial_stream_window_size(64 << 10)
        .handshake(TokioIo::new(stream))
        .await
        .expect("HTTP/2");
    tokio::spawn(connection);
    let unread = sender.send_request(Post::tool("long", json!({})).token().into_request()).await.expect("an answer");
    let reported = async {
        while !recorder.take().contains(&"SlowReader".to_owned()) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, reported).await.expect("a report");
    assert!(!sender.is_closed(), "only the stream was reset");
    drop(unread);
}
