//! A server that is played by the test on a pair of streams, and clients of it.

use std::time::Duration;

use mcp_client::types::{CallToolResult, SubscriptionFilter};
use mcp_client::{Client, ClientBuilder, Error};
use mcp_testkit::envelope::{discover_result, initialize_result, response, tool_result};
use mcp_transport_stdio::{LineReader, StreamTransport};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

/// Longer than anything here takes on the slowest machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// For what is not going to happen.
pub(crate) const SHORT: Duration = Duration::from_millis(50);

pub(crate) async fn within<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future.into_future()).await.expect("within the limit of a test")
}

pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1")
}

pub(crate) fn text(result: Result<CallToolResult, Error>) -> String {
    let result = serde_json::to_value(result.expect("a result")).expect("JSON");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
}

/// Calls the only tool there is.
pub(crate) async fn call(client: &Client) -> Result<CallToolResult, Error> {
    within(client.call_tool("tool").into_future()).await
}

pub(crate) fn tool_changes() -> SubscriptionFilter {
    let mut filter = SubscriptionFilter::default();
    filter.tools_list_changed = Some(true);
    filter
}

/// A server that is played by the test, line by line.
pub(crate) struct Peer {
    lines: LineReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

pub(crate) type Duplex = StreamTransport<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

/// A peer behind pipes that hold so many bytes.
pub(crate) fn peer(pipe: usize) -> (Duplex, Peer) {
    let (ours, theirs) = tokio::io::duplex(pipe);
    let (reader, writer) = tokio::io::split(ours);
    let (lines, answers) = tokio::io::split(theirs);
    let peer = Peer { lines: LineReader::new(lines, usize::MAX), writer: answers };
    (StreamTransport::new(reader, writer), peer)
}

impl Peer {
    /// The next message of the client; `None` when it hung up.
    pub(crate) async fn heard(&mut self) -> Option<Value> {
        match within(self.lines.next()).await.expect("no fault")? {
            mcp_transport_stdio::Line::Message(line) => Some(serde_json::from_slice(line).expect("JSON")),
            line => panic!("{line:?}"),
        }
    }

    /// The next message, which is a request of this method.
    pub(crate) async fn asked(&mut self, method: &str) -> Value {
        let heard = self.heard().await.expect("a message");
        assert_eq!(heard["method"], method, "{heard}");
        heard
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        within(self.writer.write_all(bytes)).await.expect("somebody reads");
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    /// Answers a call of a tool.
    pub(crate) async fn answer(&mut self, request: &Value, text: &str) {
        self.say(&result(&request["id"], text)).await;
    }

    /// Answers the probe.
    pub(crate) async fn discovered(&mut self) {
        let probe = self.asked("server/discover").await;
        self.say(&response(probe["id"].clone(), discover_result(json!({ "tools": {} })))).await;
    }

    /// Shakes hands as a legacy server.
    pub(crate) async fn initialized(&mut self) {
        let initialize = self.asked("initialize").await;
        let result = initialize_result("2025-11-25", json!({ "tools": {} }));
        self.say(&response(initialize["id"].clone(), result)).await;
        self.asked("notifications/initialized").await;
    }
}

/// The result of a tool.
pub(crate) fn result(id: &Value, text: &str) -> Value {
    response(id.clone(), tool_result(text))
}

/// A client of a modern peer.
pub(crate) async fn modern(pipe: usize) -> (Client, Peer) {
    modern_with(pipe, builder(), |transport| transport).await
}

pub(crate) async fn modern_with(
    pipe: usize,
    builder: ClientBuilder,
    adjust: impl FnOnce(Duplex) -> Duplex,
) -> (Client, Peer) {
    let (transport, mut peer) = peer(pipe);
    let (client, ()) = within(async { tokio::join!(builder.connect(adjust(transport)), peer.discovered()) }).await;
    (client.expect("a connection"), peer)
}
