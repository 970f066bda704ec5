//! The examples over HTTP, with the commands that they print or document.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

const MINIMAL_HTTP: &str = include_str!("../../src/bin/minimal_http.rs");

const AXUM: &str = include_str!("../../src/bin/axum_server.rs");

/// The limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Starts a server, and returns it with its output up to a line that begins with `last`.
pub(crate) async fn start(program: &str, arguments: &[&str], last: &str) -> (Child, String) {
    let mut command = Command::new(program);
    let mut child = command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the server starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut text = String::new();
    while !text.lines().last().is_some_and(|line| line.starts_with(last)) {
        let line = timeout(TIMEOUT, lines.next_line()).await.expect("it does not hang").expect("text");
        text.push_str(&line.expect("more text"));
        text.push('\n');
    }
    (child, text)
}

/// Performs a `curl` command. Returns the stream of the response, and its text up to `until`.
async fn curl(command: &str, until: &str) -> (TcpStream, String) {
    let words: Vec<&str> = command.split('\'').collect();
    let url = command.split_whitespace().find(|word| word.starts_with("http://")).expect("an address");
    let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
    let mut body = "";
    let mut headers = format!("Host: {host}\r\nAccept: */*\r\nConnection: close\r\n");
    for pair in words.chunks(2) {
        match pair {
            [flag, value] if flag.ends_with("-H ") => headers += &format!("{value}\r\n"),
            [flag, value] if flag.ends_with("-d ") => body = value,
            _ => {}
        }
    }
    let verb = if body.is_empty() { "GET" } else { "POST" };
    let length = body.len();
    let mut stream = TcpStream::connect(host).await.expect("the server accepts");
    let request = format!("{verb} /{path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    let answer = read_until(&mut stream, until).await;
    (stream, answer)
}

async fn read_until(stream: &mut TcpStream, until: &str) -> String {
    let mut text = String::new();
    while !text.contains(until) {
        let mut piece = [0; 4096];
        let count =
            timeout(TIMEOUT, stream.read(&mut piece)).await.expect("it does not hang").expect("something to read");
        assert_ne!(count, 0, "no {until:?} in {text}");
        text += &String::from_utf8_lossy(&piece[..count]);
    }
    text
}

/// All commands that the demo prints work.
#[tokio::test]
async fn the_printed_commands_work() {
    let (child, text) = start(env!("CARGO_BIN_EXE_demo"), &["--address", "127.0.0.1:0"], "Ctrl-C").await;
    let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("curl")).collect();
    let [modern, legacy, watch, listen, note] = commands[..] else { panic!("{text}") };
    let (_, answer) = curl(modern, "serverInfo").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("42.1648128"), "{answer}");
    let (_, answer) = curl(legacy, "structuredContent").await;
    assert!(answer.contains("42.1648128") && !answer.contains("resultType"), "{answer}");
    let (_, answer) = curl(watch, "25997").await;
    assert!(answer.contains("text/event-stream") && answer.contains("primes so far"), "{answer}");
    let (mut stream, answer) = curl(listen, "subscriptions/acknowledged").await;
    assert!(answer.contains("text/event-stream"), "{answer}");
    curl(note, "note://1").await;
    read_until(&mut stream, "resources/list_changed").await;
    if cfg!(unix) {
        stops_gracefully(child, stream).await;
    } else {
        // There is no signal to stop it with.
        drop(child);
    }
}

/// On shutdown a subscription ends with its result.
async fn stops_gracefully(mut server: Child, mut stream: TcpStream) {
    Command::new("kill").arg(server.id().expect("it runs").to_string()).status().await.expect("there is `kill`");
    read_until(&mut stream, "\"result\"").await;
    let status = timeout(TIMEOUT, server.wait()).await.expect("it ends in time").expect("a status");
    assert!(status.success(), "{status}");
}

