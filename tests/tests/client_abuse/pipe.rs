//! A hostile server at the other end of two pipes.

use mcp_client::{Client, ClientBuilder, Mode};
use mcp_transport_stdio::StreamTransport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::pipe::{self, Sender};
use tokio::sync::mpsc;

use crate::arena::{builder, text_of, within};

/// The server's end of the pipes, and the client.
pub(crate) struct Pipe {
    pub(crate) client: Client,
    writer: Sender,
    requests: mpsc::UnboundedReceiver<Value>,
}

impl Pipe {
    pub(crate) async fn open(is_modern: bool) -> Self {
        Self::open_with(is_modern, builder()).await
    }

    pub(crate) async fn open_with(is_modern: bool, builder: ClientBuilder) -> Self {
        let (server_out, client_in) = pipe::pipe().expect("a pipe");
        let (client_out, server_in) = pipe::pipe().expect("a pipe");
        let (sender, requests) = mpsc::unbounded_channel();
        // Whatever the client answers is read, and only what it asks is looked at.
        tokio::spawn(async move {
            let mut lines = BufReader::new(server_in).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if line.contains("\"method\":\"notifications/") || !line.contains("\"method\"") {
                    continue;
                }
                if sender.send(serde_json::from_str(&line).expect("a message")).is_err() {
                    return;
                }
            }
        });
        let mode = if is_modern { Mode::Modern } else { Mode::Legacy };
        let connecting = tokio::spawn(builder.mode(mode).connect(StreamTransport::new(client_in, client_out)));
        let mut writer = server_out;
        let mut requests = requests;
        let first: Value = within(requests.recv()).await.expect("a request");
        let result = if is_modern {
            json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": { "tools": {}, "prompts": {}, "resources": {} },
            })
        } else {
            json!({
                "protocolVersion": "2025-11-25", "serverInfo": { "name": "hostile", "version": "1" },
                "capabilities": { "tools": {}, "prompts": {}, "resources": {}, "logging": {} },
            })
        };
        let answer = json!({ "jsonrpc": "2.0", "id": first["id"], "result": result });
        writer.write_all(format!("{answer}\n").as_bytes()).await.expect("a client that reads");
        let client = within(connecting).await.expect("no panic").expect("a connection");
        Self { client, writer, requests }
    }

    /// Sends bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        within(self.writer.write_all(bytes)).await.expect("a client that reads");
    }

    /// The next request of the client.
    pub(crate) async fn request(&mut self) -> Value {
        within(self.requests.recv()).await.expect("a request")
    }

    pub(crate) async fn answer(&mut self, request: &Value, result: &Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.write(format!("{answer}\n").as_bytes()).await;
    }

    /// A call that goes well, which shows that everything before it was read.
    pub(crate) async fn honest(&mut self) {
        let calling = tokio::spawn(crate::arena::honest(&self.client));
        let request = self.request().await;
        let content = json!([{ "type": "text", "text": "still there" }]);
        self.answer(&request, &json!({ "resultType": "complete", "content": content })).await;
        let result = within(calling).await.expect("no panic").expect("a result");
        assert_eq!(text_of(&result), Some("still there"));
    }
}
