//! The demo as a process, and clients of both eras that use it.

use std::process::Stdio;

use mcp::client::Client;
use mcp::http::HttpTransport;
use mcp::serde_json::{Value, json};
use mcp::types::{ElicitResult, Revision};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::exchange::{TIMEOUT, exchange};

/// A revision with sessions, and one without.
pub(crate) const ERAS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// How often each call is made in a round, by each client: its tool, the type of its error, and the count.
pub(crate) const ROUND: [(&str, &str, u32); 4] =
    [("convert", "", 20), ("convert", "tool_error", 5), ("text_statistics", "", 10), ("", "-32602", 3)];

/// The demo, over HTTP.
pub(crate) struct Demo {
    child: Child,
    pub(crate) url: String,
    /// The host and port of its metrics.
    pub(crate) status: String,
}

impl Demo {
    pub(crate) async fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
        command.args(["--address", "127.0.0.1:0", "--sessions", "--status", "127.0.0.1:0"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().expect("the demo starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut urls = Vec::new();
        while urls.len() < 2 {
            let line = timeout(TIMEOUT, lines.next_line()).await.expect("it starts in time").expect("text");
            let line = line.expect("more text");
            let url = line.split_whitespace().find(|word| word.starts_with("http://"));
            urls.extend(url.map(|url| url.trim_end_matches('.').to_owned()));
        }
        let status = urls[0].trim_start_matches("http://").trim_end_matches("/metrics").to_owned();
        Self { child, url: urls.remove(1), status }
    }

    pub(crate) async fn connect(&self, revision: Revision) -> Client {
        let accepted = async |_, _| ElicitResult::accepted([("delete", true)]);
        let client = Client::builder("load", "1.0").revisions([revision]).on_form_elicitation(accepted);
        let transport = HttpTransport::new(self.url.as_str()).expect("an address");
        timeout(TIMEOUT, client.connect(transport)).await.expect("in time").expect("a connection")
    }

    /// Sends a request that is refused before it reaches the server; returns the status.
    pub(crate) async fn refused(&self, headers: &[(&str, &str)], body: &str) -> u16 {
        let address = self.url.trim_start_matches("http://").trim_end_matches("/mcp");
        let headers = [headers, &[("Content-Type", "application/json"), ("Accept", "*/*")]].concat();
        exchange(address, "POST /mcp", &headers, body).await.0
    }

    pub(crate) async fn stop(mut self) {
        self.child.kill().await.expect("it is stopped");
    }
}

/// Makes one of the calls of a round, and checks how it ends.
async fn call(client: &Client, tool: &str, error: &str) {
    let (name, arguments): (&str, Value) = match (tool, error) {
        ("convert", "") => (tool, json!({ "value": 1, "from": "mile", "to": "kilometre" })),
        ("convert", _) => (tool, json!({ "value": 1, "from": "mile", "to": "gram" })),
        ("text_statistics", _) => (tool, json!({ "text": "to be or not to be" })),
        _ => ("no_such_tool", json!({})),
    };
    let ended = timeout(TIMEOUT, client.call_tool(name).arguments(&arguments)).await.expect("in time");
    let is_expected = match error {
        "" => ended.as_ref().is_ok_and(|result| result.is_error != Some(true)),
        "tool_error" => ended.as_ref().is_ok_and(|result| result.is_error == Some(true)),
        _ => ended.is_err(),
    };
    assert!(is_expected, "{tool} {error}: {ended:?}");
}

/// Makes each call once.
pub(crate) async fn warm_up(client: &Client) {
    for (tool, error, _) in ROUND {
        call(client, tool, error).await;
    }
}

/// Runs a round: all clients at the same time.
pub(crate) async fn run(clients: &[Client]) {
    let mut running = JoinSet::new();
    for client in clients {
        let client = client.clone();
        running.spawn(async move {
            for (tool, error, count) in ROUND {
                for _ in 0..count {
                    call(&client, tool, error).await;
                }
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended.expect("no panic");
    }
}
