//! A client that sends what a test specifies.

use std::process::Stdio;
use std::time::Duration;

use mcp::serde_json::{self, Value, json};
use mcp_testkit::envelope;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// The limit of every wait.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The era of the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Era {
    /// Begins with a handshake for this revision.
    Legacy(&'static str),
    /// Sends 2026-07-28 with its capabilities in every request.
    Modern,
}

pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    era: Era,
    capabilities: Value,
    last_id: u64,
    /// Notifications that were received while waiting for something else.
    pub(crate) notifications: Vec<Value>,
}

impl Client {
    /// Starts a server and, in the legacy era, performs the handshake.
    pub(crate) async fn start(program: &str, arguments: &[&str], era: Era) -> Self {
        Self::declaring(program, arguments, era, json!({})).await
    }

    /// The same with client capabilities.
    pub(crate) async fn declaring(program: &str, arguments: &[&str], era: Era, capabilities: Value) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().expect("the server starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let input = child.stdin.take();
        let mut client = Self { child, input, output, era, capabilities, last_id: 0, notifications: Vec::new() };
        if let Era::Legacy(revision) = era {
            client.send(envelope::initialize(0, revision, client.capabilities.clone())).await;
            assert_eq!(client.answer(0).await["result"]["protocolVersion"], revision);
            client.send(envelope::initialized()).await;
        }
        client
    }

    /// Sends a line.
    pub(crate) async fn send(&mut self, message: Value) {
        let line = format!("{message}\n");
        let input = self.input.as_mut().expect("the input is open");
        input.write_all(line.as_bytes()).await.expect("the server reads");
    }

    /// Sends a request and returns its id.
    pub(crate) async fn request(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if self.era == Era::Modern {
            params = envelope::with_modern_meta(params, self.capabilities.clone());
        }
        self.send(envelope::request(self.last_id, method, params)).await;
        self.last_id
    }

    async fn next(&mut self) -> Option<Value> {
        let line = timeout(TIMEOUT, self.output.next_line()).await.expect("a message in time");
        Some(serde_json::from_str(&line.expect("the output can be read")?).expect("a line is a message"))
    }

    /// Waits for the response to a request.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await.expect("a response before the end");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            assert!(message.get("id").is_none(), "unexpected: {message}");
            self.notifications.push(message);
        }
    }

    /// Sends a request, and expects a result.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let mut answer = self.answer(id).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Sends a request, and expects an error.
    pub(crate) async fn fail(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let mut answer = self.answer(id).await;
        assert!(answer.get("result").is_none(), "{method}: {answer}");
        answer["error"].take()
    }

    /// Calls a tool.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Calls a tool that sends server-to-client requests. Returns its result and the methods of these requests: by key for
    /// each round, or one by one in the legacy era.
    pub(crate) async fn converse(
        &mut self,
        tool: &str,
        arguments: Value,
        answer: impl Fn(&Value) -> Value,
    ) -> (Value, Vec<Value>) {
        let params = json!({ "name": tool, "arguments": arguments });
        let (mut id, mut rounds) = (self.request("tools/call", params.clone()).await, Vec::new());
        loop {
            let mut message = self.next().await.expect("a response before the end");
            if message["id"] == id && message.get("method").is_none() {
                let result = message["result"].take();
                if result["resultType"] != "input_required" {
                    assert!(message.get("error").is_none(), "{tool}: {message}");
                    return (result, rounds);
                }
                let (mut retry, mut round) = (params.clone(), json!({}));
                for (key, question) in result["inputRequests"].as_object().expect("questions") {
                    retry["inputResponses"][key] = answer(question);
                    round[key] = question["method"].clone();
                }
                retry["requestState"] = result["requestState"].clone();
                rounds.push(round);
                id = self.request("tools/call", retry).await;
            } else if message.get("id").is_some() {
                rounds.push(message["method"].clone());
                let result = answer(&message);
                self.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).await;
            } else {
                self.notifications.push(message);
            }
        }
    }

    /// Waits for a notification.
    pub(crate) async fn notification(&mut self, method: &str) -> Value {
        loop {
            if let Some(found) = self.notifications.iter().position(|message| message["method"] == method) {
                return self.notifications.remove(found)["params"].take();
            }
            let message = self.next().await.expect("a notification before the end");
            assert!(message.get("id").is_none(), "unexpected: {message}");
            self.notifications.push(message);
        }
    }

    /// Closes the server's input, and expects it to exit with success.
    pub(crate) async fn finish(mut self) {
        self.input = None;
        while let Some(message) = self.next().await {
            // A subscription that was open ends with its result.
            assert!(message.get("error").is_none(), "{message}");
        }
        let status = timeout(TIMEOUT, self.child.wait()).await.expect("the server exits").expect("a status");
        assert!(status.success(), "{status}");
    }
}
