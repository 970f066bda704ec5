//! Many listeners to one server, and how long it takes until all of them know of a change.

use std::net::SocketAddr;
use std::time::Duration;

use mio::{Events, Poll};
use peers::usage;

use crate::answer::{Pattern, check_acknowledgement};
use crate::client::{Client, wait};
use crate::connection::{Connection, Progress};
use crate::process::{Process, now};
use crate::request::{FIRST, Kind, Request};

/// How many listeners each server has.
pub(crate) const LISTENERS: usize = 1000;

/// How many changes there are.
pub(crate) const CHANGES: usize = 51;

#[derive(Debug)]
pub(crate) struct Listeners {
    poll: Poll,
    events: Events,
    /// The listeners; at the end is the connection on which changes are asked for.
    connections: Vec<Connection>,
    change: Request,
    next: u64,
    told: Pattern,
    answered: Pattern,
    /// The bytes of the server's memory that each listener takes, where the system tells.
    pub(crate) memory: Option<f64>,
}

impl Listeners {
    pub(crate) fn open(process: &Process) -> Result<Self, String> {
        let address = process.address;
        // What the first request brings along is not counted.
        Client::open(Kind::Modern, address, 1)?.run(100, &mut Vec::new())?;
        let before = usage::memory(process.id());
        let poll = Poll::new().map_err(|error| error.to_string())?;
        let mut listeners = Self {
            poll,
            events: Events::with_capacity(LISTENERS),
            connections: Vec::with_capacity(LISTENERS + 1),
            change: Request::new(Kind::Change, &address.to_string()),
            next: FIRST,
            told: Pattern::default(),
            answered: Pattern::default(),
            memory: None,
        };
        for _ in 0..LISTENERS {
            listeners.add(address)?;
        }
        let bytes = |(after, before): (u64, u64)| (after as f64 - before as f64) * 1024.0 / LISTENERS as f64;
        listeners.memory = usage::memory(process.id()).zip(before).map(bytes);
        listeners.connections.push(Connection::open(address, &listeners.poll, LISTENERS)?);
        Ok(listeners)
    }

    /// Adds a listener, and waits until it is acknowledged.
    fn add(&mut self, address: SocketAddr) -> Result<(), String> {
        let number = self.connections.len();
        let id = listener(number);
        let mut connection = Connection::open(address, &self.poll, number)?;
        connection.send(Request::new(Kind::Listen, &address.to_string()).with_id(id))?;
        loop {
            wait(&mut self.poll, &mut self.events)?;
            if let Progress::Complete(body) = connection.receive()? {
                return Err(format!("does not let listen: {}", String::from_utf8_lossy(body)));
            }
            if let Some(events) = connection.events() {
                check_acknowledgement(events, id)?;
                break;
            }
        }
        connection.clear_events();
        self.connections.push(connection);
        Ok(())
    }

    /// Asks for a change; returns how long it took until the last listener knew of it.
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
                    Progress::Complete(body) if number == LISTENERS => {
                        self.answered.check(Kind::Change, body, id)?;
                        answered = true;
                    }
                    Progress::Complete(_) => return Err("a stream has ended".to_owned()),
                    Progress::Partial => {
                        if let Some(events) = connection.events().filter(|_| number != LISTENERS) {
                            self.told.check(Kind::Listen, events, listener(number))?;
                            connection.clear_events();
                            told += 1;
                        }
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

/// The id under which a listener listens.
fn listener(number: usize) -> u64 {
    FIRST + number as u64
}
