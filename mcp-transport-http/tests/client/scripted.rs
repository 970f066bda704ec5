//! A server that says what a test wants, byte by byte, and remembers what it was asked.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_client::types::CallToolResult;
use mcp_client::{Client, ClientBuilder, Error, Mode};
use mcp_testkit::envelope;
use mcp_transport_http::HttpTransport;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How long a test may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Fails if something takes too long.
pub(crate) async fn within<F: IntoFuture>(work: F) -> F::Output {
    tokio::time::timeout(LIMIT, work.into_future()).await.expect("it takes too long")
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    pub(crate) at: tokio::time::Instant,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The method of the message, or the verb.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.verb)
    }
}

/// What a server says to a request.
#[derive(Clone, Debug)]
pub(crate) struct Reply(Vec<Step>);

#[derive(Clone, Debug)]
enum Step {
    Say(Vec<u8>),
    Hang,
    Close,
    Repeat(Vec<u8>, usize),
}

impl Reply {
    pub(crate) fn raw(text: impl Into<Vec<u8>>) -> Self {
        Self(vec![Step::Say(text.into())])
    }

    /// A status, with headers and a body.
    pub(crate) fn new(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        Self::raw(format!("HTTP/1.1 {status} Status\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::new(status, &[], "")
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::new(200, &[("content-type", "application/json")], &body.to_string())
    }

    /// A stream of events that ends.
    pub(crate) fn events(text: &str) -> Self {
        Self::open_events(text).then_close()
    }

    /// A stream of events that stays open.
    pub(crate) fn open_events(text: &str) -> Self {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        Self::raw(format!("{head}{text}")).then_hang()
    }

    pub(crate) fn hang() -> Self {
        Self(vec![Step::Hang])
    }

    pub(crate) fn close() -> Self {
        Self(vec![Step::Close])
    }

    pub(crate) fn then_hang(mut self) -> Self {
        self.0.push(Step::Hang);
        self
    }

    pub(crate) fn then_close(mut self) -> Self {
        self.0.retain(|step| !matches!(step, Step::Hang));
        self.0.push(Step::Close);
        self
    }

    pub(crate) fn then_repeat(mut self, text: &str, times: usize) -> Self {
        self.0.retain(|step| !matches!(step, Step::Hang));
        self.0.push(Step::Repeat(text.into(), times));
        self.0.push(Step::Hang);
        self
    }
}

/// A server that follows a script.
pub(crate) struct Scripted {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

type Script = Arc<Mutex<dyn FnMut(&Seen) -> Reply + Send>>;

impl Scripted {
    pub(crate) async fn start(script: impl FnMut(&Seen) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, log): (Script, _) = (Arc::new(Mutex::new(script)), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, Arc::clone(&script), Arc::clone(&log)));
            }
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn transport(&self) -> HttpTransport {
        HttpTransport::new(self.url()).expect("an address").reconnect_interval(Duration::from_millis(10))
    }

    pub(crate) async fn client(&self) -> Client {
        self.connect(self.transport()).await.expect("a connection")
    }

    pub(crate) async fn connect(&self, transport: HttpTransport) -> Result<Client, Error> {
        within(builder().connect(transport)).await
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("nobody panicked").clone()
    }

    /// The requests with a method, or a verb where there is none.
    pub(crate) fn seen_of(&self, method: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.method() == method).collect()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        self.seen().iter().map(|seen| seen.method().to_owned()).collect()
    }

