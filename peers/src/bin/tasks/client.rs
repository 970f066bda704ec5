//! A client of 2026-07-28 with the extension for tasks, in the process of its server.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use mcp_server::{Caller, Connection, Server, Time};
use tokio::time::sleep;

/// One connection, with one request in flight.
pub(crate) struct Client(Connection);

impl Client {
    pub(crate) fn new(server: &Server) -> Self {
        Self(Connection::long_lived(server))
    }

    /// Calls a tool; returns the id of its task.
    pub(crate) async fn create(&mut self, tool: &str) -> String {
        let response = self.request("tools/call", &format!(r#""name":"{tool}","arguments":{{"frame":17}}"#)).await;
        let id = response.split_once(r#""taskId":""#).and_then(|(_, rest)| rest.split_once('"'));
        id.unwrap_or_else(|| panic!("no task: {response}")).0.to_owned()
    }

    /// Polls a task; returns whether it has a status.
    pub(crate) async fn has_status(&mut self, task: &str, status: &str) -> bool {
        let response = self.request("tasks/get", &format!(r#""taskId":"{task}""#)).await;
        assert!(response.contains(task), "{response}");
        response.contains(&format!(r#""status":"{status}""#))
    }

    /// Polls a task until it has a status.
    pub(crate) async fn wait_for_status(&mut self, task: &str, status: &str) {
        while !self.has_status(task, status).await {
            sleep(Duration::from_millis(1)).await;
        }
    }

    async fn request(&mut self, method: &str, params: &str) -> String {
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":17,"method":"{method}","params":{{{params},"_meta":{{{META}}}}}}}"#);
        self.0.feed(Time::EPOCH, request.as_bytes(), &Caller::default());
        let response = poll_fn(|cx| {
            let _ = self.0.poll(cx, Time::EPOCH);
            self.0.poll_transmit().map_or(Poll::Pending, |transmit| Poll::Ready(transmit.message))
        });
        String::from_utf8(response.await.into_bytes()).expect("a response is text")
    }
}

const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
