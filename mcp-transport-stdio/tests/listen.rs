//! Servers for many clients, each on a socket of its own.
//!
//! Every wait has a limit, so that a fault is a failure and not a hang.
#![cfg(feature = "server")]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_server::{NoArguments, RequestContext, Server, tool};
use mcp_transport_stdio::{Line, LineReader, ServeOptions, serve_tcp};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// Longer than anything here takes on the slowest machine.
const LIMIT: Duration = Duration::from_secs(20);

/// For what is not going to happen.
const SHORT: Duration = Duration::from_millis(200);

async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(LIMIT, future).await.expect("within the limit of a test")
}

fn server() -> Server {
    Server::builder("test", "1.0")
        .tool(tool("count", async |ctx: RequestContext, _: NoArguments| count(&ctx)))
        .tool(tool("slow", async |_, _: NoArguments| {
            sleep(2 * SHORT).await;
            "slept"
        }))
        .tool(tool("hang", async |_, _: NoArguments| std::future::pending::<String>().await))
        .build()
        .expect("a server")
}

/// Counts the calls of one connection.
fn count(ctx: &RequestContext) -> String {
    let count = ctx.connection().scratch().expect("a lasting connection").get_or_insert_with(|| AtomicU64::new(0));
    format!("call {}", count.fetch_add(1, Ordering::Relaxed) + 1)
}

/// A listener that can be stopped.
struct Listening {
    stop: oneshot::Sender<()>,
    served: JoinHandle<io::Result<()>>,
}

impl Listening {
    fn start<F: Future<Output = io::Result<()>> + Send + 'static>(
        serve: impl FnOnce(oneshot::Receiver<()>) -> F,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, served: tokio::spawn(serve(stopped)) }
    }

    async fn tcp(options: ServeOptions) -> (Self, std::net::SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        let serve = |stopped| serve_tcp(server(), listener, options, async { drop(stopped.await) });
        (Self::start(serve), address)
    }

    async fn stop(self) {
        drop(self.stop);
        within(self.served).await.expect("no panic").expect("it ends well");
    }
}

struct Client<S> {
    lines: LineReader<ReadHalf<S>>,
    writer: WriteHalf<S>,
}

impl Client<TcpStream> {
    async fn tcp(address: std::net::SocketAddr) -> Self {
        Self::new(within(TcpStream::connect(address)).await.expect("somebody listens"))
    }
}

impl<S: AsyncRead + AsyncWrite> Client<S> {
    fn new(stream: S) -> Self {
        let (reader, writer) = split(stream);
        Self { lines: LineReader::new(reader, 100_000), writer }
    }

