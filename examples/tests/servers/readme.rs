//! The code and the commands of README.md.

use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

const README: &str = include_str!("../../../README.md");

const CRATE_PAGE: &str = include_str!("../../../mcp/src/lib.rs");

const MINIMAL: &str = include_str!("../../src/bin/minimal.rs");

const MINIMAL_CLIENT: &str = include_str!("../../src/bin/minimal_client.rs");

/// The first block of a language.
fn block(language: &str) -> &'static str {
    let (_, rest) = README.split_once(&format!("```{language}\n")).expect("a block");
    rest.split_once("```").expect("its end").0
}

#[test]
fn the_smallest_server_is_shown_as_it_is() {
    assert_eq!(block("rust"), MINIMAL);
}

#[test]
fn the_smallest_client_is_shown_as_it_is() {
    assert!(README.contains(&format!("```rust\n{}```", minimal_client())));
}

/// The page of the crate `mcp` shows the same programs, without their own documentation.
#[test]
fn the_crate_page_shows_the_smallest_server_and_client() {
    for program in [MINIMAL, &minimal_client()] {
        let (_, code) = program.split_once('\n').expect("a line of documentation");
        let shown: String = code.lines().map(|line| format!("{}\n", format!("//! {line}").trim_end())).collect();
        assert!(CRATE_PAGE.contains(&format!("{shown}//! ```\n")), "{shown}");
    }
}

/// The smallest client without the attributes for the lints of this workspace, which no page shows.
fn minimal_client() -> String {
    MINIMAL_CLIENT.split_inclusive('\n').filter(|line| !line.starts_with("#[expect(clippy::")).collect()
}

/// The client expects the server where a release build puts it, hence a folder with a copy of it there.
#[tokio::test]
async fn the_smallest_client_calls_the_smallest_server() {
    let folder = std::env::temp_dir().join(format!("mcp-examples-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("target/release")).unwrap();
    let server = format!("target/release/minimal{}", std::env::consts::EXE_SUFFIX);
    std::fs::copy(env!("CARGO_BIN_EXE_minimal"), folder.join(server)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_minimal_client"));
    let output = command.current_dir(&folder).kill_on_drop(true).output();
    let output = tokio::time::timeout(std::time::Duration::from_secs(30), output).await.unwrap().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said, "count_words: Counts the words of a text\n6\n");
}

#[test]
fn the_smallest_server_and_client_have_twelve_lines() {
    // One more for the documentation, which the page of the crate does not show.
    for (program, limit) in [(MINIMAL, 12), (&minimal_client(), 13)] {
        let lines = program.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines <= limit, "{lines} lines");
        assert!(program.lines().all(|line| line.len() <= 120), "too long for a line");
    }
}

/// The command prints the response that is shown below it.
#[tokio::test]
async fn the_first_command_prints_the_response_below_it() {
    let (request, command) = block("sh").trim_start_matches("echo '").split_once('\'').expect("a quoted request");
    assert_eq!(command, " | cargo run -q --release --bin demo -- --stdio\n");
    let mut child = Command::new(env!("CARGO_BIN_EXE_demo"))
        .arg("--stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("{request}\n").as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), block("json"));
}
