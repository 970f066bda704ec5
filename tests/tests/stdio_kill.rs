//! The end of a server on standard input and output, whoever brings it about.
//!
//! | what happens | exit code |
//! |---|---|
//! | the input ends, the output is closed, SIGTERM, SIGINT | 0 |
//! | SIGKILL | none: killed by the signal |
#![cfg(target_os = "linux")]

mod harness;

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::{LIMIT, Peer, SERVER, call, code, exists, is_answer, modern, nap, now, request, signal, text};
use mcp_transport_stdio::{ChildProcess, Line, LineReader, ServerCommand, ShutdownTimeouts, Stderr};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};

/// A server that was started by our own half for clients.
struct Started {
    server: ChildProcess,
    stdin: ChildStdin,
    lines: LineReader<ChildStdout>,
    stderr: Arc<Mutex<Vec<String>>>,
}

fn start(args: &[&str]) -> Started {
    let stderr = Arc::<Mutex<Vec<String>>>::default();
    let said = Arc::clone(&stderr);
    let keep = Stderr::lines(move |line| said.lock().expect("no panic").push(line.to_owned()));
    let mut server = ServerCommand::new(SERVER).args(args).stderr(keep).spawn().expect("it starts");
    let stdin = server.take_stdin().expect("not taken yet");
    let lines = LineReader::new(server.take_stdout().expect("not taken yet"), 64 * 1024 * 1024);
    Started { server, stdin, lines, stderr }
}

impl Started {
    async fn send(&mut self, message: &Value) {
        within(self.stdin.write_all(format!("{message}\n").as_bytes())).await.expect("it reads");
    }

    async fn recv(&mut self) -> Option<Value> {
        match within(self.lines.next()).await.expect("a pipe") {
            Some(Line::Message(line)) => Some(serde_json::from_slice(line).expect("a message")),
            Some(Line::TooLong { .. }) => panic!("too long"),
            None => None,
        }
    }

    async fn ping(&mut self) {
        self.send(&modern(call("ping", "echo", json!({"text": "x"})))).await;
        assert!(is_answer(&self.recv().await.expect("an answer"), &json!("ping")));
    }

    fn id(&self) -> u32 {
        self.server.id().expect("it runs")
    }