    /// Waits until something was seen.
    pub(crate) async fn until(&self, enough: impl Fn(&[Seen]) -> bool) {
        within(async {
            while !enough(&self.seen.lock().expect("nobody panicked")) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }
}

async fn talk(mut stream: TcpStream, script: Script, log: Arc<Mutex<Vec<Seen>>>) {
    let mut buffer = Vec::new();
    while let Some(seen) = read_request(&mut stream, &mut buffer).await {
        log.lock().expect("nobody panicked").push(seen.clone());
        let reply = (script.lock().expect("nobody panicked"))(&seen);
        for step in reply.0 {
            match step {
                Step::Say(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Repeat(bytes, times) => {
                    for _ in 0..times {
                        if stream.write_all(&bytes).await.is_err() {
                            return;
                        }
                    }
                }
                Step::Hang => {
                    // Until the client goes away.
                    let _ = stream.read(&mut [0]).await;
                    return;
                }
                Step::Close => return,
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let (head, length, start) = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(buffer[..end].to_vec()).expect("text");
            let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
            let headers: BTreeMap<String, String> =
                lines.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
            let length = headers.get("content-length").map_or(0, |length| length.parse().expect("a number"));
            break ((head.lines().next().expect("a line").to_owned(), headers), length, end + 4);
        }
        read_more(stream, buffer).await?;
    };
    while buffer.len() < start + length {
        read_more(stream, buffer).await?;
    }
    let body = serde_json::from_slice(&buffer[start..start + length]).unwrap_or_default();
    buffer.drain(..start + length);
    let ((line, headers), mut words) = (head.clone(), head.0.split(' '));
    assert!(line.ends_with("HTTP/1.1"));
    let (verb, path) = (words.next().expect("a word").to_owned(), words.next().expect("a word").to_owned());
    Some(Seen { verb, path, headers, body, at: tokio::time::Instant::now() })
}

async fn read_more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<()> {
    (stream.read_buf(buffer).await.ok()? > 0).then_some(())
}

/// A client that gives up soon.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1.0").handshake_timeout(Duration::from_secs(2))
}

pub(crate) fn legacy_builder() -> ClientBuilder {
    builder().mode(Mode::Legacy)
}

/// The answer to a request.
pub(crate) fn answer(seen: &Seen, result: &Value) -> Value {
    envelope::response(seen.body["id"].clone(), result.clone())
}

/// The text of an event with a message.
pub(crate) fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

/// A modern server; a script says what becomes of calls.
pub(crate) fn modern(mut script: impl FnMut(&Seen) -> Reply + Send + 'static) -> impl FnMut(&Seen) -> Reply + Send {
    move |seen| match seen.method() {
        "server/discover" => Reply::json(&answer(seen, &envelope::discover_result(json!({ "tools": {} })))),
        _ => script(seen),
    }
}

/// A legacy server with sessions, `s1` and so on, and without a stream of its own; a script says what becomes of the
/// rest.
pub(crate) fn legacy(mut script: impl FnMut(&Seen) -> Reply + Send + 'static) -> impl FnMut(&Seen) -> Reply + Send {
    let mut sessions = 0;
    move |seen| match seen.method() {
        "server/discover" => Reply::status(400),
        "initialize" => {
            sessions += 1;
            let session = format!("s{sessions}");
            let body = shake_hands(seen).to_string();
            Reply::new(200, &[("content-type", "application/json"), ("mcp-session-id", &session)], &body)
        }
        "notifications/initialized" => Reply::status(202),
        _ => script(seen),
    }
}

/// The answer to a handshake that agrees with everything.
pub(crate) fn shake_hands(seen: &Seen) -> Value {
    let version = seen.body["params"]["protocolVersion"].as_str().unwrap_or_default();
    let capabilities = json!({ "tools": { "listChanged": true }, "prompts": { "listChanged": true } });
    answer(seen, &envelope::initialize_result(version, capabilities))
}

/// What a call of the tool `t` comes back with.
pub(crate) async fn call(client: &Client) -> Result<String, Error> {
    within(client.call_tool("t").arguments(&json!({})).idle_timeout(Duration::from_secs(5)))
        .await
        .map(|result| text_of(&result))
}

pub(crate) fn text_of(result: &CallToolResult) -> String {
    serde_json::to_value(result).expect("JSON")["content"][0]["text"].as_str().expect("a text").to_owned()
}
