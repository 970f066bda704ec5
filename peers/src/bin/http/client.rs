//! Some connections to one server, on all of which the same is asked.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::{Events, Poll};
use peers::http::{Connection, Delay, wait};

use crate::answer::Pattern;
use crate::process::{Mode, now};
use crate::request::{FIRST, Kind, Request};
use crate::sessions;

#[derive(Debug)]
pub(crate) struct Client {
    kind: Kind,
    poll: Poll,
    events: Events,
    connections: Vec<(Connection, Request, Asked)>,
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
        Self::open_with(kind, address, connections, Delay::Never)
    }

    /// Connects, with a session for each connection if there are any.
    pub(crate) fn open_with(kind: Kind, address: SocketAddr, connections: usize, delay: Delay) -> Result<Self, String> {
        let mut poll = Poll::new().map_err(|error| error.to_string())?;
        let mut events = Events::with_capacity(64);
        let connect = |number| Connection::open_with(address, &poll, number, delay);
        let mut connections = (0..connections).map(connect).collect::<Result<Vec<_>, String>>()?;
        let authority = address.to_string();
        let requests: Vec<Request> = match kind.mode() {
            Mode::NoSessions => connections.iter().map(|_| Request::new(kind, &authority)).collect(),
            Mode::Sessions => {
                let count = connections.len();
                let names = sessions::create(&mut connections, &mut poll, &mut events, &authority, count)?;
                // The names are in no order, but any connection can use any session.
                names.iter().map(|name| Request::in_session(kind, &authority, name)).collect()
            }
        };
        let asked = Asked { id: 0, at: now() };
        let connections = connections.into_iter().zip(requests).map(|(it, request)| (it, request, asked)).collect();
        let pattern = Pattern::default();
        Ok(Self { kind, poll, events, connections, pattern, next: FIRST, idle: Duration::ZERO })
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
                let (connection, _, asked) = &mut self.connections[number];
                let Some(body) = connection.receive()? else { continue };
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
        let (connection, request, asked) = &mut self.connections[number];
        *asked = Asked { id, at: now() };
        connection.send(request.with_id(id))
    }

    fn wait(&mut self) -> Result<(), String> {
        let start = now();
        let outcome = wait(&mut self.poll, &mut self.events);
        self.idle += start.elapsed();
        outcome
    }
}
