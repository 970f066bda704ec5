//! Sessions: how long it takes to begin many, and what they take while nobody uses them.

use std::time::Duration;

use mio::{Events, Poll};
use peers::http::{Connection, wait};
use peers::usage;

use crate::client::Client;
use crate::process::{Mode, Process, now};
use crate::request::{self, FIRST, Kind, Request};
use crate::servers::Server;

/// How many sessions begin.
pub(crate) const SESSIONS: usize = 10_000;

/// How often they do, in processes of their own.
pub(crate) const TURNS: usize = 3;

/// On how many connections.
pub(crate) const CONNECTIONS: usize = 32;

/// How many sessions have a stream.
pub(crate) const STREAMS: usize = 1000;

/// How many sessions warm up.
const BEFORE: usize = 320;

/// What sessions cost a server. Memory is in bytes per session, where the system tells.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// The time in which [`SESSIONS`] began.
    pub(crate) time: Duration,
    /// The processor's time that the server took of it.
    pub(crate) busy: Option<Duration>,
    pub(crate) memory: Option<f64>,
    /// Tasks per session.
    pub(crate) tasks: f64,
    /// The memory of a session with a stream, and of the connection for that.
    pub(crate) streaming: Option<f64>,
    pub(crate) streaming_tasks: f64,
}

impl Cost {
    pub(crate) fn of(server: &Server) -> Result<Self, String> {
        let (time, busy, memory, tasks) = idle(server)?;
        let (streaming, streaming_tasks) = streaming(server, tasks)?;
        Ok(Self { time, busy, memory, tasks, streaming, streaming_tasks })
    }
}

fn idle(server: &Server) -> Result<(Duration, Option<Duration>, Option<f64>, f64), String> {
    let process = Process::start(server, Mode::Sessions)?;
    let mut driver = Driver::open(&process)?;
    let (memory, busy) = (usage::memory(process.id()), usage::processor_time(process.id()));
    let start = now();
    driver.create(SESSIONS)?;
    let time = start.elapsed();
    let busy = usage::processor_time(process.id()).zip(busy).map(|(after, before)| after.saturating_sub(before));
    let memory = per_session(&process, memory, SESSIONS);
    let tasks = (process.stop_and_count_tasks()? as f64 - CONNECTIONS as f64) / (BEFORE + SESSIONS) as f64;
    Ok((time, busy, memory, tasks))
}

fn streaming(server: &Server, idle_tasks: f64) -> Result<(Option<f64>, f64), String> {
    let process = Process::start(server, Mode::Sessions)?;
    let mut driver = Driver::open(&process)?;
    let memory = usage::memory(process.id());
    let mut streams = Vec::with_capacity(STREAMS);
    for name in driver.create(STREAMS)? {
        streams.push(driver.listen(&process, &name, CONNECTIONS + streams.len())?);
    }
    let memory = per_session(&process, memory, STREAMS);
    let others = CONNECTIONS as f64 + BEFORE as f64 * idle_tasks;
    let tasks = (process.stop_and_count_tasks()? as f64 - others) / STREAMS as f64;
    drop(streams);
    Ok((memory, tasks))
}

fn per_session(process: &Process, before: Option<u64>, sessions: usize) -> Option<f64> {
    let (after, before) = usage::memory(process.id()).zip(before)?;
    Some((after as f64 - before as f64) * 1024.0 / sessions as f64)
}

/// Some connections, on which sessions begin.
struct Driver {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    authority: String,
}

impl Driver {
    /// Connects, and warms the server up.
    fn open(process: &Process) -> Result<Self, String> {
        let address = process.address;
        Client::open(Kind::Session, address, 1)?.run(100, &mut Vec::new())?;
        let poll = Poll::new().map_err(|error| error.to_string())?;
        let connections = (0..CONNECTIONS).map(|number| Connection::open(address, &poll, number));
        let connections = connections.collect::<Result<_, _>>()?;
        let events = Events::with_capacity(64);
        let mut driver = Self { poll, events, connections, authority: address.to_string() };
        driver.create(BEFORE)?;
        Ok(driver)
    }

    fn create(&mut self, count: usize) -> Result<Vec<String>, String> {
        create(&mut self.connections, &mut self.poll, &mut self.events, &self.authority, count)
    }

    /// Opens the stream of a session, and waits until it is there.
    fn listen(&mut self, process: &Process, session: &str, number: usize) -> Result<Connection, String> {
        let mut connection = Connection::open(process.address, &self.poll, number)?;
        connection.send(Request::in_session(Kind::SessionListen, &self.authority, session).with_id(FIRST))?;
        while !connection.is_streaming() {
            wait(&mut self.poll, &mut self.events)?;
            if let Some(body) = connection.receive()? {
                return Err(format!("does not let listen: {}", String::from_utf8_lossy(body)));
            }
        }
        Ok(connection)
    }
}

/// Begins so many sessions on some connections, each with the whole handshake; returns their names.
pub(crate) fn create(
    connections: &mut [Connection],
    poll: &mut Poll,
    events: &mut Events,
    authority: &str,
    count: usize,
) -> Result<Vec<String>, String> {
    let initialize = request::initialize(authority);
    let mut names = Vec::with_capacity(count);
    let mut begun = 0;
    // The session that each connection is about to finish the handshake of.
    let mut pending: Vec<Option<String>> = vec![None; connections.len()];
    for connection in connections.iter_mut().take(count) {
        connection.set_handshake(true);
        connection.send(initialize.as_bytes())?;
        begun += 1;
    }
    while names.len() < count {
        wait(poll, events)?;
        for event in &*events {
            let number = event.token().0;
            let Some(connection) = connections.get_mut(number) else { continue };
            let Some(body) = connection.receive()? else { continue };
            if let Some(name) = pending[number].take() {
                if !body.is_empty() {
                    return Err(format!("does not just accept: {}", String::from_utf8_lossy(body)));
                }
                names.push(name);
                if begun < count {
                    connection.send(initialize.as_bytes())?;
                    begun += 1;
                }
            } else {
                if !body.windows(AGREED.len()).any(|window| window == AGREED) {
                    return Err(format!("does not agree: {}", String::from_utf8_lossy(body)));
                }
                let name = connection.take_session().ok_or("a session has no name")?;
                connection.send(request::initialized(authority, &name).as_bytes())?;
                pending[number] = Some(name);
            }
        }
    }
    for connection in connections {
        connection.set_handshake(false);
    }
    Ok(names)
}

/// What the answer to `initialize` has in it.
const AGREED: &[u8] = br#""protocolVersion":"2025-11-25""#;
