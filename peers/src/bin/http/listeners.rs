//! Many streams of one server, and how long it takes until all of them have been told of a change.

use std::time::Duration;

use mio::{Events, Poll};
use peers::http::{Connection, wait};
use peers::usage;

use crate::answer::{Pattern, check_acknowledgement, has_message};
use crate::client::Client;
use crate::process::{Mode, Process, now};
use crate::request::{FIRST, Kind, Request};
use crate::sessions;

/// How many streams each server has.
pub(crate) const LISTENERS: usize = 1000;

/// How many changes there are.
pub(crate) const CHANGES: usize = 51;

/// The streams of `subscriptions/listen`, or those of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Subscriptions,
    Sessions,
}

impl Audience {
    /// The request that opens a stream.
    pub(crate) fn listen(self) -> Kind {
        match self {
            Self::Subscriptions => Kind::Listen,
            Self::Sessions => Kind::SessionListen,
        }
    }

    /// The request that causes a change, and one that does not.
    fn calls(self) -> (Kind, Kind) {
        match self {
            Self::Subscriptions => (Kind::Change, Kind::Modern),
            Self::Sessions => (Kind::SessionChange, Kind::Session),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Listeners {
    audience: Audience,
    poll: Poll,
    events: Events,
    /// The streams; at the end is the connection on which changes are asked for.
    connections: Vec<Connection>,
    change: Request,
    next: u64,
    told: Pattern,
    answered: Pattern,
    /// The bytes of the server's memory that each stream takes, where the system tells.
    pub(crate) memory: Option<f64>,
}

impl Listeners {
    pub(crate) fn open(process: &Process, audience: Audience) -> Result<Self, String> {
        let address = process.address;
        let authority = address.to_string();
        let (change, plain) = audience.calls();
        // What the first request brings along is not counted.
        Client::open(plain, address, 1)?.run(100, &mut Vec::new())?;
        let before = usage::memory(process.id());
        let names = Self::names(process, audience)?;
        let mut listeners = Self {
            audience,
            poll: poll()?,
            events: Events::with_capacity(LISTENERS),
            connections: Vec::with_capacity(LISTENERS + 1),
            change: Request::in_session(change, &authority, &names[LISTENERS]),
            next: FIRST,
            told: Pattern::default(),
            answered: Pattern::default(),
            memory: None,
        };
        for name in &names[..LISTENERS] {
            listeners.add(process, Request::in_session(audience.listen(), &authority, name))?;
        }
        let bytes = |(after, before): (u64, u64)| (after as f64 - before as f64) * 1024.0 / LISTENERS as f64;
        listeners.memory = usage::memory(process.id()).zip(before).map(bytes);
        listeners.connections.push(Connection::open(address, &listeners.poll, LISTENERS)?);
        Ok(listeners)
    }

    /// Creates a session for each stream, and one in which changes are asked for; without sessions there are no names.
    fn names(process: &Process, audience: Audience) -> Result<Vec<String>, String> {
        if audience.listen().mode() == Mode::NoSessions {
            return Ok(vec![String::new(); LISTENERS + 1]);
        }
        let mut poll = poll()?;
        let connections = (0..sessions::CONNECTIONS).map(|number| Connection::open(process.address, &poll, number));
        let mut connections = connections.collect::<Result<Vec<_>, _>>()?;
        let mut events = Events::with_capacity(sessions::CONNECTIONS);
        sessions::create(&mut connections, &mut poll, &mut events, &process.address.to_string(), LISTENERS + 1)
    }

    /// Adds a stream, and waits until it is open.
    fn add(&mut self, process: &Process, mut request: Request) -> Result<(), String> {
        let number = self.connections.len();
        let id = listener(number);
        let mut connection = Connection::open(process.address, &self.poll, number)?;
        connection.send(request.with_id(id))?;
        loop {
            wait(&mut self.poll, &mut self.events)?;
            if let Some(body) = connection.receive()? {
                return Err(format!("does not let listen: {}", String::from_utf8_lossy(body)));
            }
            match self.audience {
                Audience::Sessions if connection.is_streaming() => break,
                Audience::Sessions => {}
                Audience::Subscriptions => {
                    if let Some(events) = connection.events() {
                        check_acknowledgement(events, id)?;
                        break;
                    }
                }
            }
        }
        connection.clear_events();
        self.connections.push(connection);
        Ok(())
    }

    /// Asks for a change; returns how long it took until the last stream was told of it.
    pub(crate) fn change(&mut self) -> Result<Duration, String> {
        let id = self.next;
        self.next += 1;
        let (mut told, mut answered) = (0, false);
        let start = now();
        self.connections[LISTENERS].send(self.change.with_id(id))?;
        let mut last = None;
        while told < LISTENERS || !answered {
            wait(&mut self.poll, &mut self.events)?;
            for event in &self.events {
                let number = event.token().0;
                let connection = &mut self.connections[number];
                match connection.receive()? {
                    Some(body) if number == LISTENERS => {
                        self.answered.check(self.audience.calls().0, body, id)?;
                        answered = true;
                    }
                    Some(_) => return Err("a stream has ended".to_owned()),
                    None => {
                        let Some(events) = connection.events().filter(|_| number != LISTENERS) else { continue };
                        if has_message(events) {
                            self.told.check(self.audience.listen(), events, listener(number))?;
                            told += 1;
                        }
                        connection.clear_events();
                    }
                }
            }
            if told == LISTENERS && last.is_none() {
                last = Some(start.elapsed());
            }
        }
        Ok(last.unwrap_or_else(|| start.elapsed()))
    }
}

fn poll() -> Result<Poll, String> {
    Poll::new().map_err(|error| error.to_string())
}

/// The id under which a stream was asked for.
fn listener(number: usize) -> u64 {
    FIRST + number as u64
}
