//! Programs that speak something else to a socket: browsers above all, which a page of somebody else can direct.
//!
//! Every wait has a limit, so that a fault is a failure and not a hang.
#![cfg(feature = "server")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_server::{NoArguments, Server, tool};
use mcp_testkit::envelope;
use mcp_transport_stdio::{ServeOptions, StopReason, serve_io, serve_tcp};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longer than anything here takes on the slowest machine.
const LIMIT: Duration = Duration::from_secs(20);

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.expect("within the limit of a test")
}

/// A call that needs no handshake, on one line.
fn call() -> String {
    envelope::modern_request("call", "tools/call", json!({ "name": "act" })).to_string() + "\n"
}

/// A server with a tool that must not run, and how often it did.
fn server() -> (Server, Arc<AtomicUsize>) {
    let ran = Arc::<AtomicUsize>::default();
    let counted = Arc::clone(&ran);
    let act = tool("act", move |_, _: NoArguments| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready("acted")
    });
    (Server::builder("test", "1.0").tool(act).build().expect("a server"), ran)
}

struct Listening {
    address: SocketAddr,
    ran: Arc<AtomicUsize>,
    task: JoinHandle<io::Result<()>>,
}

impl Listening {
    async fn start() -> Self {
        let (server, ran) = server();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(serve_tcp(server, listener, ServeOptions::default(), std::future::pending()));
        Self { address, ran, task }
    }

    /// Sends bytes on a connection of their own; returns what came back before the server closed it.
    async fn say(&self, bytes: &[u8]) -> String {
        say(TcpStream::connect(self.address).await.expect("it listens"), bytes).await
    }

    /// Nothing ran, and a client that speaks the protocol is served.
    async fn finish(self) {
        assert_eq!(self.ran.load(Ordering::SeqCst), 0, "a tool ran");
        let mut client = TcpStream::connect(self.address).await.expect("it listens");
        client.write_all(call().as_bytes()).await.expect("it reads");
        let mut answer = [0; 1024];
        let read = within(client.read(&mut answer)).await.expect("an answer");
        assert!(String::from_utf8_lossy(&answer[..read]).contains("acted"));
        self.task.abort();
    }
}

/// Sends bytes and reads to the end, which the server must bring about: this side never closes.
async fn say(mut stream: impl AsyncRead + AsyncWrite + Unpin, bytes: &[u8]) -> String {
    // The server may hang up before it has read all of it, which is as good an end as any.
    let _ = within(stream.write_all(bytes)).await;
    let mut heard = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count) = within(stream.read(&mut piece)).await
        && count > 0
    {
        heard.extend_from_slice(&piece[..count]);
    }
    String::from_utf8(heard).expect("text")
}

/// What a browser sends for `fetch(url, { method, mode: "no-cors", body })`.
fn fetch(method: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} / HTTP/1.1\r\nHost: 127.0.0.1:3000\r\nConnection: keep-alive\r\nContent-Length: {length}\r\n\
         sec-ch-ua-platform: \"Linux\"\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\r\n\
         Content-Type: text/plain;charset=UTF-8\r\nAccept: */*\r\nOrigin: https://evil.example\r\n\
         Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: empty\r\n\
         Referer: https://evil.example/\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\r\n{body}"
    )
}

// covers: SEC-3
#[tokio::test]
async fn sec_3_a_web_page_cannot_call_a_tool() {
    let listening = Listening::start().await;
    for body in [call(), format!("\n\n{}", call()), format!("{}{}", call(), call())] {
        for method in ["POST", "PUT", "GET"] {
            let heard = listening.say(fetch(method, &body).as_bytes()).await;
            assert!(!heard.contains("acted") && heard.lines().count() <= 1, "{heard}");
        }
    }
    listening.finish().await;
}