    async fn send(&mut self, tool: &str) {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        let params = format!(r#"{{"name":"{tool}","_meta":{meta}}}"#);
        let line = format!(r#"{{"jsonrpc":"2.0","id":"{tool}","method":"tools/call","params":{params}}}"#);
        within(self.writer.write_all(format!("{line}\n").as_bytes())).await.expect("it reads");
    }

    /// The next line; `None` at the end.
    async fn recv(&mut self) -> Option<String> {
        match within(self.lines.next()).await.expect("a socket") {
            Some(Line::Message(line)) => Some(String::from_utf8_lossy(line).into_owned()),
            Some(Line::TooLong { .. }) => panic!("too long"),
            None => None,
        }
    }

    async fn assert_answer(&mut self, text: &str) {
        let answer = self.recv().await.expect("an answer");
        assert!(answer.contains(&format!("\"{text}\"")), "{answer}");
    }

    async fn assert_silent(&mut self) {
        let answer = timeout(SHORT, self.lines.next()).await;
        assert!(answer.is_err(), "{answer:?}");
    }
}

// covers: RB-69
#[tokio::test]
async fn what_is_kept_for_one_client_is_not_seen_by_another() {
    let (listening, address) = Listening::tcp(ServeOptions::default()).await;
    let mut clients = [Client::tcp(address).await, Client::tcp(address).await];
    for call in 1..4 {
        for client in &mut clients {
            client.send("count").await;
            client.assert_answer(&format!("call {call}")).await;
        }
    }
    let mut other = Client::tcp(address).await;
    other.send("count").await;
    other.assert_answer("call 1").await;
    listening.stop().await;
}

/// One that leaves, or says what is no message, is nobody else's affair.
// covers: RB-69
#[tokio::test]
async fn clients_come_and_go() {
    let (listening, address) = Listening::tcp(ServeOptions::default()).await;
    let mut stays = Client::tcp(address).await;
    for call in 1..10 {
        let mut goes = Client::tcp(address).await;
        goes.writer.write_all(b"rubbish\n").await.expect("it reads");
        goes.send("hang").await;
        drop(goes);
        stays.send("count").await;
        stays.assert_answer(&format!("call {call}")).await;
    }
    listening.stop().await;
}

#[tokio::test]
async fn clients_beyond_the_cap_wait() {
    // 0 counts as 1: no listener is there to serve no client.
    for (limit, most) in [(2, 2), (0, 1)] {
        let (listening, address) = Listening::tcp(ServeOptions::default().max_connections(limit)).await;
        let mut served = Vec::new();
        for _ in 0..most {
            let mut client = Client::tcp(address).await;
            client.send("count").await;
            client.assert_answer("call 1").await;
            served.push(client);
        }
        let mut waits = Client::tcp(address).await;
        waits.send("count").await;
        waits.assert_silent().await;
        for client in &mut served {
            client.send("count").await;
            client.assert_answer("call 2").await;
        }
        drop(served.pop());
        waits.assert_answer("call 1").await;
        listening.stop().await;
        assert_eq!(waits.recv().await, None);
    }
}

/// What is at work is answered, what is idle ends at once, and nobody is accepted any more.
#[tokio::test]
async fn stopping_lets_clients_finish() {
    let (listening, address) = Listening::tcp(ServeOptions::default().drain_timeout(LIMIT)).await;
    let mut idle = Client::tcp(address).await;
    idle.send("count").await;
    idle.assert_answer("call 1").await;
    let mut busy = Client::tcp(address).await;
    busy.send("slow").await;
    // It has begun when the next one is answered.
    busy.send("count").await;
    busy.assert_answer("call 1").await;
    let Listening { stop, served } = listening;
    drop(stop);
    assert_eq!(idle.recv().await, None);
    busy.assert_answer("slept").await;
    assert_eq!(busy.recv().await, None);
    within(served).await.expect("no panic").expect("it ends well");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens");
}

/// Handlers that do not finish are given up, so that a listener that was told to stop does.
#[tokio::test]
async fn stopping_has_an_end() {
    let (listening, address) = Listening::tcp(ServeOptions::default().drain_timeout(SHORT)).await;
    let mut client = Client::tcp(address).await;
    client.send("hang").await;
    client.send("count").await;
    client.assert_answer("call 1").await;
    listening.stop().await;
    assert_eq!(client.recv().await, None);
}

#[tokio::test]
async fn other_machines_are_not_served() {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a socket");
    let address = listener.local_addr().expect("an address").to_string();
    let refused = within(serve_tcp(server(), listener, ServeOptions::default(), std::future::pending())).await;
    let error = refused.expect_err("it is refused");
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    let text = error.to_string();
    assert!(text.contains(&address) && text.contains("bind to 127.0.0.1 or ::1"), "{text}");
}

#[cfg(unix)]
mod unix {
    use mcp_transport_stdio::serve_unix;
    use tokio::net::{UnixListener, UnixStream};

    use super::*;

    // covers: T-5
    #[tokio::test]
    async fn clients_of_a_unix_socket() {
        let path = std::env::temp_dir().join(format!("mcp-listen-{}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("a socket");
        let options = ServeOptions::default().max_connections(2);
        let listening =
            Listening::start(|stopped| serve_unix(server(), listener, options, async { drop(stopped.await) }));
        let connect = async || Client::new(UnixStream::connect(&path).await.expect("somebody listens"));
        let mut clients = [connect().await, connect().await];
        for client in &mut clients {
            client.send("count").await;
            client.assert_answer("call 1").await;
        }
        let mut waits = connect().await;
        waits.send("count").await;
        waits.assert_silent().await;
        let [mut client, left] = clients;
        drop(left);
        waits.assert_answer("call 1").await;
        client.send("slow").await;
        client.send("count").await;
        client.assert_answer("call 2").await;
        let Listening { stop, served } = listening;
        drop(stop);
        client.assert_answer("slept").await;
        assert_eq!(client.recv().await, None);
        within(served).await.expect("no panic").expect("it ends well");
        std::fs::remove_file(&path).expect("it is ours");
    }

    /// Only what cannot get better ends a listener.
    #[tokio::test]
    async fn a_socket_that_does_not_listen() {
        let (socket, mut other) = std::os::unix::net::UnixStream::pair().expect("sockets");
        // Something has to come, or else nobody looks.
        io::Write::write_all(&mut other, b"\n").expect("a socket");
        socket.set_nonblocking(true).expect("a socket");
        let listener = std::os::unix::net::UnixListener::from(std::os::fd::OwnedFd::from(socket));
        let listener = UnixListener::from_std(listener).expect("a socket");
        let outcome = within(serve_unix(server(), listener, ServeOptions::default(), std::future::pending())).await;
        assert_eq!(outcome.expect_err("it cannot be used").kind(), io::ErrorKind::InvalidInput);
    }
}
