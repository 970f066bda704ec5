//! Servers as child processes, played by shell scripts, hence on Unix; `processes` is for every system.
//!
//! No test asserts that something is fast. Every wait has a limit, so that a fault is a failure and not a hang.
#![cfg(all(unix, feature = "client"))]

use std::error::Error;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{self, TryRecvError};
use std::time::Duration;

use mcp_transport_stdio::{ChildProcess, Line, LineReader, ServerCommand, ShutdownTimeouts, Stderr};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdout;

const TERM: i32 = 15;
const KILL: i32 = 9;

fn script(text: &str) -> ServerCommand {
    ServerCommand::new("sh").args(["-c", text])
}

/// Steps that are as long as it takes.
fn patient() -> ShutdownTimeouts {
    ShutdownTimeouts::default().stdin_timeout(LIMIT).terminate_timeout(LIMIT).kill_timeout(LIMIT)
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("within the limit of a test")
}

/// A script says something once its traps are set.
async fn started(server: &mut ChildProcess) -> (String, LineReader<ChildStdout>) {
    let mut lines = LineReader::new(server.take_stdout().expect("not taken yet"), 1000);
    let line = within(lines.next()).await.expect("a line");
    let Some(Line::Message(line)) = line else { panic!("{line:?}") };
    (String::from_utf8_lossy(line).into_owned(), lines)
}

async fn shut_down(server: ChildProcess, timeouts: ShutdownTimeouts) -> ExitStatus {
    within(server.shutdown(timeouts)).await.expect("it ends")
}

/// Whether there is such a process, be it a zombie.
fn exists(id: u32) -> bool {
    signal(id, "-0")
}

fn signal(id: u32, signal: &str) -> bool {
    let kill = format!("kill {signal} {id} 2>/dev/null");
    Command::new("sh").args(["-c", &kill]).status().expect("a shell").success()
}

async fn gone(id: u32) {
    within(async {
        while exists(id) {
            tokio::time::sleep(SHORT).await;
        }
    })
    .await;
}

#[tokio::test]
async fn it_talks_through_its_streams() {
    let mut server = script("while read -r line; do echo \"$GREETING $1 $line\"; done").args(["0", "dear"]);
    server = server.env("GREETING", "hello");
    let mut server = server.spawn().unwrap();
    let mut stdin = server.take_stdin().unwrap();
    within(stdin.write_all(b"you\nall\n")).await.unwrap();
    let (first, mut lines) = started(&mut server).await;
    assert_eq!(first, "hello dear you");
    assert_eq!(within(lines.next()).await.unwrap(), Some(Line::Message(b"hello dear all")));
    assert!(server.take_stdin().is_none() && server.take_stdout().is_none());
    drop(stdin);
    assert!(shut_down(server, patient()).await.success());
    assert_eq!(within(lines.next()).await.unwrap(), None);
}

#[tokio::test]
async fn the_end_of_its_input_ends_a_good_server() {
    let server = script("cat; exit 3").spawn().unwrap();
    let id = server.id().unwrap();
    let status = shut_down(server, patient()).await;
    assert_eq!(status.code(), Some(3));
    assert!(!exists(id), "it was waited for");
}

#[tokio::test]
async fn sigterm_ends_one_that_ignores_the_end_of_its_input() {
    let mut server = script("echo ready; while :; do sleep 60; done").spawn().unwrap();
    let _output = started(&mut server).await;
    let status = shut_down(server, patient().stdin_timeout(SHORT)).await;
    assert_eq!(status.signal(), Some(TERM));
}

#[tokio::test]
async fn a_server_may_clean_up_after_sigterm() {
    let mut server = script("trap 'exit 7' TERM; echo ready; while :; do sleep 60; done").spawn().unwrap();
    let _output = started(&mut server).await;
    let status = shut_down(server, patient().stdin_timeout(SHORT)).await;
    assert_eq!(status.code(), Some(7));
}

// covers: S3.F15
#[tokio::test]
async fn sigkill_ends_one_that_ignores_sigterm_too() {
    let mut server = script("trap '' TERM; echo ready; while :; do sleep 60; done").spawn().unwrap();
    let _output = started(&mut server).await;
    let id = server.id().unwrap();
    let status = shut_down(server, patient().stdin_timeout(SHORT).terminate_timeout(SHORT)).await;
    assert_eq!(status.signal(), Some(KILL));
    assert!(!exists(id));
}

/// That standard output ends means that nobody has it any more: the grandchildren are gone.
async fn nobody_is_left(mut output: LineReader<ChildStdout>) {
    assert_eq!(within(output.next()).await.expect("an end"), None);
}

#[tokio::test]
async fn a_grandchild_gets_the_signals_too() {
    let mut server = script("sleep 600 & echo ready; wait").spawn().unwrap();
    let (_, output) = started(&mut server).await;
    let status = shut_down(server, patient().stdin_timeout(SHORT)).await;
    assert_eq!(status.signal(), Some(TERM));
    nobody_is_left(output).await;
}

#[tokio::test]
async fn a_grandchild_does_not_outlive_a_server_that_ended_well() {
    let mut server = script("(trap '' TERM; echo ready; exec sleep 600) & cat; exit 0").spawn().unwrap();
    let (_, output) = started(&mut server).await;
    assert!(shut_down(server, patient()).await.success());
    nobody_is_left(output).await;
}

