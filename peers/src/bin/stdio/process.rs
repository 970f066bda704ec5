//! A server that runs, and the pipes to it.
//!
//! One thread writes and reads, in turns. No more is under way than the pipes hold, so neither side
//! blocks the other, and on a small machine the server has the other processor to itself.

use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use peers::watchdog::{self, Shared, Watchdog};
use serde_json::Value;

use crate::answer::{self, Pattern};
use crate::dialect::{DIGITS, Dialect, FIRST_CALL, LIST_ID, OPENING_ID};
use crate::servers::Server;

/// How long any wait may take: an answer, a round, the end of the process.
const LIMIT: Duration = Duration::from_secs(30);

/// The number of tools that every server has.
const TOOLS: usize = 50;

/// The id of the call from whose answer the pattern is learnt.
const LEARNT: u64 = 98_765_432;

#[derive(Debug)]
pub(crate) struct Process {
    /// Who this is, for messages.
    name: String,
    dialect: Dialect,
    id: u32,
    child: Shared,
    /// Closed in order to end the server.
    input: Option<ChildStdin>,
    output: ChildStdout,
    buffer: Box<[u8]>,
    /// What of the buffer was read and not yet taken.
    unread: Range<usize>,
    call: [String; 3],
    next: u64,
    pattern: Option<Pattern>,
    /// How many answers did not look like the first one, and had to be read with care.
    pub(crate) unlike: u64,
}

impl Process {
    /// Starts a server and waits for its first answer; returns how long that took, too.
    pub(crate) fn start(server: &Server, dialect: Dialect) -> Result<(Self, Duration), String> {
        let name = format!("{} ({dialect})", server.name);
        let path = server.path().ok_or_else(|| format!("{name} was not built"))?;
        let mut command = Command::new(path);
        command.args(server.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let start = now();
        let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{name} has no pipes"));
        };
        let mut process = Self {
            name,
            dialect,
            id: child.id(),
            child: Arc::new(Mutex::new(child)),
            input: Some(input),
            output,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            unread: 0..0,
            call: dialect.call(),
            next: FIRST_CALL,
            pattern: None,
            unlike: 0,
        };
        let opened = process.limited(|process| process.ask(&dialect.opening(), OPENING_ID))?;
        let elapsed = start.elapsed();
        if opened["capabilities"]["tools"].is_null() {
            return Err(format!("{} offers no tools: {opened}", process.name));
        }
        process.limited(|process| process.send(dialect.opened().as_bytes()))?;
        Ok((process, elapsed))
    }

    /// Makes the server ready for calls, after it was checked to have the tools that all have.
    pub(crate) fn prepare(&mut self) -> Result<(), String> {
        self.limited(|process| {
            let list = process.ask(&process.dialect.list(), LIST_ID)?;
            let tools = list["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
            if tools.len() != TOOLS || !tools.iter().any(|tool| tool["name"] == "echo") {
                return Err(format!("has {} tools and not {TOOLS} with `echo`", tools.len()));
            }
            let call = process.call.join(&LEARNT.to_string());
            process.send(call.as_bytes())?;
            let line = process.line()?;
            process.pattern = Some(Pattern::learn(&line, LEARNT)?);
            Ok(())
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Does what waits for the server, for which there is a limit.
    pub(crate) fn limited<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        let watchdog = Watchdog::start(&self.child, LIMIT);
        let outcome = work(self);
        if watchdog.stop() {
            let seconds = LIMIT.as_secs();
            return Err(format!(
                "{}: kept the driver waiting for {seconds} s; process {} was killed",
                self.name, self.id
            ));
        }
        outcome.map_err(|error| format!("{}: {error}", self.name))
    }

    /// Appends the next call to a buffer; returns its id.
    pub(crate) fn write_call(&mut self, buffer: &mut Vec<u8>) -> u64 {
        let id = self.next;
        self.next += 1;
        let mut digits = [0; DIGITS];
        let mut rest = id;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let [before, between, after] = &self.call;
        for part in [before.as_bytes(), &digits, between.as_bytes(), &digits, after.as_bytes()] {
            buffer.extend_from_slice(part);
        }
        id
    }

    /// Returns the id that the next call will have.
    pub(crate) fn next_id(&self) -> u64 {
        self.next
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("its input is closed")?;
        input.write_all(bytes).map_err(|error| format!("cannot write: {error}"))
    }

    /// Waits for answers to calls, checks all that are there, and tells their ids.
    pub(crate) fn receive(&mut self, mut answered: impl FnMut(u64) -> Result<(), String>) -> Result<(), String> {
        let mut found = false;
        loop {
            let bytes = &self.buffer[self.unread.clone()];
            if let Some((id, rest)) = self.pattern.as_ref().and_then(|pattern| pattern.strip(bytes)) {
                self.unread.start = self.unread.end - rest.len();
                answered(id)?;
                found = true;
            } else if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                let read = answer::read(&bytes[..end])?;
                self.unread.start += end + 1;
                if let Some(id) = read {
                    self.unlike += 1;
                    answered(id)?;
                    found = true;
                }
            } else if found {
                return Ok(());
            } else {
                self.fill()?;
            }
        }
    }

    /// Sends a request and returns the result; notifications that come before it are passed over.
    fn ask(&mut self, request: &str, id: u64) -> Result<Value, String> {
        self.send(request.as_bytes())?;
        loop {
            let line = self.line()?;
            let mut message: Value = serde_json::from_slice(&line).map_err(|error| error.to_string())?;
            if message["id"] == id {
                let result = message["result"].take();
                return if result.is_object() { Ok(result) } else { Err(format!("no result: {message}")) };
            }
        }
    }

    fn line(&mut self) -> Result<Vec<u8>, String> {
        loop {
            let bytes = &self.buffer[self.unread.clone()];
            if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
                let line = bytes[..end].to_vec();
                self.unread.start += end + 1;
                return Ok(line);
            }
            self.fill()?;
        }
    }

    /// Reads more, at least a byte.
    fn fill(&mut self) -> Result<(), String> {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        let room = &mut self.buffer[self.unread.end..];
        if room.is_empty() {
            return Err("a line does not end".to_owned());
        }
        match self.output.read(room) {
            Ok(0) => Err("it has ended".to_owned()),
            Ok(length) => {
                self.unread.end += length;
                Ok(())
            }
            Err(error) => Err(format!("cannot read: {error}")),
        }
    }

    /// Ends the server by closing its input, as the specification has it.
    #[expect(clippy::disallowed_methods, reason = "the standard library has no other wait with a limit")]
    pub(crate) fn stop(mut self) -> Result<(), String> {
        drop(self.input.take());
        let start = now();
        while start.elapsed() < LIMIT {
            let state = self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
            match state {
                Ok(None) => thread::sleep(Duration::from_millis(1)),
                Ok(Some(_)) => return Ok(()),
                Err(error) => return Err(format!("{}: cannot wait: {error}", self.name)),
            }
        }
        Err(format!("{}: did not end when its input did; process {} was killed", self.name, self.id))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        watchdog::kill(&self.child);
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Room for what is read at once, and for the longest line.
const BUFFER: usize = 256 * 1024;
