//! Servers that die, and come back.

use std::sync::mpsc;
use std::time::Duration;

use mcp_client::types::Era;
use mcp_client::{Change, CloseReason, Error, Mode};
use mcp_transport_stdio::{ChildTransport, RestartPolicy, ServerCommand, Stderr};

use crate::peer::{SHORT, builder, call, text, tool_changes, within};
use crate::script::Script;

fn exited(status: &str) -> CloseReason {
    CloseReason::Exited { status: status.to_owned() }
}

/// A modern server and a legacy one.
// covers: DU-30, DU-31, DU-33, S3.63
#[tokio::test]
async fn either_era() {
    for (name, on_discover, era) in [("modern", "probed", Era::Modern), ("legacy", "refuse", Era::Legacy)] {
        let script = Script::new(name, &format!("on_discover() {{ {on_discover}; }}; serve"));
        let client = within(builder().connect(script.transport())).await.expect("a connection");
        assert_eq!(client.revision().map(|revision| revision.era()), Some(era));
        assert_eq!(text(call(&client).await), "life 1");
        script.closed(client).await;
        assert_eq!(script.lives().len(), 1);
    }
}

/// A server that does not answer the probe goes on with the same process.
// covers: DU-33
#[tokio::test]
async fn silent_on_the_probe() {
    let script = Script::new("silent", "on_discover() { :; }; serve");
    let client = within(builder().probe_timeout(SHORT).connect(script.transport())).await.expect("a connection");
    assert_eq!(client.revision().map(|revision| revision.era()), Some(Era::Legacy));
    assert_eq!(text(call(&client).await), "life 1");
    script.closed(client).await;
}

/// A server that dies of the probe is started again once, whatever the policy, and not probed then.
// covers: DU-34, IO-19
#[tokio::test]
async fn dying_of_the_probe() {
    let script = Script::new("probe", "on_discover() { exit 2; }; serve");
    let transport = script.transport().restart_policy(RestartPolicy::never());
    let client = within(builder().connect(transport)).await.expect("a connection");
    assert_eq!(client.revision().map(|revision| revision.era()), Some(Era::Legacy));
    assert_eq!(text(call(&client).await), "life 2");
    script.closed(client).await;
}

/// One that never works is given up, with its status.
// covers: DU-34, S4.52
#[tokio::test]
async fn it_never_works() {
    let script = Script::new("never", "exit 3");
    let error = within(builder().connect(script.transport())).await.expect_err("no connection");
    assert!(matches!(&error, Error::Closed(why) if *why == exited("exit status: 3")), "{error}");
    assert_eq!(error.to_string(), "the server exited: exit status: 3");
    script.gone().await;
}

/// A server that fails before it has read anything did not die of what it was asked, and is not started a second time.
// covers: INT-7
#[cfg(target_os = "linux")]
#[tokio::test]
async fn int_7_what_fails_at_the_start_is_started_once() {
    for (name, text) in [("fails", "exit 3"), ("fails-late", "sleep 0.3; exit 3")] {
        let script = Script::new(name, text);
        let error = within(builder().connect(script.transport())).await.expect_err("no connection");
        assert!(matches!(&error, Error::Closed(why) if *why == exited("exit status: 3")), "{error}");
        assert_eq!(script.lives().len(), 1, "{name}");
        script.gone().await;
    }
}

/// A legacy server that is slow to start and dies of the probe is still found, and so is one of both eras that is slow.
// covers: INT-7
#[tokio::test]
async fn int_7_slow_servers_are_what_they_are() {
    let die = "on_discover() { [ $life = 1 ] && exit 2; refuse; }; sleep 0.5; serve";
    let refuse = "on_discover() { refuse; }; sleep 0.5; serve";
    for (name, body, era, life) in [
        ("slow-modern", "sleep 0.5; serve", Era::Modern, "life 1"),
        ("slow-legacy", refuse, Era::Legacy, "life 1"),
        ("slow-dying", die, Era::Legacy, "life 2"),
    ] {
        let script = Script::new(name, body);
        let connecting = builder().probe_timeout(SHORT).connect(script.transport());
        let client = within(connecting).await.expect("a connection");
        assert_eq!(client.revision().map(|revision| revision.era()), Some(era), "{name}");
        assert_eq!(text(call(&client).await), life);
        script.closed(client).await;
    }
}

/// Nor is one that refuses the handshake and dies of the probe, again and again.
// covers: DU-34, DU-41
#[tokio::test]
async fn it_refuses_and_dies() {
    let script = Script::new("refuses", "on_discover() { exit 4; }; initialized() { refuse; }; serve");
    let transport = script.transport().restart_policy(RestartPolicy::never());
    let error = within(builder().connect(transport)).await.expect_err("no connection");
    assert!(matches!(&error, Error::Closed(why) if *why == exited("exit status: 4")), "{error}");
    assert_eq!(script.lives().len(), 2);
    script.gone().await;
}