#[tokio::test]
async fn an_end_that_nobody_asked_for_is_told() {
    let mut server = script("sleep 600 & echo ready; exit 5").spawn().unwrap();
    let (_, output) = started(&mut server).await;
    let exited = within(server.wait()).await.unwrap();
    assert_eq!(exited.code(), Some(5));
    assert_eq!(within(server.wait()).await.unwrap(), exited, "one may ask again");
    assert_eq!(server.id(), None);
    nobody_is_left(output).await;
    assert_eq!(shut_down(server, patient()).await.code(), Some(5));
}

#[tokio::test]
async fn to_stop_waiting_changes_nothing() {
    let mut server = script("read -r line; exit 4").spawn().unwrap();
    assert!(tokio::time::timeout(SHORT, server.wait()).await.is_err());
    let mut stdin = server.take_stdin().expect("waiting does not close it");
    within(stdin.write_all(b"go\n")).await.unwrap();
    assert_eq!(within(server.wait()).await.unwrap().code(), Some(4));
}

#[tokio::test]
async fn dropping_kills_all_and_leaves_no_zombie() {
    for _ in 0..20 {
        let mut server = script("trap '' TERM; sleep 600 & echo ready; wait").spawn().unwrap();
        let (_, output) = started(&mut server).await;
        let id = server.id().unwrap();
        drop(server);
        nobody_is_left(output).await;
        gone(id).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_outside_of_the_runtime_leaves_no_zombie_either() {
    for _ in 0..20 {
        let server = script("cat").spawn().unwrap();
        let id = server.id().unwrap();
        let thread = std::thread::Builder::new().spawn(move || drop(server)).unwrap();
        thread.join().unwrap();
        gone(id).await;
    }
}

#[tokio::test]
async fn dropping_a_shutdown_kills() {
    let mut server = script("trap '' TERM; echo ready; while :; do sleep 60; done").spawn().unwrap();
    let (_, output) = started(&mut server).await;
    let id = server.id().unwrap();
    assert!(tokio::time::timeout(SHORT, server.shutdown(patient())).await.is_err());
    nobody_is_left(output).await;
    gone(id).await;
}

#[test]
fn a_server_may_outlive_its_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let server = first.block_on(async { script("cat").spawn().unwrap() });
    let id = server.id().unwrap();
    drop(first);
    drop(server);
    // Dead it is at once, and the next runtime collects it.
    runtime().block_on(gone(id));
}

#[test]
fn a_server_ends_with_its_runtime() {
    for threads in [false, true] {
        let mut builder = match threads {
            true => tokio::runtime::Builder::new_multi_thread(),
            false => tokio::runtime::Builder::new_current_thread(),
        };
        let first = builder.enable_all().build().unwrap();
        let id = first.block_on(async {
            let server = script("cat").stderr(Stderr::lines(|_| {})).spawn().unwrap();
            let id = server.id().unwrap();
            tokio::spawn(async move { server.shutdown(patient().stdin_timeout(Duration::MAX)).await });
            id
        });
        drop(first);
        builder.build().unwrap().block_on(gone(id));
    }
}

#[tokio::test]
async fn error_output_comes_line_by_line() {
    let (sender, receiver) = mpsc::channel();
    let stderr = Stderr::lines(move |line| sender.send(line.to_owned()).unwrap());
    let text = r#"exec >&2; echo first; echo; printf '\377\r\n'; printf '%020000d\n' 0; echo after; printf last"#;
    let mut server = script(text).stderr(stderr).spawn().unwrap();
    assert!(within(server.wait()).await.unwrap().success());
    let lines: Vec<String> = receiver.try_iter().collect();
    assert_eq!(lines, ["first", "\u{fffd}", &"0".repeat(Stderr::LINE_LIMIT), "after", "last"]);
}

/// Only Linux is sure to have `setsid`.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn reading_error_output_ends_with_the_server() {
    let (sender, receiver) = mpsc::channel();
    let stderr = Stderr::lines(move |line| sender.send(line.to_owned()).unwrap());
    let text = "setsid sh -c 'echo left >&2; echo $$; exec sleep 60' & read -r line; exit 0";
    let mut server = script(text).stderr(stderr).spawn().unwrap();
    let mut stdin = server.take_stdin().unwrap();
    let (left, _output) = started(&mut server).await;
    within(stdin.write_all(b"go\n")).await.unwrap();
    assert!(within(server.wait()).await.unwrap().success());
    assert_eq!(receiver.try_recv().unwrap(), "left");
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected), "the callback is gone, though the pipe is open");
    assert!(signal(left.parse().unwrap(), "-9"), "who leaves the group lives on");
}

#[tokio::test]
async fn error_output_can_be_discarded() {
    let server = script("echo nobody reads this >&2; cat").stderr(Stderr::Discard).spawn().unwrap();
    assert!(shut_down(server, patient()).await.success());
}

#[tokio::test]
async fn what_cannot_be_started_is_named() {
    let Err(error) = ServerCommand::new("/nonexistent/server").arg("--stdio").spawn() else { panic!("it was started") };
    assert_eq!(error.to_string(), "`/nonexistent/server` could not be started");
    assert_eq!(error.program, "/nonexistent/server");
    assert!(error.source().is_some());
    let error = io::Error::from(error);
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("/nonexistent/server"));
}

/// Longer than anything here takes on the slowest machine.
const LIMIT: Duration = Duration::from_secs(60);

/// For what is not going to happen.
const SHORT: Duration = Duration::from_millis(50);
