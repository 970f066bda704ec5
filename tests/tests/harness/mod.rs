//! A client without manners, for a server that runs as a process of its own.
//!
//! Every wait has a limit, so that a fault is a failure and not a hang.
#![allow(dead_code, reason = "each test target needs a part of it")]
#![allow(unreachable_pub, reason = "shared by test targets, none of which has a public interface")]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mcp_testkit::envelope;
pub use mcp_testkit::envelope::{error_code as code, request, tool_text as text};
use serde_json::{Value, json};

/// Longer than anything here takes on the slowest machine.
pub const LIMIT: Duration = Duration::from_secs(20);

pub const SERVER: &str = env!("CARGO_BIN_EXE_stdio-server");

/// The newest revision of the era with a handshake.
pub const LEGACY: &str = "2025-11-25";

/// A server, and what was read of its answers.
pub struct Peer {
    child: Child,
    writer: Sender<Order>,
    chunks: Receiver<Vec<u8>>,
    /// What was read and not taken yet.
    buffer: Vec<u8>,
    taken: usize,
    searched: usize,
    /// Answers to others than the one that was waited for.
    stash: VecDeque<Value>,
    stderr: Option<JoinHandle<String>>,
    pings: u64,
}

/// What the writing thread has to do. A server may stop to read, and that must not stop the test.
enum Order {
    Write(Vec<u8>),
    Repeat(Vec<u8>, usize),
    Tell(Sender<()>),
    Close,
}

impl Peer {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(args: &[&str]) -> Self {
        let mut command = Command::new(SERVER);
        // What is measured is what the server keeps, not what the C library keeps for it.
        command.env("MALLOC_MMAP_THRESHOLD_", "262144").env("MALLOC_TRIM_THRESHOLD_", "262144");
        // Nor what the first backtrace loads to find the names of functions.
        command.env("RUST_BACKTRACE", "0");
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let (stdin, stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut stderr = child.stderr.take().expect("a pipe");
        let (writer, orders) = channel();
        thread(move || write(stdin, &orders));
        // Nothing is read ahead but one piece: who does not ask for it does not read.
        let (sender, chunks) = sync_channel(0);
        thread(move || read(stdout, &sender));
        let stderr = thread(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            child,
            writer,
            chunks,
            buffer: Vec::new(),
            taken: 0,
            searched: 0,
            stash: VecDeque::new(),
            stderr: Some(stderr),
            pings: 0,
        }
    }

    /// A server after the handshake of the legacy era, in its newest revision.
    pub fn legacy() -> Self {
        let mut peer = Self::start();
        peer.handshake(LEGACY);
        peer
    }

    pub fn handshake(&mut self, version: &str) {
        self.send(&initialize("handshake", version));
        let answer = self.answer(&json!("handshake"));
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.send(&envelope::initialized());
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&self, message: &Value) {
        self.write(format!("{message}\n"));
    }

    pub fn send_all(&self, messages: impl IntoIterator<Item = Value>) {
        let lines: Vec<String> = messages.into_iter().map(|message| format!("{message}\n")).collect();
        self.write(lines.concat());
    }

    pub fn write(&self, bytes: impl Into<Vec<u8>>) {
        self.writer.send(Order::Write(bytes.into())).expect("the server lives");
    }

    pub fn write_times(&self, bytes: impl Into<Vec<u8>>, times: usize) {
        self.writer.send(Order::Repeat(bytes.into(), times)).expect("the server lives");
    }

    /// Whether all that was to be written is written, after waiting for some time.
    pub fn is_written_within(&self, limit: Duration) -> bool {
        let (sender, written) = channel();
        self.writer.send(Order::Tell(sender)).expect("the server lives");
        written.recv_timeout(limit).is_ok()
    }

    pub fn close_stdin(&self) {
        let _ = self.writer.send(Order::Close);
    }

    /// The next message, whatever it is; everything on standard output has to be one.
    pub fn recv(&mut self) -> Value {
        self.recv_within(LIMIT).expect("an answer in time")
    }

