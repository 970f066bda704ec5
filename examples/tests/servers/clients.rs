//! The examples of clients, with the demo as their server.

use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::time::timeout;

use crate::http;

const DEMO: &str = env!("CARGO_BIN_EXE_demo");
const CONNECT: &str = env!("CARGO_BIN_EXE_connect");
const ASK_ME: &str = env!("CARGO_BIN_EXE_ask_me");

async fn run(program: &str, arguments: &[&str], input: &str) -> (bool, String, String) {
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // A program that fails early does not read it.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes()).await;
    let ended = timeout(Duration::from_secs(30), child.wait_with_output()).await;
    let Output { status, stdout, stderr } = ended.expect("it ends").expect("it can be waited for");
    (status.success(), String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned())
}

#[tokio::test]
async fn connect_lists_and_calls() {
    let (is_well, said, _) = run(CONNECT, &[DEMO, "--stdio"], "").await;
    assert!(is_well && said.contains("revision 2026-07-28") && said.contains("tool      convert"), "{said}");
    let arguments = r#"{"value":26.2,"from":"mile","to":"kilometre"}"#;
    let (is_well, said, _) = run(CONNECT, &["--call", "convert", arguments, DEMO, "--stdio"], "").await;
    assert!(is_well && said.contains("42.16"), "{said}");
}

/// A server is found in a configuration file, with its arguments and environment.
// covers: GW-10
#[tokio::test]
async fn gw_10_connect_reads_configurations() {
    let file = std::env::temp_dir().join(format!("mcp-connect-{}.json", std::process::id()));
    let server =
        mcp::serde_json::json!({ "command": DEMO, "args": ["--stdio"], "env": { "RUST_LOG": "${NONE:-off}" } });
    std::fs::write(&file, mcp::serde_json::json!({ "mcpServers": { "demo": server } }).to_string())
        .expect("it is written");
    let path = file.to_str().expect("UTF-8");
    let (is_well, said, complained) = run(CONNECT, &["--config", path, "demo"], "").await;
    assert!(is_well && said.contains("tool      convert"), "{said}\n{complained}");
    let (is_well, _, complained) = run(CONNECT, &["--config", path, "other"], "").await;
    assert!(!is_well && complained.contains("has no server `other`, but: demo"), "{complained}");
    std::fs::remove_file(&file).expect("it is removed");
}

#[tokio::test]
async fn connect_reports_errors() {
    for (arguments, complaint) in [
        (&[][..], "usage: connect"),
        (&["--call", "convert"], "usage: connect"),
        (&["/no/such/program"], "could not be started"),
        (&["http://127.0.0.1:9/mcp"], "the connection is lost: "),
        (&["--call", "no_such_tool", "{}", DEMO, "--stdio"], "no_such_tool"),
    ] {
        let (is_well, _, complained) = run(CONNECT, arguments, "").await;
        assert!(!is_well && complained.contains(complaint), "{arguments:?}: {complained}");
    }
}

/// A server that declares resources and does not implement templates, as some do.
#[cfg(unix)]
const WITHOUT_TEMPLATES: &str = r#"
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"prompts":{}},"serverInfo":{"name":"odd","version":"1"}}';;
    *'"resources/list"'*) result='{"resources":[{"uri":"test://a","name":"a"}]}';;
    *'"prompts/list"'*) result='{"prompts":[{"name":"greet"}]}';;
    *'"notifications/'*) continue;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}\n' "$id"; continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

/// Lists that fail are reported, with the exit status, next to those that succeed.
// covers: INT-5
#[cfg(unix)]
#[tokio::test]
async fn int_5_connect_lists_what_there_is() {
    let (is_well, said, complained) = run(CONNECT, &["sh", "-c", WITHOUT_TEMPLATES], "").await;
    assert!(said.contains("resource  test://a") && said.contains("prompt    greet"), "{said}\n{complained}");
    assert!(
        !is_well && complained.contains("cannot list templates: the server responded with an error"),
        "{complained}"
    );
}

/// The input decides: a note is deleted only if the user confirms it.
#[tokio::test]
async fn ask_me_shows_the_form() {
    let (server, printed) = http::start(DEMO, &["--address", "127.0.0.1:0"], "Ctrl-C").await;
    let url = printed.split_whitespace().find(|word| word.starts_with("http://")).unwrap().trim_end_matches('.');
    let note = r#"{"title":"Shopping","text":"Milk"}"#;
    assert!(run(CONNECT, &["--call", "add_note", note, url], "").await.0);
    for (typed, outcome) in [("n\ny\n", "kept"), ("", "kept"), ("perhaps\ny\ny\n", "deleted")] {
        let (is_well, said, complained) = run(ASK_ME, &["--call", "delete_note", r#"{"id":1}"#, url], typed).await;
        assert!(is_well && said.contains(outcome), "{typed:?}: {said}\n{complained}");
        assert_eq!(said.contains("must be yes or no"), typed.starts_with("perhaps"), "{said}");
    }
    drop(server);
}

/// The exit status says that the tool failed.
// covers: AUT-11
#[tokio::test]
async fn aut_11_ask_me_fails_with_its_tool() {
    let unknown = r#"{"value":1,"from":"mile","to":"gram"}"#;
    let (is_well, said, complained) = run(ASK_ME, &["--call", "convert", unknown, DEMO, "--stdio"], "").await;
    assert!(!is_well && complained.contains("the tool returned an error"), "{said}\n{complained}");
}
