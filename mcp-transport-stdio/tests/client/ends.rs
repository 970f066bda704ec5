//! How a child process is ended, and what it may do until then.

use mcp_client::{CloseReason, ConnectError, Error};
use mcp_transport_stdio::{RestartPolicy, ShutdownTimeouts};

use crate::peer::{LIMIT, SHORT, builder, call, text, within};
use crate::script::Script;

fn hasty() -> ShutdownTimeouts {
    ShutdownTimeouts::default().stdin_timeout(SHORT).terminate_timeout(SHORT).kill_timeout(LIMIT)
}

/// A server that ignores the end of its input and SIGTERM is killed, with what it started.
// covers: IO-11
#[tokio::test]
async fn it_never_ends() {
    let stay = "trap '' TERM; (trap '' TERM; echo $$ >> \"$DIR/lives\"; exec sleep 600) & \
                hear() { IFS= read -r line || while :; do sleep 1; done; id=${line#*\\\"id\\\":}; id=${id%%[,\\}]*}; }; serve";
    let script = Script::new("stays", stay);
    let client = within(builder().connect(script.transport().shutdown_timeouts(hasty()))).await.expect("a connection");
    assert!(text(call(&client).await).starts_with("life"));
    script.closed(client).await;
}

/// To drop the last handle is to close the client.
// covers: IO-11
#[tokio::test]
async fn dropping_the_client_ends_it() {
    let script = Script::new("dropped", "serve");
    let client = within(builder().connect(script.transport())).await.expect("a connection");
    drop(client);
    script.gone().await;
    assert_eq!(script.lives().len(), 1);
}

/// To give up connecting is to close the client.
#[tokio::test]
async fn giving_up_ends_it() {
    let script = Script::new("given-up", "cat > /dev/null");
    let connect = builder().connect(script.transport());
    assert!(tokio::time::timeout(10 * SHORT, connect).await.is_err());
    script.gone().await;
}

/// A runtime that ends takes the server with it.
#[test]
fn the_end_of_the_runtime_ends_it() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let script = Script::new("runtime", "serve");
    let first = runtime();
    let client = first.block_on(async { within(builder().connect(script.transport())).await }).expect("a connection");
    drop(first);
    runtime().block_on(async {
        assert!(matches!(call(&client).await, Err(Error::Closed(CloseReason::Disconnected(_)))));
        script.gone().await;
    });
}

/// A server that closes its output is gone, even if its process lives on; that is ended.
// covers: IO-13
#[tokio::test]
async fn it_closes_its_output() {
    let script = Script::new("closes", "on_call() { exec >&-; sleep 600; }; serve");
    let transport = script.transport().shutdown_timeouts(hasty()).restart_policy(RestartPolicy::never());
    let client = within(builder().connect(transport)).await.expect("a connection");
    let error = call(&client).await.expect_err("nobody answers").to_string();
    assert!(error.contains("it closed its output, and was stopped (signal: 15"), "{error}");
    assert!(matches!(within(client.closed()).await, CloseReason::Exited { .. }));
    script.gone().await;
}

/// What it says before it ends is heard.
// covers: IO-13
#[tokio::test]
async fn its_last_words_are_heard() {
    let script = Script::new("last-words", "on_call() { text goodbye; exit 0; }; serve");
    let transport = script.transport().restart_policy(RestartPolicy::never());
    let client = within(builder().connect(transport)).await.expect("a connection");
    assert_eq!(text(call(&client).await), "goodbye");
    assert_eq!(within(client.closed()).await, CloseReason::Exited { status: "exit status: 0".to_owned() });
    script.gone().await;
}

/// A server that ended is gone, even if somebody who left its group has its output. Only Linux is sure to have `setsid`.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn somebody_keeps_its_output() {
    let leave = "on_call() { setsid sh -c 'echo $$ > \"$DIR/left\"; exec sleep 600' & \
                 while [ ! -s \"$DIR/left\" ]; do sleep 0.01; done; exit 7; }; serve";
    let script = Script::new("left", leave);
    let transport = script.transport().restart_policy(RestartPolicy::never());
    let client = within(builder().connect(transport)).await.expect("a connection");
    let error = call(&client).await.expect_err("it dies").to_string();
    assert!(error.contains("exit status: 7"), "{error}");
    let left = std::fs::read_to_string(script.dir().join("left")).expect("somebody left");
    let killed = std::process::Command::new("kill").args(["-9", left.trim()]).status().expect("a command");
    assert!(killed.success(), "who leaves the group lives on");
    script.gone().await;
}

/// A server that only keeps its input closed is gone too.
#[tokio::test]
async fn it_closes_its_input() {
    let script = Script::new("deaf", "on_call() { exec <&-; text last; sleep 600; }; serve");
    let transport = script.transport().shutdown_timeouts(hasty()).restart_policy(RestartPolicy::never());
    let client = within(builder().connect(transport)).await.expect("a connection");
    assert_eq!(text(call(&client).await), "last");
    let error = call(&client).await.expect_err("nobody hears").to_string();
    assert!(error.contains("it closed its output"), "{error}");
    script.gone().await;
}

/// One that never reads, and says nothing, is not waited for without end.
// covers: DU-33
#[tokio::test]
async fn it_never_reads() {
    let script = Script::new("never-reads", "sleep 600");
    let connect = builder().probe_timeout(SHORT).handshake_timeout(SHORT);
    let error =
        within(connect.connect(script.transport().shutdown_timeouts(hasty()))).await.expect_err("no connection");
    assert!(matches!(error, Error::Closed(CloseReason::ConnectFailed(ConnectError::TimedOut))), "{error}");
    script.gone().await;
}

/// What it says when its input has ended does not hold it up.
// covers: IO-11
#[tokio::test]
async fn it_says_much_at_the_end() {
    let much = "hear() { IFS= read -r line || { head -c 1000000 /dev/zero; touch \"$DIR/done\"; exit 0; }; \
                id=${line#*\\\"id\\\":}; id=${id%%[,\\}]*}; }; serve";
    let script = Script::new("talks", much);
    let client = within(builder().connect(script.transport())).await.expect("a connection");
    within(client.close()).await;
    assert!(script.dir().join("done").exists(), "it could say all of it");
    script.gone().await;
}
