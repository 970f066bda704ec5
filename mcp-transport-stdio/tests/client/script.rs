//! Servers that are shell scripts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mcp_client::Client;
use mcp_transport_stdio::{ChildTransport, RestartPolicy, ServerCommand, ShutdownTimeouts};

use crate::peer::{LIMIT, SHORT, within};

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

    pub(crate) fn spawn(&self) -> ServerCommand {
        self.spawn_as(Path::new("sh"))
    }

    /// The same with a shell of its own.
    pub(crate) fn spawn_as(&self, shell: &Path) -> ServerCommand {
        ServerCommand::new(shell).args(["-c", &self.text]).env("DIR", &self.dir)
    }

    /// Steps are short, and delays too.
    pub(crate) fn transport(&self) -> ChildTransport {
        let timeouts = ShutdownTimeouts::default().stdin_timeout(LIMIT).terminate_timeout(LIMIT).kill_timeout(LIMIT);
        let restart = RestartPolicy::default().window(LIMIT).initial_delay(Duration::from_millis(1));
        ChildTransport::new(self.spawn()).shutdown_timeouts(timeouts).restart_policy(restart)
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
