//! Instances of the fixture server that share their sessions by way of Redis, and what happens when one of them dies.
//!
//! Needs `redis-server` (Debian: `apt-get install redis-server`).

use std::collections::BTreeMap;
use std::net::TcpListener as StdListener;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use mcp_redis::RedisOptions;
use mcp_server::{Principal, Server};
use mcp_transport_http::{HttpOptions, HttpService, SessionMode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tower_service::Service as _;

/// Nothing takes that long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A Redis of the test's own, without a file.
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    async fn start(port: Option<u16>) -> Self {
        let free = || StdListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let port = port.unwrap_or_else(free);
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).current_dir(std::env::temp_dir());
        let child = command.spawn().expect("`redis-server` is there: apt-get install redis-server");
        let up = async {
            while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, up).await.expect("Redis starts");
        Self { child, port }
    }

    async fn stop(mut self) -> u16 {
        self.child.kill().await.expect("it can be stopped");
        self.port
    }
}

/// An instance of the fixture server.
struct Instance {
    child: Child,
    address: String,
}

impl Instance {
    async fn start(redis: &Redis) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_conformance-server"));
        command.args(["--http", "127.0.0.1:0", "--redis", &format!("redis://127.0.0.1:{}", redis.port)]);
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("it starts");
        let mut url = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        timeout(PATIENCE, output.read_line(&mut url)).await.expect("in time").expect("a line");
        let address = url.trim().trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        assert!(!address.is_empty(), "the server says where it is");
        Self { child, address }
    }

    /// SIGKILL: nothing can be tidied up.
    async fn kill(mut self) {
        self.child.kill().await.expect("it can be killed");
    }

    /// SIGTERM: it ends in good order.
    async fn end(mut self) {
        let id = self.child.id().expect("it runs").to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status().await.expect("it can be told");
        assert!(told.success());
        let ended = timeout(PATIENCE, self.child.wait()).await.expect("an end in time").expect("an end");
        assert!(ended.success(), "{ended}");
    }
}

