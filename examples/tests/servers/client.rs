//! A client that says what a test tells it to say.

use std::process::Stdio;
use std::time::Duration;

use mcp::serde_json::{self, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Nothing takes that long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// What tells the eras apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Era {
    /// Connections begin with a handshake, which agrees on this revision.
    Legacy(&'static str),
    /// Every request says by itself what there is to know.
    Modern,
}

pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    era: Era,
    capabilities: Value,
    last_id: u64,
    /// What came that nobody waited for.
    pub(crate) notifications: Vec<Value>,
}

impl Client {
    /// Starts a server and, in the legacy era, greets it.
    pub(crate) async fn start(program: &str, arguments: &[&str], era: Era) -> Self {
        Self::declaring(program, arguments, era, json!({})).await
    }

    /// Starts a server as a client that can be asked something.
    pub(crate) async fn declaring(program: &str, arguments: &[&str], era: Era, capabilities: Value) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().expect("the server starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let input = child.stdin.take();
        let mut client = Self { child, input, output, era, capabilities, last_id: 0, notifications: Vec::new() };
        if let Era::Legacy(revision) = era {
            let info = json!({ "name": "test", "version": "1" });
            let capabilities = client.capabilities.clone();
            let params = json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": info });
            let result = client.ask("initialize", params).await;
            assert_eq!(result["protocolVersion"], revision);
            client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
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
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        self.send(json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params })).await;
        self.last_id
    }

    async fn next(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.output.next_line()).await.expect("the server says something");
        Some(serde_json::from_str(&line.expect("the output can be read")?).expect("a line is a message"))
    }

    /// Waits for the answer to a request.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().await.expect("an answer before the end");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            assert!(message.get("id").is_none(), "nobody asked for {message}");
            self.notifications.push(message);
        }
    }

    /// Asks, and expects a result.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let mut answer = self.answer(id).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Asks, and expects an error.
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

    /// Calls a tool that asks. Returns its result and, for each round of questions, their methods by key; a legacy
    /// server asks by requests, which have no keys and come one by one.
    pub(crate) async fn converse(
        &mut self,
        tool: &str,
        arguments: Value,
        answer: impl Fn(&Value) -> Value,
    ) -> (Value, Vec<Value>) {
        let params = json!({ "name": tool, "arguments": arguments });
        let (mut id, mut rounds) = (self.request("tools/call", params.clone()).await, Vec::new());
        loop {
            let mut message = self.next().await.expect("an answer before the end");
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
            assert!(message.get("id").is_none(), "nobody asked for {message}");
            self.notifications.push(message);
        }
    }

    /// Closes the server's input, and expects it to end soon and well.
    pub(crate) async fn finish(mut self) {
        self.input = None;
        while let Some(message) = self.next().await {
            // A subscription that was open ends with its result.
            assert!(message.get("error").is_none(), "{message}");
        }
        let status = timeout(PATIENCE, self.child.wait()).await.expect("the server ends").expect("a status");
        assert!(status.success(), "{status}");
    }
}