    /// The next message; `None` if none came in time, or if there is none any more.
    pub fn recv_within(&mut self, limit: Duration) -> Option<Value> {
        if let Some(message) = self.stash.pop_front() {
            return Some(message);
        }
        self.receive(limit)
    }

    fn receive(&mut self, limit: Duration) -> Option<Value> {
        let line = self.line(limit)?;
        let message: Value = serde_json::from_slice(&line)
            .unwrap_or_else(|fault| panic!("{fault}: {:?}", String::from_utf8_lossy(&line[..line.len().min(200)])));
        let is_valid = |message: &Value| message["jsonrpc"] == "2.0";
        let batch = message.as_array().map(Vec::as_slice);
        assert!(batch.unwrap_or_else(|| std::slice::from_ref(&message)).iter().all(is_valid), "{}", clipped(&message));
        Some(message)
    }

    fn line(&mut self, limit: Duration) -> Option<Vec<u8>> {
        let end = now() + limit;
        loop {
            let rest = &self.buffer[self.searched..];
            // The library's way to ask whether there is one is fast even without optimisation.
            let newline = if rest.contains(&b'\n') { rest.iter().position(|byte| *byte == b'\n') } else { None };
            if let Some(at) = newline {
                let line = self.buffer[self.taken..self.searched + at].to_vec();
                self.taken = self.searched + at + 1;
                self.searched = self.taken;
                return Some(line);
            }
            self.buffer.drain(..self.taken);
            (self.taken, self.searched) = (0, self.buffer.len());
            let left = end.saturating_duration_since(now());
            self.buffer.extend(self.chunks.recv_timeout(left).ok()?);
        }
    }

    /// Waits for the answer to a request; what else comes is kept for later.
    pub fn answer(&mut self, id: &Value) -> Value {
        if let Some(at) = self.stash.iter().position(|message| is_answer(message, id)) {
            return self.stash.remove(at).expect("it was found");
        }
        loop {
            let message = self.receive(LIMIT).unwrap_or_else(|| panic!("no answer to {id}; {}", self.state()));
            if is_answer(&message, id) {
                return message;
            }
            self.stash.push_back(message);
        }
    }

    /// Sends a request that is always answered, and gives its id.
    pub fn ping(&mut self) -> Value {
        self.pings += 1;
        let id = json!(format!("ping {}", self.pings));
        self.send(&request(id.clone(), "ping", json!({})));
        id
    }

    /// Whether the server still answers.
    pub fn assert_alive(&mut self) {
        let id = self.ping();
        let answer = self.answer(&id);
        assert!(answer.get("result").is_some(), "{answer}");
    }

    /// Sends something between two requests, and gives all that was answered to it.
    ///
    /// The first is one that the connection answers by itself; the second goes to a handler, and so is answered after
    /// all that came before it.
    pub fn between(&mut self, bytes: &[u8]) -> Vec<Value> {
        let (before, after) = (self.ping(), json!("after"));
        self.write(bytes);
        self.send(&modern(call(after.clone(), "echo", json!({"text": "after"}))));
        let mut answers = Vec::new();
        loop {
            let message = self.recv();
            if is_answer(&message, &after) {
                assert_eq!(text(&message), "after");
                break;
            }
            answers.push(message);
        }
        let before = answers.iter().position(|message| is_answer(message, &before));
        assert!(answers.remove(before.expect("the request before it is answered")).get("result").is_some());
        answers
    }

    /// What `/proc` says, in KiB.
    pub fn memory(&self) -> Memory {
        let status = self.proc("status");
        let of = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a figure");
            line.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number")
        };
        Memory { now: of("VmRSS:"), peak: of("VmHWM:") }
    }

    /// What changes as long as the server does anything: the bytes that it has read, and the time that it has used.
    pub fn activity(&self) -> (u64, Vec<String>) {
        let io = self.proc("io");
        let read = io.lines().find_map(|line| line.strip_prefix("rchar:")).expect("a figure");
        // The times are the 14th and 15th field of all.
        let times = self.stat().into_iter().skip(11).take(2).collect();
        (read.trim().parse().expect("a number"), times)
    }