/// An answer, as far as it was read.
struct Answer {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

/// Sends a request and reads until the answer ends, or until something is in it.
async fn send(address: &str, verb: &str, headers: &[(&str, &str)], body: &str, until: Option<&str>) -> Answer {
    let mut stream = TcpStream::connect(address).await.expect("somebody listens");
    let mut head = format!("{verb} /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAccept: */*\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(head.as_bytes()).await.expect("somebody reads");
    let mut text = String::new();
    loop {
        let mut piece = [0; 4096];
        let count = timeout(PATIENCE, stream.read(&mut piece)).await.expect("an answer in time").expect("an answer");
        text += &String::from_utf8_lossy(&piece[..count]);
        if count == 0 || until.is_some_and(|until| text.contains(until)) {
            break;
        }
    }
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
    let headers =
        lines.filter_map(|line| line.split_once(": ")).map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    Answer { status, headers: headers.collect(), body: body.to_owned() }
}

struct Client {
    session: String,
}

impl Client {
    async fn initialize(address: &str) -> Self {
        let client = json!({ "name": "c", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
        let answer = send(address, "POST", &[], &body, None).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let client = Self { session: answer.headers.get("mcp-session-id").expect("a session").clone() };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
        assert_eq!(send(address, "POST", &client.headers(), &ready, None).await.status, 202);
        client
    }

    fn headers(&self) -> [(&str, &str); 2] {
        [("Mcp-Session-Id", &self.session), ("MCP-Protocol-Version", "2025-11-25")]
    }

    async fn ask(&self, address: &str, method: &str, params: Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
        send(address, "POST", &self.headers(), &body, None).await
    }

    async fn get(&self, address: &str, last: Option<&str>, until: Option<&str>) -> Answer {
        let mut headers = self.headers().to_vec();
        headers.extend(last.map(|last| ("Last-Event-ID", last)));
        send(address, "GET", &headers, "", until).await
    }
}

fn modern() -> (Vec<(&'static str, &'static str)>, String) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "test_simple_text", "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let headers =
        vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "test_simple_text")];
    (headers, body)
}

/// An instance dies, and another one goes on: with the session, what was settled in it, and what its client missed.
// covers: S4.45, S4.115..S4.117, RB-54, RB-55
#[tokio::test(flavor = "multi_thread")]
async fn another_instance_goes_on() {
    goes_on_after(Instance::kill).await;
}

/// The same for an instance that is told to end, as when a new version is rolled out.
// covers: S4.45, S4.115..S4.117, RB-54
#[tokio::test(flavor = "multi_thread")]
async fn instances_can_be_replaced() {
    goes_on_after(Instance::end).await;
}

async fn goes_on_after(the_end: impl AsyncFn(Instance)) {
    let redis = Redis::start(None).await;
    let (one, two) = (Instance::start(&redis).await, Instance::start(&redis).await);
    let client = Client::initialize(&one.address).await;
    let subscribed = client.ask(&one.address, "resources/subscribe", json!({ "uri": "test://watched-resource" })).await;
    assert_eq!(subscribed.status, 200, "{}", subscribed.body);
    assert_eq!(client.ask(&one.address, "logging/setLevel", json!({ "level": "emergency" })).await.status, 200);
    // The answer is said to nobody: the stream has ended, and the client is to come back for it.
    let early = client.ask(&one.address, "tools/call", json!({ "name": "test_reconnection" })).await;
    let last = early.body.lines().find_map(|line| line.strip_prefix("id: ")).expect("an event").trim().to_owned();
    assert!(!early.body.contains("completed"), "{}", early.body);
    sleep(Duration::from_millis(500)).await;
    the_end(one).await;

    let answer = client.ask(&two.address, "tools/call", json!({ "name": "test_simple_text" })).await;
    assert!(answer.status == 200 && answer.body.contains("simple text"), "{}", answer.body);
    let logged = client.ask(&two.address, "tools/call", json!({ "name": "test_tool_with_logging" })).await;
    assert!(!logged.body.contains("notifications/message"), "the level holds: {}", logged.body);
    let missed = client.get(&two.address, Some(&last), Some("completed")).await;
    assert!(missed.status == 200 && missed.body.contains("Reconnection test completed"), "{}", missed.body);
    let announcing = async {
        loop {
            client.ask(&two.address, "tools/call", json!({ "name": "test_trigger_changes" })).await;
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        heard = client.get(&two.address, None, Some("notifications/resources/updated")) => {
            assert!(heard.body.contains("test://watched-resource"), "the subscription holds: {}", heard.body);
        }
        () = announcing => {}
    }
    let stranger = Client { session: "0".repeat(64) };
    assert_eq!(stranger.ask(&two.address, "ping", json!({})).await.status, 404);
    let other = Client::initialize(&two.address).await;
    assert_eq!(other.get(&two.address, Some(&last), None).await.status, 400, "that event is somebody else's");
}

/// What a client ends at one instance ends at others within the time that the documentation names, also if nothing is
/// sent to them.
// covers: SEC-10
#[tokio::test]
async fn sec_10_streams_end_at_other_instances() {
    let redis = Redis::start(None).await;
    let (one, two) = (Instance::start(&redis).await, Instance::start(&redis).await);
    let client = Client::initialize(&one.address).await;
    let (address, other) = (one.address.clone(), Client { session: client.session.clone() });
    let stream = tokio::spawn(async move { other.get(&address, None, None).await });
    // The stream is there when the session is in use.
    sleep(Duration::from_millis(200)).await;
    assert!(!stream.is_finished());
    assert_eq!(send(&two.address, "DELETE", &client.headers(), "", None).await.status, 204);
    let ended = timeout(PATIENCE, stream).await.expect("it ends").expect("an answer");
    assert_eq!(ended.status, 200);
    assert_eq!(client.ask(&one.address, "ping", json!({})).await.status, 404);
    one.end().await;
    two.end().await;
    redis.stop().await;
}

/// Without Redis there is no session, with a clear error; when it is back, everything works without a restart. All of
/// that happens under load, and no client gets the response of another.
// covers: RB-54
#[tokio::test(flavor = "multi_thread")]
async fn redis_may_come_and_go() {
    let redis = Redis::start(None).await;
    let instance = Instance::start(&redis).await;
    let (begun, mut at_work) = tokio::sync::mpsc::channel(8);
    let worker = |number| tokio::spawn(work(instance.address.clone(), number, begun.clone()));
    let load: Vec<_> = (0..8).map(worker).collect();
    for _ in &load {
        timeout(PATIENCE, at_work.recv()).await.expect("the load begins");
    }
    let client = Client::initialize(&instance.address).await;
    let (headers, body) = modern();
    let port = redis.stop().await;
    for _ in 0..5 {
        let answer = client.ask(&instance.address, "ping", json!({})).await;
        assert_eq!((answer.status, answer.headers.contains_key("retry-after")), (503, true), "{}", answer.body);
        let answer = send(&instance.address, "POST", &headers, &body, None).await;
        assert_eq!(answer.status, 200, "modern clients do not notice: {}", answer.body);
    }
    let _redis = Redis::start(Some(port)).await;
    let works_again = async {
        loop {
            let answer = client.ask(&instance.address, "ping", json!({})).await;
            match answer.status {
                503 => sleep(Duration::from_millis(100)).await,
                // It came back without its records.
                status => return assert_eq!(status, 404, "{}", answer.body),
            }
        }
    };
    timeout(PATIENCE, works_again).await.expect("it recovers by itself");
    let client = Client::initialize(&instance.address).await;
    assert_eq!(client.ask(&instance.address, "ping", json!({})).await.status, 200);
    for worker in load {
        let (before, during) = timeout(PATIENCE, worker).await.expect("it recovers, too").expect("nothing is mixed up");
        assert!(before > 0 && during > 0, "{before} answers before, {during} refusals");
    }
}

/// Asks all the time, until Redis was away and is back; returns how often it was answered before, and refused then.
async fn work(address: String, number: usize, begun: tokio::sync::mpsc::Sender<()>) -> (usize, usize) {
    let mut client = Client::initialize(&address).await;
    let (mut before, mut during) = (0, 0);
    for round in 0.. {
        let prompt = format!("{number}-{round}");
        let arguments = json!({ "arg1": prompt, "arg2": "x" });
        let params = json!({ "name": "test_prompt_with_arguments", "arguments": arguments });
        let answer = client.ask(&address, "prompts/get", params).await;
        match (answer.status, during) {
            (200, 0) => {
                before += 1;
                if before == 1 {
                    let _ = begun.try_send(());
                }
            }
            (503, _) => during += 1,
            // The session went with the records of Redis, and the next one works.
            (404, _) => {
                client = Client::initialize(&address).await;
                continue;
            }
            (200, _) => return (before, during),
            (status, _) => panic!("{status}: {}", answer.body),
        }
        if answer.status == 200 {
            assert!(answer.body.contains(&prompt), "somebody else's answer: {}", answer.body);
        }
        sleep(Duration::from_millis(10)).await;
    }
    (before, during)
}

/// A second user who knows the name of a session is refused at every instance.
// covers: S4.69, S4.71, S4.116
#[tokio::test(flavor = "multi_thread")]
async fn a_second_user_is_refused_everywhere() {
    let redis = Redis::start(None).await;
    let mut services = Vec::new();
    for _ in 0..2 {
        let url = format!("redis://127.0.0.1:{}", redis.port);
        let store = mcp_redis::Redis::connect(&url, RedisOptions::default()).await.expect("Redis answers");
        let options = HttpOptions::default()
            .sessions(SessionMode::Stateful)
            .session_store(Arc::new(store.sessions()), Duration::from_secs(60));
        let server = Server::builder("shared", "1.0").build().expect("a server");
        services.push(HttpService::with_options(server, options));
    }
    let ask = async |service: &HttpService, user: &str, session: &str, body: Value| {
        let mut request =
            http::Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
        if !session.is_empty() {
            request = request.header("mcp-session-id", session);
        }
        let mut request = request.body(body.to_string()).expect("a request");
        request.extensions_mut().insert(Principal::new(Some("issuer"), user));
        service.clone().call(request).await.unwrap_or_else(|never| match never {})
    };
    let client = json!({ "name": "c", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    let begun = ask(&services[0], "ann", "", hello).await;
    let session = begun.headers().get("mcp-session-id").and_then(|id| id.to_str().ok()).expect("a session").to_owned();
    for service in services.iter().rev() {
        assert_eq!(ask(service, "bob", &session, ping.clone()).await.status(), 403);
        assert_eq!(ask(service, "ann", &session, ping.clone()).await.status(), 200);
        assert_eq!(ask(service, "bob", &session, ping.clone()).await.status(), 403);
    }
}

/// With a store, clients can be sent anywhere.
// covers: S4.43
#[tokio::test(flavor = "multi_thread")]
async fn any_load_balancer_will_do() {
    let redis = Redis::start(None).await;
    let (one, two) = (Instance::start(&redis).await, Instance::start(&redis).await);
    let proxy = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let front = proxy.local_addr().expect("an address").to_string();
    let backs = [one.address.clone(), two.address.clone()];
    // Every connection goes to the next one. The name in `Host` is the proxy's, which is this machine's as well.
    let balancer = tokio::spawn(async move {
        for back in backs.iter().cycle() {
            let (mut client, _) = proxy.accept().await.expect("a client");
            let back = back.clone();
            tokio::spawn(async move {
                let mut server = TcpStream::connect(back).await.expect("an instance");
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    let (headers, body) = modern();
    let clients =
        [Client::initialize(&front).await, Client::initialize(&front).await, Client::initialize(&front).await];
    for round in 0..20 {
        for client in &clients {
            let level = if round % 2 == 0 { "emergency" } else { "debug" };
            assert_eq!(client.ask(&front, "logging/setLevel", json!({ "level": level })).await.status, 200);
            let answer = client.ask(&front, "tools/call", json!({ "name": "test_tool_with_logging" })).await;
            assert_eq!(
                (answer.status, answer.body.contains("notifications/message")),
                (200, round % 2 == 1),
                "{round}"
            );
            assert_eq!(send(&front, "POST", &headers, &body, None).await.status, 200);
        }
    }
    for client in &clients {
        assert_eq!(send(&front, "DELETE", &client.headers(), "", None).await.status, 204);
        assert_eq!(client.ask(&front, "ping", json!({})).await.status, 404);
        assert_eq!(client.ask(&front, "ping", json!({})).await.status, 404);
    }
    balancer.abort();
}