/// Other things that programs say first, each followed by what would be a call.
// covers: SEC-3
#[tokio::test]
async fn sec_3_other_protocols_end_the_connection() {
    let web_socket = "GET /chat HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                      Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let client_hello = [&[0x16, 0x03, 0x01, 0x00, 0xf8, 0x01, 0x00, 0x00, 0xf4, 0x03, 0x03][..], &[b'\n'; 4]].concat();
    let openings: [(&str, Vec<u8>); 12] = [
        ("HTTP/0.9", b"GET /\r\n".to_vec()),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("a proxy's request", b"CONNECT 127.0.0.1:3000 HTTP/1.1\r\n\r\n".to_vec()),
        ("WebSocket", web_socket.into()),
        ("TLS", client_hello),
        ("SMTP", b"EHLO evil.example\r\n".to_vec()),
        ("empty lines before it", b"\r\n\r\nPOST / HTTP/1.1\r\n\r\n".to_vec()),
        ("JSON that is no object", b"\"text\"\n".to_vec()),
        ("a number", b"5\n".to_vec()),
        ("an array before there can be one", format!("[{}]\n", call().trim_end()).into()),
        ("the beginning of an object", b"{ rubbish }\n".to_vec()),
        ("bytes that are not UTF-8", b"{\"a\":\"\xff\"}\n".to_vec()),
    ];
    let listening = Listening::start().await;
    for (name, mut bytes) in openings {
        bytes.extend_from_slice(call().as_bytes());
        let heard = listening.say(&bytes).await;
        assert!(!heard.contains("acted") && heard.lines().count() <= 1, "{name}: {heard}");
    }
    listening.finish().await;
}

/// What cannot become a message is not waited for: not to the end of its line, and not up to the limit of one.
// covers: SEC-3
#[tokio::test]
async fn sec_3_a_line_is_judged_by_how_it_begins() {
    let listening = Listening::start().await;
    listening.say(b"GET / HT").await;
    listening.say(b"\x16\x03\x01").await;
    listening.say(&vec![b'x'; 32 << 20]).await;
    listening.finish().await;
}

/// It goes for later lines, too: a stream that is out of step is not to be trusted with the next line.
// covers: SEC-3
#[tokio::test]
async fn sec_3_later_lines_are_no_exception() {
    let (server, ran) = server();
    let (mut client, ours) = duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(ours);
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    client.write_all(format!("{ping}rubbish\n{}", call()).as_bytes()).await.expect("there is room");
    let options = ServeOptions::default();
    let ended = within(serve_io(&server, reader, writer, &options, std::future::pending())).await;
    assert_eq!(ended.expect("it ends well"), StopReason::InvalidInput);
    let mut heard = String::new();
    within(client.read_to_string(&mut heard)).await.expect("text");
    let lines: Vec<&str> = heard.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains("result") && lines[1].contains("-32700"), "{heard}");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

/// A JSON object that is not a message, and a batch where there may be one, end nothing.
// covers: SEC-3
#[tokio::test]
async fn sec_3_objects_and_batches_go_on() {
    let (server, ran) = server();
    let client = r#"{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    let lines = [
        "{}",
        r#"{"jsonrpc":"1.0"}"#,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{client}}}"#),
        r#"[{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"act"}}]"#,
        "[]",
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"act"}}"#,
    ];
    let input = lines.join("\n");
    let mut heard = Vec::new();
    let options = ServeOptions::default();
    let served = serve_io(&server, input.as_bytes(), &mut heard, &options, std::future::pending());
    assert_eq!(within(served).await.expect("it ends well"), StopReason::InputClosed);
    assert_eq!(ran.load(Ordering::SeqCst), 2, "{}", String::from_utf8_lossy(&heard));
}

// covers: SEC-3
#[cfg(unix)]
#[tokio::test]
async fn sec_3_unix_sockets_are_no_exception() {
    let (server, ran) = server();
    let path = std::env::temp_dir().join(format!("mcp-foreign-{}", std::process::id()));
    let listener = tokio::net::UnixListener::bind(&path).expect("a socket");
    let options = ServeOptions::default();
    let task = tokio::spawn(mcp_transport_stdio::serve_unix(server, listener, options, std::future::pending()));
    let stream = tokio::net::UnixStream::connect(&path).await.expect("it listens");
    let heard = say(stream, fetch("POST", &call()).as_bytes()).await;
    assert!(!heard.contains("acted"), "{heard}");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    task.abort();
    std::fs::remove_file(&path).expect("it is ours");
}