/// The documented commands of the axum example work, and unknown tokens are refused.
#[tokio::test]
async fn axum_authenticates_users() {
    let (_child, text) = start(env!("CARGO_BIN_EXE_axum_server"), &["127.0.0.1:0"], "http").await;
    let here = text.trim().trim_end_matches("/mcp");
    let documented = AXUM.replace("\\\n//!", "").replace("http://127.0.0.1:8000", here);
    let commands: Vec<&str> = documented.lines().filter_map(|line| line.strip_prefix("//! $ curl")).collect();
    let [front, whoami] = commands[..] else { panic!("{documented}") };
    let (_, answer) = curl(front, "at /mcp").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, answer) = curl(whoami, "\"ann\"").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, answer) = curl(&whoami.replace("ann-secret", "guess"), "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("www-authenticate: Bearer"), "{answer}");
}

/// A browser may ask without a token what a page of the web application may send, and pages of others may not.
// covers: AUT-9
#[tokio::test]
async fn aut_9_axum_answers_preflight_requests() {
    let (_child, text) = start(env!("CARGO_BIN_EXE_axum_server"), &["127.0.0.1:0"], "http").await;
    let host = text.trim().trim_start_matches("http://").trim_end_matches("/mcp");
    let preflight = async |origin: &str| {
        let mut stream = TcpStream::connect(host).await.expect("the server accepts");
        let request = format!(
            "OPTIONS /mcp HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nConnection: close\r\n\
             Access-Control-Request-Method: POST\r\n\
             Access-Control-Request-Headers: authorization,content-type,mcp-method,mcp-name,mcp-protocol-version\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("the server reads");
        read_until(&mut stream, "\r\n\r\n").await.to_ascii_lowercase()
    };
    let value = |answer: &str, name: &str| {
        let line = answer.lines().find(|line| line.starts_with(&format!("{name}:")));
        line.map(|line| line.split_once(':').expect("a value").1.trim().to_owned())
    };
    let answer = preflight("https://app.example.com").await;
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    assert_eq!(value(&answer, "access-control-allow-origin").as_deref(), Some("https://app.example.com"));
    let methods = value(&answer, "access-control-allow-methods").expect("methods");
    assert!(["get", "post", "delete"].iter().all(|method| methods.split(',').any(|allowed| allowed == *method)));
    let headers = value(&answer, "access-control-allow-headers").expect("headers");
    for header in [
        "authorization",
        "content-type",
        "last-event-id",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
    ] {
        assert!(headers.split(',').any(|allowed| allowed == header), "{header}: {headers}");
    }
    let other = preflight("https://other.example.com").await;
    assert_ne!(value(&other, "access-control-allow-origin").as_deref(), Some("https://other.example.com"), "{other}");

    // The response of a call can be read by the page, and has its headers exposed.
    let whoami = format!(
        "http://{host}/mcp -H 'Authorization: Bearer ann-secret' -H 'Content-Type: application/json' \
         -H 'Origin: https://app.example.com' \
         -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"whoami\"}}}}'"
    );
    let (_, answer) = curl(&whoami, "\"ann\"").await;
    let answer = answer.to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
    assert_eq!(value(&answer, "access-control-allow-origin").as_deref(), Some("https://app.example.com"));
    let exposed = value(&answer, "access-control-expose-headers").expect("exposed headers");
    assert!(exposed.contains("mcp-session-id") && exposed.contains("www-authenticate"), "{exposed}");
}

#[test]
fn the_smallest_http_server_has_fifteen_lines() {
    let lines = MINIMAL_HTTP.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 15, "{lines} lines");
}

/// It differs from `minimal` only in where it serves.
#[test]
fn the_smallest_http_server_is_the_smallest_server() {
    let minimal = include_str!("../../src/bin/minimal.rs");
    let over_http = minimal
        .replace("one tool.", "one tool, at http://127.0.0.1:8000/mcp.")
        .replace("mcp::stdio::serve_stdio(server)", "mcp::http::serve(server, \"127.0.0.1:8000\")");
    assert_eq!(MINIMAL_HTTP, over_http);
}

/// The error names the argument.
#[test]
fn unknown_arguments_are_refused() {
    for arguments in [&["--http"][..], &["--address"]] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_demo")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(arguments[0]));
    }
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_demo")).arg("--help").output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("usage: demo"));
}
