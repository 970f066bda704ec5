//! Clients of one server, each of which has one call in flight.

use std::net::SocketAddr;
use std::time::Instant;

use mio::{Events, Poll};
use peers::http::{Connection, wait};

use crate::requests;

pub(crate) struct Clients {
    poll: Poll,
    events: Events,
    authority: String,
    clients: Vec<Client>,
}

struct Client {
    connection: Connection,
    /// The number of the call that is in flight, and of the next one otherwise.
    number: usize,
    since: Instant,
}

impl Clients {
    pub(crate) fn open(url: &str, number: usize) -> Result<Self, String> {
        let authority = url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let authority = authority.ok_or_else(|| format!("not a URL: {url}"))?.to_owned();
        let address: SocketAddr = authority.parse().map_err(|_| format!("not an address: {authority}"))?;
        let poll = Poll::new().map_err(|error| error.to_string())?;
        let open = |index| {
            let connection = Connection::open(address, &poll, index)?;
            Ok::<_, String>(Client { connection, number: 0, since: now() })
        };
        let clients = (0..number).map(open).collect::<Result<_, _>>()?;
        Ok(Self { poll, events: Events::with_capacity(64), authority, clients })
    }

    /// Makes so many calls, and notes the nanoseconds of each; returns the seconds of all.
    pub(crate) fn run(&mut self, calls: usize, trips: &mut Vec<u64>) -> Result<f64, String> {
        let start = now();
        let (mut sent, mut received) = (0, 0);
        for index in 0..self.clients.len().min(calls) {
            self.send(index)?;
            sent += 1;
        }
        while received < calls {
            wait(&mut self.poll, &mut self.events)?;
            let ready: Vec<usize> = self.events.iter().map(|event| event.token().0).collect();
            for index in ready {
                let client = &mut self.clients[index];
                let number = client.number;
                let Some(body) = client.connection.receive()? else { continue };
                if !requests::is_right(body, index, number) {
                    return Err(format!("a wrong response: {}", String::from_utf8_lossy(body)));
                }
                trips.push(client.since.elapsed().as_nanos() as u64);
                client.number += 1;
                received += 1;
                if sent < calls {
                    self.send(index)?;
                    sent += 1;
                }
            }
        }
        Ok(start.elapsed().as_secs_f64())
    }

    fn send(&mut self, index: usize) -> Result<(), String> {
        let client = &mut self.clients[index];
        client.since = now();
        client.connection.send(requests::write(&self.authority, index, client.number).as_bytes())
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn now() -> Instant {
    Instant::now()
}