/// Calls end with the status, the next one goes to a new process, and so do those who listen.
// covers: IO-14, IO-15, S3.F15
#[tokio::test]
async fn it_dies_during_a_call() {
    for (name, on_discover) in [("mid-modern", "probed"), ("mid-legacy", "refuse")] {
        let die = "on_call() { if [ $life = 1 ]; then exit 7; fi; text \"life $life\"; }";
        let script = Script::new(name, &format!("{die}; on_discover() {{ {on_discover}; }}; serve"));
        let client = within(builder().connect(script.transport())).await.expect("a connection");
        let mut listener = within(client.listen(tool_changes())).await.expect("a listener");
        let error = call(&client).await.expect_err("it dies");
        assert!(matches!(error, Error::Interrupted(_)), "{error}");
        assert!(error.to_string().contains("exit status: 7"), "{error}");
        assert_eq!(text(call(&client).await), "life 2");
        assert_eq!(within(listener.next()).await.expect("no end").expect("no error"), Change::Tools);
        assert_eq!(script.lives().len(), 2);
        drop(listener);
        script.closed(client).await;
    }
}

/// A signal is named, and with no restarts the client is over.
// covers: S4.52
#[tokio::test]
async fn it_is_killed() {
    let script = Script::new("killed", "on_call() { kill -9 $$; }; serve");
    let transport = script.transport().restart_policy(RestartPolicy::never());
    let client = within(builder().connect(transport)).await.expect("a connection");
    let error = call(&client).await.expect_err("it dies").to_string();
    assert!(error.contains("signal: 9"), "{error}");
    let why = within(client.closed()).await;
    assert!(matches!(&why, CloseReason::Exited { status } if status.starts_with("signal: 9")), "{why}");
    assert!(matches!(call(&client).await, Err(Error::Closed(CloseReason::Exited { .. }))));
    script.gone().await;
}

/// A server that dies as soon as it starts is given up after a while, in either era.
// covers: RB-67
#[tokio::test]
async fn a_crash_loop_ends() {
    for (name, on_discover) in [("loop-modern", "probed"), ("loop-legacy", "refuse")] {
        let die = "if [ $life != 1 ]; then exit 8; fi; on_call() { exit 7; }";
        let script = Script::new(name, &format!("{die}; on_discover() {{ {on_discover}; }}; serve"));
        let restart = RestartPolicy::default().max_restarts(3).initial_delay(Duration::from_millis(1));
        let client = within(builder().connect(script.transport().restart_policy(restart))).await.expect("a connection");
        assert!(call(&client).await.is_err());
        assert_eq!(within(client.closed()).await, exited("exit status: 8"));
        assert_eq!(script.lives().len(), 1 + 3);
        script.gone().await;
    }
}

/// Calls that are made while there is no server wait for the next one, for as long as a server may be silent.
// covers: IO-14
#[tokio::test]
async fn calls_wait_for_the_next_server() {
    let script = Script::new("waits", "on_call() { [ $life = 1 ] && exit 7; text \"life $life\"; }; serve");
    let slow = RestartPolicy::default().initial_delay(Duration::from_secs(3600));
    let client = within(builder().connect(script.transport().restart_policy(slow))).await.expect("a connection");
    assert!(call(&client).await.is_err());
    let waiting = client.call_tool("tool").idle_timeout(SHORT).into_future();
    let error = within(waiting).await.expect_err("there is no server");
    assert!(matches!(error, Error::TimedOut), "{error}");
    // Nor does closing wait for the next one.
    script.closed(client).await;
    assert_eq!(script.lives().len(), 1);
}

/// A program that cannot be started is named.
#[tokio::test]
async fn it_cannot_be_started() {
    let transport = ChildTransport::new(ServerCommand::new("/nonexistent/server"));
    let error = within(builder().connect(transport)).await.expect_err("no connection");
    assert!(matches!(error, Error::Closed(CloseReason::Disconnected(_))), "{error}");
    assert!(error.to_string().contains("`/nonexistent/server` could not be started: "), "{error}");
}

/// Nor can one that is not there any more; that counts as dying at once.
// covers: RB-67
#[tokio::test]
async fn it_cannot_be_started_again() {
    let script = Script::new("vanishes", "on_call() { exit 7; }; serve");
    let link = script.dir().join("server");
    std::os::unix::fs::symlink("/bin/sh", &link).expect("a link");
    let spawn = script.spawn_as(&link);
    let restart = RestartPolicy::default().max_restarts(3).initial_delay(Duration::from_millis(1));
    let client =
        within(builder().connect(ChildTransport::new(spawn).restart_policy(restart))).await.expect("a connection");
    std::fs::remove_file(&link).expect("it is there");
    assert!(call(&client).await.is_err());
    let why = within(client.closed()).await.to_string();
    assert!(why.contains("/server` could not be started"), "{why}");
    script.gone().await;
}

/// What it writes to its standard error goes to the same place, life after life, and is no failure.
// covers: IO-5
#[tokio::test]
async fn its_errors_are_heard() {
    let script = Script::new("stderr", "echo \"panic in life $life\" >&2; on_call() { exit 7; }; serve");
    let (sender, receiver) = mpsc::channel();
    let stderr = Stderr::lines(move |line| sender.send(line.to_owned()).expect("somebody hears"));
    let restart = RestartPolicy::default().max_restarts(1).initial_delay(Duration::from_millis(1));
    let transport = ChildTransport::new(script.spawn().stderr(stderr)).restart_policy(restart);
    let client = within(builder().mode(Mode::Modern).connect(transport)).await.expect("a connection");
    assert!(call(&client).await.is_err());
    assert!(call(&client).await.is_err());
    assert_eq!(within(client.closed()).await, exited("exit status: 7"));
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["panic in life 1", "panic in life 2"]);
    script.gone().await;
}
