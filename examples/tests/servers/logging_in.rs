//! The protected servers, and the client that logs in to them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::authorization_server::AuthorizationServer;
use crate::http::start;

const LOG_IN: &str = env!("CARGO_BIN_EXE_log_in");

/// The limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A file for logins, which is removed at the end of the test.
struct Logins(PathBuf);

impl Logins {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("mcp-examples-{}-{name}", std::process::id()));
        Self(directory)
    }

    fn file(&self) -> PathBuf {
        self.0.join("logins.json")
    }
}

impl Drop for Logins {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn start_protected(program: &str, issuer: &str) -> (Child, String) {
    let (child, text) = start(program, &[issuer, "127.0.0.1:0"], "http").await;
    (child, text.trim().to_owned())
}

/// Requests an address, and returns the head of the response.
async fn get(url: &str) -> String {
    let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).await.expect("the server accepts");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("the server reads");
    let mut response = String::new();
    timeout(TIMEOUT, stream.read_to_string(&mut response)).await.expect("it does not hang").expect("text");
    response
}

/// Where a browser is sent.
async fn redirect(url: &str) -> String {
    let response = get(url).await;
    let location = response.lines().find_map(|line| line.strip_prefix("location: "));
    location.unwrap_or_else(|| panic!("{response}")).to_owned()
}

/// Runs the client, pastes the redirects of all logins, and returns its output, the number of logins, and what it wrote to
/// standard error.
async fn log_in(how: &str, file: &Path, url: &str, tools: &[&str]) -> (String, usize, String) {
    let mut command = Command::new(LOG_IN);
    command.arg(how).arg(file).arg(url).args(tools);
    command.kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let (mut logins, mut errors) = (0, String::new());
    let mut address = String::new();
    while let Some(line) = timeout(TIMEOUT, lines.next_line()).await.expect("it does not hang").expect("text") {
        if line.trim().starts_with("http://") {
            line.trim().clone_into(&mut address);
        }
        if line.starts_with("Paste that address") {
            logins += 1;
            input.write_all(format!("{}\n", redirect(&address).await).as_bytes()).await.expect("it reads");
        }
        errors.push_str(&line);
        errors.push('\n');
    }
    let output = timeout(TIMEOUT, child.wait_with_output()).await.expect("it ends").expect("it can be waited for");
    (String::from_utf8_lossy(&output.stdout).into_owned(), logins, errors)
}

/// A user logs in once; the next run finds the login in the file.
#[tokio::test]
async fn clients_log_in_once_to_protected_servers() {
    for program in [env!("CARGO_BIN_EXE_protected"), env!("CARGO_BIN_EXE_protected_axum")] {
        let issuer = AuthorizationServer::start().await;
        let (_server, url) = start_protected(program, &issuer.issuer).await;
        let logins = Logins::new(&url.replace([':', '/'], "-"));
        let (said, count, errors) = log_in("paste", &logins.file(), &url, &["whoami"]).await;
        assert_eq!((said.as_str(), count), ("ann\n", 1), "{errors}");
        let (said, count, errors) = log_in("paste", &logins.file(), &url, &["whoami"]).await;
        assert_eq!((said.as_str(), count), ("ann\n", 0), "{errors}");
    }
}

#[tokio::test]
async fn a_tool_that_needs_a_scope_asks_the_user_again() {
    let issuer = AuthorizationServer::start().await;
    let (_server, url) = start_protected(env!("CARGO_BIN_EXE_protected"), &issuer.issuer).await;
    let logins = Logins::new("scope");
    let (said, count, errors) = log_in("paste", &logins.file(), &url, &["whoami", "add_book", "add_book"]).await;
    assert_eq!((said.as_str(), count), ("ann\nadded\nadded\n", 2), "{errors}");
}

#[tokio::test]
async fn users_log_in_with_a_code_and_log_out() {
    let issuer = AuthorizationServer::start().await;
    let (_server, url) = start_protected(env!("CARGO_BIN_EXE_protected"), &issuer.issuer).await;
    let logins = Logins::new("device");
    let (said, _, errors) = log_in("device", &logins.file(), &url, &["whoami"]).await;
    assert_eq!(said, "ann\n", "{errors}");
    assert!(errors.contains("ABCD-EFGH"), "{errors}");
    log_in("out", &logins.file(), &url, &[]).await;
    assert!(issuer.revoked() > 0);
    let (_, _, errors) = log_in("device", &logins.file(), &url, &["whoami"]).await;
    assert!(errors.contains("ABCD-EFGH"), "{errors}");
}

#[tokio::test]
async fn protected_servers_refuse_tokens_for_other_servers() {
    let issuer = AuthorizationServer::start().await;
    for program in [env!("CARGO_BIN_EXE_protected"), env!("CARGO_BIN_EXE_protected_axum")] {
        let (_server, url) = start_protected(program, &issuer.issuer).await;
        let status = async |token: &str| {
            let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"whoami"}}"#;
            let request = format!(
                "POST /{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let mut stream = TcpStream::connect(host).await.expect("the server accepts");
            stream.write_all(request.as_bytes()).await.expect("the server reads");
            let mut response = String::new();
            timeout(TIMEOUT, stream.read_to_string(&mut response)).await.expect("it does not hang").expect("text");
            response.get(9..12).expect("a status").to_owned()
        };
        let hour = Duration::from_secs(3600);
        assert_eq!(status(&issuer.access_token(&url, "", hour)).await, "200");
        assert_eq!(status(&issuer.access_token("https://other.example.com/mcp", "", hour)).await, "401");
        assert_eq!(status("guess").await, "401");
        let root = url.trim_end_matches("/mcp");
        for path in ["", "/mcp"] {
            let metadata = get(&format!("{root}/.well-known/oauth-protected-resource{path}")).await;
            assert!(metadata.starts_with("HTTP/1.1 200") && metadata.contains(&issuer.issuer), "{metadata}");
        }
    }
}
