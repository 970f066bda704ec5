//! Some connections to one server, on all of which the same is asked.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::{Events, Poll};

use crate::answer::Pattern;
use crate::connection::{Connection, Progress};
use crate::process::{LIMIT, now};
use crate::request::{FIRST, Kind, Request};

#[derive(Debug)]
pub(crate) struct Client {
    kind: Kind,
    poll: Poll,
    events: Events,
    connections: Vec<(Connection, Asked)>,
    request: Request,
    pattern: Pattern,
    next: u64,
    /// For how long the driver had nothing to do.
    pub(crate) idle: Duration,
}

/// What a connection waits for.
#[derive(Debug, Clone, Copy)]
struct Asked {
    id: u64,
    at: Instant,
}

impl Client {
    pub(crate) fn open(kind: Kind, address: SocketAddr, connections: usize) -> Result<Self, String> {
        let poll = Poll::new().map_err(|error| error.to_string())?;
        let asked = Asked { id: 0, at: now() };
        let connect = |number| Ok((Connection::open(address, &poll, number)?, asked));
        let connections = (0..connections).map(connect).collect::<Result<_, String>>()?;
        let (request, events) = (Request::new(kind, &address.to_string()), Events::with_capacity(64));
        let pattern = Pattern::default();
        Ok(Self { kind, poll, events, connections, request, pattern, next: FIRST, idle: Duration::ZERO })
    }

    /// Does so many calls, and notes how many nanoseconds each of them took.
    pub(crate) fn run(&mut self, calls: usize, trips: &mut Vec<u64>) -> Result<(), String> {
        let (mut sent, mut received) = (0, 0);
        for number in 0..self.connections.len().min(calls) {
            self.ask(number)?;
            sent += 1;
        }
        while received < calls {
            self.wait()?;
            let ready: Vec<usize> = self.events.iter().map(|event| event.token().0).collect();
            for number in ready {
                let (connection, asked) = &mut self.connections[number];
                let Progress::Complete(body) = connection.receive()? else { continue };
                self.pattern.check(self.kind, body, asked.id)?;
                trips.push(asked.at.elapsed().as_nanos() as u64);
                received += 1;
                if sent < calls {
                    self.ask(number)?;
                    sent += 1;
                }
            }
        }
        Ok(())
    }

    /// How many answers did not look like the first one.
    pub(crate) fn unlike(&self) -> u64 {
        self.pattern.unlike
    }

    fn ask(&mut self, number: usize) -> Result<(), String> {
        let id = self.next;
        self.next += 1;
        let (connection, asked) = &mut self.connections[number];
        *asked = Asked { id, at: now() };
        connection.send(self.request.with_id(id))
    }

    fn wait(&mut self) -> Result<(), String> {
        let start = now();
        let outcome = wait(&mut self.poll, &mut self.events);
        self.idle += start.elapsed();
        outcome
    }
}

/// Waits until something can be read.
pub(crate) fn wait(poll: &mut Poll, events: &mut Events) -> Result<(), String> {
    poll.poll(events, Some(LIMIT)).map_err(|error| error.to_string())?;
    if events.is_empty() { Err(format!("no answer for {} s", LIMIT.as_secs())) } else { Ok(()) }
}