    /// Waits for the end that somebody else brought about.
    async fn exit_code(mut self) -> (Option<i32>, Vec<String>) {
        let exited = within(self.server.wait()).await.expect("it ends");
        let stderr = self.stderr.lock().expect("no panic").clone();
        (exited.code(), stderr)
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("within the limit of a test")
}

/// Well, and without a word.
fn well() -> (Option<i32>, Vec<String>) {
    (Some(0), Vec::new())
}

#[tokio::test]
async fn a_server_that_is_killed() {
    let mut started = start(&[]);
    started.send(&modern(call(1, "hang", json!({})))).await;
    started.ping().await;
    let id = started.id();
    signal(id, "KILL");
    assert_eq!(started.recv().await, None, "the client sees the end");
    let exited = within(started.server.wait()).await.expect("it ends");
    assert_eq!(exited.signal(), Some(9));
    assert!(!exists(id), "no zombie stays");
    assert!(started.stdin.write_all(b"\n").await.is_err());
}

#[test]
fn a_server_that_is_killed_under_load() {
    let mut peer = Peer::legacy();
    peer.send_all((0..1000).map(|n| call(n, "big", json!({"bytes": 10_000}))));
    peer.recv();
    peer.signal("KILL");
    peer.rest();
    let id = peer.id();
    assert_eq!(peer.exit().signal(), Some(9));
    assert!(!exists(id), "no zombie stays");
}

/// What is at work when the signal comes is answered; what comes later is not read.
#[test]
fn sigterm_and_sigint_under_load() {
    for name in ["TERM", "INT"] {
        let mut peer = Peer::legacy();
        peer.send_all((0..150).map(|n| call(n, "slow", json!({"ms": 200}))));
        peer.send(&call("big", "big", json!({"bytes": 1_000_000})));
        peer.assert_alive();
        peer.signal(name);
        let answers = peer.rest();
        assert_eq!(answers.len(), 151, "those that wait for a place get one");
        assert!(answers.iter().all(|answer| answer.get("result").is_some()));
        assert_eq!(peer.exit().code(), Some(0), "{name}");
        assert_eq!(peer.stderr(), "");
    }
}

/// Answers that are there are sent, however slowly they are read.
#[test]
fn sigterm_while_answers_wait_to_be_read() {
    let mut peer = Peer::legacy();
    peer.send_all((0..5).map(|n| call(n, "big", json!({"bytes": 1_000_000}))));
    nap(Duration::from_millis(300));
    peer.signal("TERM");
    nap(Duration::from_millis(300));
    let answers = peer.rest();
    assert!(answers.iter().map(|answer| text(answer).len()).eq([1_000_000; 5]));
    assert_eq!(peer.exit().code(), Some(0));
    assert_eq!(peer.stderr(), "");
}

#[tokio::test]
async fn sigterm_with_handlers_that_hang() {
    for name in ["TERM", "INT"] {
        let mut started = start(&["--drain", "300"]);
        started.send(&modern(call(1, "hang", json!({})))).await;
        started.send(&modern(call(2, "slow", json!({"ms": 100})))).await;
        started.ping().await;
        let told = now();
        signal(started.id(), name);
        let answer = started.recv().await.expect("one that ends in time is answered");
        assert_eq!((text(&answer), &answer["id"]), ("slept for 100 ms", &json!(2)));
        assert_eq!(started.recv().await, None, "one that does not is not");
        assert!(told.elapsed() >= Duration::from_millis(250), "it had its time");
        assert_eq!(started.exit_code().await, well(), "{name}");
    }
}

/// Who asks twice does not want to wait: what is at work is given up.
#[tokio::test]
async fn a_second_signal_ends_the_patience() {
    for [first, second] in [["TERM", "TERM"], ["INT", "INT"], ["INT", "TERM"]] {
        let mut started = start(&["--drain", "600000"]);
        started.send(&modern(call(1, "hang", json!({})))).await;
        started.ping().await;
        signal(started.id(), first);
        let waits = tokio::time::timeout(Duration::from_millis(200), started.lines.next()).await;
        assert!(waits.is_err(), "the handler has time: {waits:?}");
        signal(started.id(), second);
        assert_eq!(started.recv().await, None);
        assert_eq!(started.exit_code().await, well());
    }
}

/// The ladder of a client: it closes the input, and asks once more before it kills.
#[tokio::test]
async fn sigterm_after_the_end_of_the_input() {
    let Started { mut server, mut stdin, lines, stderr } = start(&["--drain", "600000"]);
    stdin.write_all(format!("{}\n", modern(call(1, "hang", json!({})))).as_bytes()).await.expect("it reads");
    let id = server.id().expect("it runs");
    let waits = tokio::time::timeout(Duration::from_millis(200), server.wait()).await;
    assert!(waits.is_err(), "{waits:?}");
    drop(stdin);
    let timeouts = ShutdownTimeouts::default().stdin_timeout(Duration::from_millis(300)).terminate_timeout(LIMIT);
    let status = within(server.shutdown(timeouts)).await.expect("it ends");
    assert_eq!(status.code(), Some(0), "it was not killed");
    assert!(stderr.lock().expect("no panic").is_empty() && !exists(id));
    drop(lines);
}

/// A client that does not read cannot keep a server alive that was told to stop.
///
/// Without a signal it can: as long as its answers are not read, the server does not read either, and so does not see
/// the end of its input. When the client is gone, its end of the output is, too.
#[test]
fn sigterm_while_nobody_reads() {
    for closes_first in [false, true] {
        let mut peer = Peer::start_with(&["--drain", "300"]);
        peer.handshake(harness::LEGACY);
        peer.send_all((0..5).map(|n| call(n, "big", json!({"bytes": 1_000_000}))));
        nap(Duration::from_millis(300));
        if closes_first {
            peer.close_stdin();
        }
        assert_eq!(peer.signal_and_exit("TERM"), Some(0));
        assert_eq!(peer.stderr(), "");
    }
}

/// The end of the input shows to a server that waits for its last answers to be read, and that has a limit.
#[test]
fn the_end_of_the_input_while_nobody_reads() {
    let mut peer = Peer::start_with(&["--drain", "300"]);
    peer.handshake(harness::LEGACY);
    peer.send(&call(1, "slow", json!({"ms": 100})));
    peer.send(&call(2, "hang", json!({})));
    // More than fits into the pipe, and less than what makes the server stop reading.
    peer.send(&call(3, "big", json!({"bytes": 200_000})));
    peer.close_stdin();
    assert_eq!(peer.exit().code(), Some(0));
    assert_eq!(peer.stderr(), "");
}

/// A server without work ends at once.
// covers: IO-12, S3.F15
#[tokio::test]
async fn the_end_of_the_input() {
    let mut started = start(&["--drain", "600000"]);
    started.ping().await;
    let listen = json!({"notifications": {"toolsListChanged": true}});
    started.send(&modern(request("listen", "subscriptions/listen", listen))).await;
    assert!(started.recv().await.is_some(), "an acknowledgement");
    let Started { server, stdin, mut lines, stderr } = started;
    drop(stdin);
    let status = within(server.shutdown(ShutdownTimeouts::default().stdin_timeout(LIMIT))).await.expect("it ends");
    assert_eq!(status.code(), Some(0));
    let Ok(Some(Line::Message(last))) = within(lines.next()).await else { panic!("the result of the subscription") };
    assert!(String::from_utf8_lossy(last).contains("\"listen\""));
    assert_eq!(within(lines.next()).await.expect("a pipe"), None);
    assert!(stderr.lock().expect("no panic").is_empty());
}

#[test]
fn the_end_of_the_input_under_load() {
    let mut peer = Peer::legacy();
    peer.send_all((0..150).map(|n| call(n, "slow", json!({"ms": 100}))));
    peer.send_all((150..200).map(|n| request(n, "ping", json!({}))));
    peer.send(&call("asks", "ask", json!({"after": 50})));
    peer.close_stdin();
    let answers = peer.rest();
    assert_eq!(answers.len(), 201, "all are answered");
    let asks = answers.iter().find(|answer| answer["id"] == "asks").expect("an answer");
    assert_eq!(asks["result"]["isError"], true, "nobody can answer its question any more: {asks}");
    assert_eq!(peer.exit().code(), Some(0));
    assert_eq!(peer.stderr(), "");
}

/// A pipe that nobody reads is noticed with the next message. That is no failure, and no signal kills the server.
#[tokio::test]
async fn the_output_is_closed() {
    let mut started = start(&[]);
    started.send(&modern(call(1, "hang", json!({})))).await;
    started.ping().await;
    let Started { mut server, mut stdin, lines, stderr } = started;
    drop(lines);
    let waits = tokio::time::timeout(Duration::from_millis(100), server.wait()).await;
    assert!(waits.is_err(), "nothing was to be said: {waits:?}");
    stdin.write_all(format!("{}\n", request(2, "ping", json!({}))).as_bytes()).await.expect("it reads");
    let exited = within(server.wait()).await.expect("it ends");
    assert_eq!((exited.code(), exited.signal()), (Some(0), None));
    assert!(stderr.lock().expect("no panic").is_empty());
}

/// The same while it writes.
#[tokio::test]
async fn the_output_is_closed_under_load() {
    let mut started = start(&[]);
    for n in 0..100 {
        started.send(&modern(call(n, "big", json!({"bytes": 100_000})))).await;
    }
    assert!(started.recv().await.is_some());
    drop(started.lines);
    let exited = within(started.server.wait()).await.expect("it ends");
    assert_eq!(exited.code(), Some(0));
    assert!(started.stderr.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn both_are_closed() {
    let mut started = start(&["--drain", "600000"]);
    started.send(&modern(call(1, "slow", json!({"ms": 200})))).await;
    started.ping().await;
    let Started { mut server, stdin, lines, stderr } = started;
    drop((stdin, lines));
    let exited = within(server.wait()).await.expect("it ends");
    assert_eq!((exited.code(), exited.signal()), (Some(0), None));
    assert!(stderr.lock().expect("no panic").is_empty());
}

/// Dropping our half kills.
#[tokio::test]
async fn a_client_that_lets_go() {
    let mut started = start(&[]);
    started.ping().await;
    let id = started.id();
    drop(started);
    within(async {
        while exists(id) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A file, or nothing at all, instead of pipes.
#[test]
fn streams_that_are_no_pipes() {
    let input = format!("{}\n{}\n", request(1, "ping", json!({})), modern(call(2, "echo", json!({"text": "file"}))));
    let name = |what| std::env::temp_dir().join(format!("mcp-stdio-kill-{}-{what}", std::process::id()));
    let (from, to) = (name("input"), name("output"));
    std::fs::write(&from, input).expect("a file");
    let run = |stdin: Stdio, stdout: Stdio| {
        let server = Command::new(SERVER).stdin(stdin).stdout(stdout).stderr(Stdio::piped()).spawn();
        let output = server.and_then(Child::wait_with_output).expect("it runs");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
        output.stdout
    };
    let input = || Stdio::from(std::fs::File::open(&from).expect("a file"));
    let piped = run(input(), Stdio::piped());
    let answers: Vec<Value> = serde_json::Deserializer::from_slice(&piped).into_iter().map(Result::unwrap).collect();
    assert_eq!((answers.len(), text(&answers[1])), (2, "file"));
    run(input(), std::fs::File::create(&to).expect("a file").into());
    assert!(std::fs::read(&to).expect("a file") == piped);
    run(input(), Stdio::null());
    assert!(run(Stdio::null(), Stdio::piped()).is_empty());
    for name in [from, to] {
        std::fs::remove_file(name).expect("a file");
    }
}

/// Tells a server to stop, and waits until it does.
fn terminated(mut server: Child) -> Option<i32> {
    assert!(server.try_wait().expect("it is ours").is_none(), "it serves");
    signal(server.id(), "TERM");
    let end = now() + LIMIT;
    loop {
        if let Some(status) = server.try_wait().expect("it is ours") {
            return status.code();
        }
        if now() > end {
            server.kill().expect("it is ours");
        }
        nap(Duration::from_millis(2));
    }
}

/// A terminal cannot be waited for, and nobody types: a signal ends the server all the same.
#[test]
fn sigterm_on_a_terminal() {
    // Nothing comes from the controlling side of a terminal that nobody has opened.
    let terminal = std::fs::File::options().read(true).write(true).open("/dev/ptmx").expect("a terminal");
    let mut command = Command::new(SERVER);
    command.stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = command.spawn().expect("it starts");
    nap(Duration::from_millis(300));
    assert_eq!(terminated(server), Some(0));
}

/// Output that is shared with standard error has to block. Nobody reads it, and a signal ends the server all the same.
#[test]
fn sigterm_while_nobody_reads_what_is_shared_with_stderr() {
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" --drain 300 2>&1", SERVER]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.spawn().expect("a shell");
    let mut stdin = server.stdin.take().expect("a pipe");
    let mut stdout = server.stdout.take().expect("a pipe");
    let echo = modern(call(1, "echo", json!({"text": "x"})));
    std::io::Write::write_all(&mut stdin, format!("{echo}\n").as_bytes()).expect("it reads");
    assert!(std::io::Read::read(&mut stdout, &mut [0; 4096]).expect("a pipe") > 0, "it serves");
    assert!(!is_nonblocking(server.id(), 1) && !is_nonblocking(server.id(), 2));
    let big = modern(call(2, "big", json!({"bytes": 1_000_000})));
    std::io::Write::write_all(&mut stdin, format!("{big}\n").as_bytes()).expect("it reads");
    nap(Duration::from_millis(300));
    assert_eq!(terminated(server), Some(0));
    drop((stdin, stdout));
}

/// One socket as all three streams: who prints to standard error must not be told to come back later.
#[test]
fn one_socket_for_everything() {
    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().expect("sockets");
    ours.set_read_timeout(Some(LIMIT)).expect("a socket");
    let stream = || Stdio::from(OwnedFd::from(theirs.try_clone().expect("a socket")));
    let mut command = Command::new(SERVER);
    let server = command.args(["--drain", "300"]).stdin(stream()).stdout(stream()).stderr(stream()).spawn();
    let server = server.expect("it starts");
    drop((command, theirs));
    let echo = modern(call(1, "echo", json!({"text": "x"})));
    std::io::Write::write_all(&mut ours, format!("{echo}\n").as_bytes()).expect("it reads");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(&ours));
    let answer = lines.next().expect("an answer").expect("a socket");
    assert_eq!(text(&serde_json::from_str(&answer).expect("a message")), "x");
    assert!((0..3).all(|stream| !is_nonblocking(server.id(), stream)));
    assert_eq!(terminated(server), Some(0));
}

/// Whether a stream of a process does not block.
fn is_nonblocking(id: u32, stream: u32) -> bool {
    const O_NONBLOCK: u32 = 0o4000;

    let info = std::fs::read_to_string(format!("/proc/{id}/fdinfo/{stream}")).expect("it runs");
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags");
    u32::from_str_radix(flags.trim(), 8).expect("a number") & O_NONBLOCK != 0
}

/// A signal in the middle of a message, and in the middle of one that is refused.
#[test]
fn sigterm_in_the_middle_of_a_line() {
    for rest in [r#"{"jsonrpc":"2.0","id":1,"meth"#.to_owned(), "x".repeat(17 << 20)] {
        let mut peer = Peer::legacy();
        let is_long = rest.len() > 1000;
        peer.write(rest);
        assert!(peer.is_written_within(LIMIT));
        if is_long {
            assert_eq!(code(&peer.recv()), -32600);
        }
        assert_eq!(peer.signal_and_exit("TERM"), Some(0));
        assert!(peer.rest().is_empty());
        assert_eq!(peer.stderr(), "");
    }
}
