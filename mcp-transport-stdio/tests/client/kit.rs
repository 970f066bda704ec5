//! What the tests share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_client::types::{CallToolResult, SubscriptionFilter};
use mcp_client::{Client, ClientBuilder, Error};
use mcp_transport_stdio::{ChildTransport, Ladder, LineReader, Restart, Spawn, StreamTransport};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

/// Longer than anything here takes on the slowest machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// For what is not going to happen.
pub(crate) const SHORT: Duration = Duration::from_millis(50);

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("within the limit of a test")
}

/// A client whose clock is that of the runtime, so that a test can stop it.
pub(crate) fn builder() -> ClientBuilder {
    Client::builder("test", "1").clock(|| tokio::time::Instant::now().into_std())
}

pub(crate) fn text(result: Result<CallToolResult, Error>) -> String {
    let result = serde_json::to_value(result.expect("a result")).expect("JSON");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
}

/// Calls the only tool there is.
pub(crate) async fn call(client: &Client) -> Result<CallToolResult, Error> {
    within(client.call_tool_without_arguments("tool").into_future()).await
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
        let result =
            json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } });
        self.say(&json!({ "jsonrpc": "2.0", "id": probe["id"], "result": result })).await;
    }

    /// Shakes hands as a legacy server.
    pub(crate) async fn initialized(&mut self) {
        let initialize = self.asked("initialize").await;
        let info = json!({ "name": "peer", "version": "1" });
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": info });
        self.say(&json!({ "jsonrpc": "2.0", "id": initialize["id"], "result": result })).await;
        self.asked("notifications/initialized").await;
    }
}

/// The result of a tool.
pub(crate) fn result(id: &Value, text: &str) -> Value {
    let result = json!({ "resultType": "complete", "content": [{ "type": "text", "text": text }] });
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
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

/// A server that is a shell script, and keeps a record of its lives.
pub(crate) struct Script {
    dir: PathBuf,
    text: String,
}

/// What all scripts can do: hear a line, answer it, and serve one era with `on_call` for tools.
const PRELUDE: &str = r#"
echo $$ >> "$DIR/lives"
life=$(grep -c . "$DIR/lives")
hear() { IFS= read -r line || exit 0; id=${line#*\"id\":}; id=${id%%[,\}]*}; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
refuse() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id"; }
text() { answer '{"resultType":"complete","content":[{"type":"text","text":"'"$1"'"}]}'; }
probed() { answer '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}'; }
on_call() { text "life $life"; }
on_discover() { probed; }
initialized() { answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}'; }
listening() { printf '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}\n' "$id"; }
serve() {
  while hear; do
    case $line in
      *'"method":"server/discover"'*) on_discover;;
      *'"method":"initialize"'*) initialized;;
      *'"method":"tools/call"'*) on_call;;
      *'"method":"subscriptions/listen"'*) listening;;
    esac
  done
}
"#;

impl Script {
    /// A script that begins with what all can do; `name` is that of the test.
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a folder");
        Self { dir, text: format!("{PRELUDE}\n{text}") }
    }

    pub(crate) fn spawn(&self) -> Spawn {
        self.spawn_as(Path::new("sh"))
    }

    /// The same with a shell of its own.
    pub(crate) fn spawn_as(&self, shell: &Path) -> Spawn {
        Spawn::new(shell).args(["-c", &self.text]).env("DIR", &self.dir)
    }

    /// Steps are short, and delays too.
    pub(crate) fn transport(&self) -> ChildTransport {
        let ladder = Ladder::default().with_close(LIMIT).with_terminate(LIMIT).with_kill(LIMIT);
        let restart = Restart::default().with_within(LIMIT).with_first_delay(Duration::from_millis(1));
        ChildTransport::new(self.spawn()).ladder(ladder).restart(restart)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The process ids of all its lives.
    pub(crate) fn lives(&self) -> Vec<String> {
        let lives = std::fs::read_to_string(self.dir.join("lives")).unwrap_or_default();
        lives.lines().map(str::to_owned).collect()
    }

    /// All its processes are gone, or will be soon.
    pub(crate) async fn gone(&self) {
        for id in self.lives() {
            within(async {
                while exists(&id) {
                    tokio::time::sleep(SHORT).await;
                }
            })
            .await;
        }
    }

    /// Closes the client; nothing is left then.
    pub(crate) async fn closed(&self, client: Client) {
        within(client.close()).await;
        for id in self.lives() {
            assert!(!exists(&id), "closing waits for the end of the process");
        }
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Whether there is such a process, be it a zombie.
fn exists(id: &str) -> bool {
    let kill = format!("kill -0 {id} 2>/dev/null");
    std::process::Command::new("sh").args(["-c", &kill]).status().expect("a shell").success()
}