    /// Whether it waits for something; one that only waits for the processor does not.
    pub fn is_asleep(&self) -> bool {
        self.stat().first().is_some_and(|state| state == "S")
    }

    /// The fields behind the name, which may have spaces.
    fn stat(&self) -> Vec<String> {
        let stat = self.proc("stat");
        stat.rsplit(')').next().expect("a last one").split_whitespace().map(str::to_owned).collect()
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.id())).expect("it runs")
    }

    /// Waits until the server rests, and says what it keeps then.
    pub fn settled(&mut self) -> Memory {
        self.assert_alive();
        self.memory()
    }

    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    pub fn signal_and_exit(&mut self, name: &str) -> Option<i32> {
        self.signal(name);
        self.exit().code()
    }

    /// Waits for the server to end by itself.
    pub fn exit(&mut self) -> ExitStatus {
        let end = now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return status;
            }
            assert!(now() < end, "the server does not end; {}", self.state());
            nap(Duration::from_millis(2));
        }
    }

    /// What it wrote to standard error, once it has ended.
    pub fn stderr(&mut self) -> String {
        self.stderr.take().expect("asked once").join().expect("it was read")
    }

    /// Closes the input: the server has to end well, and must not have complained.
    pub fn finish(mut self) {
        self.close_stdin();
        let rest = self.rest();
        assert!(rest.is_empty(), "nobody asked for {} more: {}", rest.len(), clipped(&rest[0]));
        assert_eq!(self.exit().code(), Some(0));
        assert_eq!(self.stderr(), "");
    }

    /// All that comes until the server closes its output.
    pub fn rest(&mut self) -> Vec<Value> {
        let end = now() + LIMIT;
        let mut rest: Vec<Value> = self.stash.drain(..).collect();
        while let Some(message) = self.receive(end.saturating_duration_since(now())) {
            rest.push(message);
        }
        assert!(now() < end, "its output does not end; {}", self.state());
        rest
    }

    fn state(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        status.lines().filter(|line| line.starts_with("State") || line.starts_with("VmRSS")).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How much memory a process has, in KiB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    pub now: u64,
    pub peak: u64,
}

pub const MIB: u64 = 1024;

fn write(mut stdin: ChildStdin, orders: &Receiver<Order>) {
    for order in orders {
        // What cannot be written shows in what is not answered.
        let _ = match order {
            Order::Write(bytes) => stdin.write_all(&bytes),
            Order::Repeat(bytes, times) => (0..times).try_for_each(|_| stdin.write_all(&bytes)),
            Order::Tell(sender) => {
                let _ = sender.send(());
                Ok(())
            }
            Order::Close => return,
        };
    }
}

fn read(mut stdout: impl Read, sender: &SyncSender<Vec<u8>>) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(read) = stdout.read(&mut piece) {
        if read == 0 || sender.send(piece[..read].to_vec()).is_err() {
            return;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test may have threads")]
fn thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::spawn(work)
}

#[expect(clippy::disallowed_methods, reason = "a test may read the clock")]
pub fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a test may wait")]
pub fn nap(time: Duration) {
    std::thread::sleep(time);
}

pub fn signal(id: u32, name: &str) {
    let kill = Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status().expect("a shell");
    assert!(kill.success());
}

/// Whether there is such a process, be it a zombie.
pub fn exists(id: u32) -> bool {
    std::fs::metadata(format!("/proc/{id}")).is_ok()
}

pub fn is_answer(message: &Value, id: &Value) -> bool {
    message.get("method").is_none() && message.get("id") == Some(id)
}

/// A call of the legacy era.
pub fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

/// The same as a request of the modern era.
pub fn modern(mut request: Value) -> Value {
    request["params"] = envelope::with_modern_meta(request["params"].take(), json!({}));
    request
}

/// The same with a token for progress.
pub fn with_progress(mut request: Value, token: impl Into<Value>) -> Value {
    request["params"]["_meta"]["progressToken"] = token.into();
    request
}

pub fn initialize(id: impl Into<Value>, version: &str) -> Value {
    envelope::initialize(id, version, json!({"roots": {}}))
}

pub fn clipped(message: &Value) -> String {
    message.to_string().chars().take(300).collect()
}
