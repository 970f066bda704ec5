//! A server with tasks, and clients of both models. Time is virtual.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_server::types::Revision;
use mcp_server::{Principal, Server, ServerBuilder, Tool};
use mcp_tasks::{MemoryTaskStore, TaskSettings, TaskStore, Tasks};
use mcp_testkit::ScriptedClient;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
pub(crate) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Counts what handlers do, over all processes of a test.
#[derive(Clone, Default)]
pub(crate) struct Counts(Arc<Mutex<BTreeMap<String, usize>>>);

impl Counts {
    pub(crate) fn add(&self, name: &str) -> usize {
        let mut counts = self.0.lock().expect("no panic");
        let count = counts.entry(name.to_owned()).or_default();
        *count += 1;
        *count
    }

    pub(crate) fn of(&self, name: &str) -> usize {
        self.0.lock().expect("no panic").get(name).copied().unwrap_or_default()
    }
}

/// The time since the Unix epoch, with the virtual time of tokio.
pub(crate) fn unix_time() -> Duration {
    // All processes of a test share the clock, whenever they begin.
    thread_local! {
        static START: Instant = Instant::now();
    }
    Duration::from_secs(1_785_542_400) + START.with(Instant::elapsed)
}

/// Settings with the virtual time of tokio.
pub(crate) fn settings() -> TaskSettings {
    TaskSettings::default().unix_clock(unix_time)
}

pub(crate) fn server(tools: impl IntoIterator<Item = Tool>) -> Server {
    server_with(MemoryTaskStore::default(), tools)
}

pub(crate) fn server_with(store: impl TaskStore, tools: impl IntoIterator<Item = Tool>) -> Server {
    build(Tasks::with_settings(store, settings()), |builder| builder.tools(tools))
}

pub(crate) fn build(tasks: Tasks, add: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Server {
    add(Server::builder("farm", "1.0")).tasks(tasks).build().expect("a server")
}

/// A client whose server runs in tokio.
pub(crate) struct TestClient {
    pub(crate) scripted: ScriptedClient,
    inbox: VecDeque<Value>,
}

impl TestClient {
    pub(crate) fn new(server: &Server, revision: Revision, capabilities: Value) -> Self {
        Self { scripted: ScriptedClient::with_capabilities(server, revision, capabilities), inbox: VecDeque::new() }
    }

    /// A modern client that can follow tasks, and answer forms.
    pub(crate) fn modern(server: &Server) -> Self {
        let capabilities = json!({ "extensions": { EXTENSION: {} }, "elicitation": {}, "roots": {}, "sampling": {} });
        Self::new(server, Revision::V2026_07_28, capabilities)
    }

    /// A client of 2025-11-25.
    pub(crate) fn core(server: &Server) -> Self {
        Self::new(server, Revision::V2025_11_25, json!({ "elicitation": {}, "roots": {}, "sampling": {} }))
    }

    pub(crate) fn user(mut self, name: &str) -> Self {
        self.scripted.caller = self.scripted.caller.principal(Principal::new(None, name));
        self
    }

    fn collect(&mut self) {
        self.scripted.run();
        while self.scripted.unread() > 0 {
            self.inbox.push_back(self.scripted.next_routed().1);
        }
    }

    /// Waits for a message of the server.
    pub(crate) async fn wait_for(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..100_000 {
            self.collect();
            if let Some(index) = self.inbox.iter().position(&is_it) {
                return self.inbox.remove(index).expect("a message");
            }
            sleep(Duration::from_millis(1)).await;
        }
        panic!("no such message: {:?}", self.inbox);
    }

    pub(crate) async fn message(&mut self, method: &str) -> Value {
        self.wait_for(|message| message["method"] == method).await
    }

    pub(crate) async fn response(&mut self, id: i64) -> Value {
        self.wait_for(|message| message.get("method").is_none() && message["id"] == id).await
    }

    /// Removes all messages that have arrived.
    pub(crate) fn messages(&mut self) -> Vec<Value> {
        self.collect();
        self.inbox.drain(..).collect()
    }

    pub(crate) async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.scripted.start(method, params);
        self.response(id).await
    }

    #[track_caller]
    pub(crate) fn result(&mut self, method: &str, params: Value) -> impl Future<Output = Value> {
        let place = std::panic::Location::caller();
        async move {
            let mut response = self.call(method, params).await;
            assert_eq!(response.get("error"), None, "{place}: {response}");
            response["result"].take()
        }
    }

    #[track_caller]
    pub(crate) fn error(&mut self, method: &str, params: Value, code: i64) -> impl Future<Output = Value> {
        let place = std::panic::Location::caller();
        async move {
            let mut response = self.call(method, params).await;
            assert_eq!(response["error"]["code"], code, "{place}: {response}");
            response["error"].take()
        }
    }

    /// Calls a tool as a task of the extension; returns the id.
    pub(crate) async fn start(&mut self, tool: &str) -> String {
        let created = self.result("tools/call", json!({ "name": tool })).await;
        assert_eq!(created["resultType"], "task", "{created}");
        created["taskId"].as_str().expect("an id").to_owned()
    }

    /// Calls a tool as a task of 2025-11-25; returns the id.
    pub(crate) async fn start_core(&mut self, tool: &str) -> String {
        let created = self.result("tools/call", json!({ "name": tool, "task": {} })).await;
        created["task"]["taskId"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn get(&mut self, task: &str) -> Value {
        self.result("tasks/get", json!({ "taskId": task })).await
    }

    /// Polls a task until it has a status.
    pub(crate) async fn until(&mut self, task: &str, status: &str) -> Value {
        for _ in 0..100_000 {
            let state = self.get(task).await;
            if state["status"] == status {
                return state;
            }
            let is_final = ["completed", "failed", "cancelled"].contains(&state["status"].as_str().expect("a status"));
            assert!(!is_final, "{state}");
            sleep(Duration::from_millis(200)).await;
        }
        panic!("the task does not become {status}");
    }

    pub(crate) async fn update(&mut self, task: &str, responses: Value) -> Value {
        self.result("tasks/update", json!({ "taskId": task, "inputResponses": responses })).await
    }
}

/// An accepted form.
pub(crate) fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// The text of a tool's result.
#[track_caller]
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}
