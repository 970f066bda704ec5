//! A request for each call, some of which break, and sessions that get lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::noop_waker;
use mcp_client::types::{Era, Revision};
use mcp_client::{CallId, Client, OutgoingMessage, Time, TransportCommand, TransportHandle, TransportKind};
use mcp_server::{Caller, Connection, Server};
use mcp_testkit::{Clock, ManualTransport};

use crate::world::{Calls, Dice, builder, look, server};

/// A server that is reached by requests.
struct Requests {
    clock: Clock,
    server: Server,
    revision: Revision,
    handle: TransportHandle,
    /// Messages that are on their way, with the session that they were sent in.
    under_way: Vec<(OutgoingMessage, u64)>,
    /// Modern requests, each with a connection of its own.
    streams: BTreeMap<CallId, Connection>,
    /// The session, and its number.
    session: Option<Connection>,
    number: u64,
    /// What of a session is on its way to the client.
    heard: Vec<Vec<u8>>,
    wake_at: Option<Time>,
    is_over: bool,
}

impl Requests {
    fn take_orders(&mut self) {
        let waker = noop_waker();
        loop {
            match self.handle.poll_command(&mut Context::from_waker(&waker)) {
                Poll::Ready(Some(TransportCommand::Send(outgoing))) => self.under_way.push((outgoing, self.number)),
                Poll::Ready(Some(TransportCommand::WakeAt(at))) => self.wake_at = Some(at),
                Poll::Ready(Some(TransportCommand::Abort { call })) => {
                    self.streams.remove(&call);
                    self.under_way.retain(|(outgoing, _)| outgoing.call != Some(call));
                }
                Poll::Ready(Some(TransportCommand::Ready { .. })) => {}
                Poll::Ready(None) => {
                    self.is_over = true;
                    return;
                }
                Poll::Pending => return,
            }
        }
    }

    /// One message arrives, in any order; or it does not.
    fn arrive(&mut self, dice: &mut Dice, is_calm: bool) {
        if self.under_way.is_empty() {
            return;
        }
        // What begins a session, and what completes that, is not overtaken.
        let index = if is_calm { 0 } else { dice.below(self.under_way.len()) };
        let (outgoing, number) = self.under_way.remove(index);
        let now = self.clock.now();
        if let Some(call) = outgoing.call.filter(|_| !is_calm && dice.one_in(12)) {
            return match dice.below(2) {
                0 => self.handle.responses().handle_status(call, 503, b"busy"),
                _ => self.handle.responses().handle_stream_ended(call, Some("the network is away".to_owned())),
            };
        }
        if self.revision.era() == Era::Modern {
            let Some(call) = outgoing.call else { return };
            let mut connection = Connection::modern_request(&self.server);
            connection.feed(now, &outgoing.message, &Caller::default());
            self.streams.insert(call, connection);
            return;
        }
        let begins = outgoing.method.as_ref().is_some_and(|method| method.as_str() == "initialize");
        if begins {
            self.number += 1;
            self.session = Some(Connection::long_lived(&self.server));
        } else if self.session.is_none() || number != self.number {
            let is_latest = number == self.number;
            return self.handle.handle_session_lost(
                outgoing.call,
                is_latest,
                mcp_client::SessionLossReason::Unknown { status: 404 },
            );
        }
        if let Some(session) = &mut self.session {
            session.feed(now, &outgoing.message, &Caller::default());
        }
    }

    fn run_server(&mut self, dice: &mut Dice, is_calm: bool) {
        let waker = noop_waker();
        let cx = &mut Context::from_waker(&waker);
        let now = self.clock.now();
        let handle = &self.handle;
        self.streams.retain(|call, connection| {
            let _ = connection.poll(cx, now);
            if !is_calm && dice.one_in(40) {
                handle.responses().handle_stream_ended(*call, None);
                return false;
            }
            while let Some(transmit) = connection.poll_transmit() {
                handle.responses().handle_reply(*call, &transmit.message);
            }
            if connection.is_busy() {
                return true;
            }
            handle.responses().handle_stream_ended(*call, None);
            false
        });
        if let Some(session) = &mut self.session {
            let _ = session.poll(cx, now);
            while let Some(transmit) = session.poll_transmit() {
                self.heard.push(transmit.message.into_bytes());
            }
        }
    }

    fn hear(&mut self, dice: &mut Dice, is_calm: bool) {
        for message in std::mem::take(&mut self.heard) {
            if is_calm || !dice.one_in(30) {
                self.handle.handle_message(&message);
            }
        }
    }

    fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
        let now = self.clock.now();
        if self.wake_at.take_if(|at| *at <= now).is_some() {
            self.handle.handle_timeout();
        }
        for connection in self.streams.values_mut().chain(&mut self.session) {
            connection.handle_timeout(now);
        }
    }
}

/// Returns how many calls succeeded.
pub(crate) fn run(seed: u64, revision: Revision) -> usize {
    let (mut dice, clock, at_work) = (Dice::new(seed), Clock::new(), Arc::new(AtomicUsize::new(0)));
    let server = server(&at_work);
    let transport = ManualTransport::new(TransportKind::RequestPerCall, &clock);
    let mut connecting = Box::pin(builder(revision).connect(transport.clone()));
    assert!(look(connecting.as_mut()).is_pending());
    let handle = transport.take_handle();
    let mut requests = Requests {
        clock,
        server,
        revision,
        handle,
        under_way: Vec::new(),
        streams: BTreeMap::new(),
        session: None,
        number: 0,
        heard: Vec::new(),
        wake_at: None,
        is_over: false,
    };
    let calmly = |requests: &mut Requests, dice: &mut Dice| {
        requests.take_orders();
        while !requests.under_way.is_empty() {
            requests.arrive(dice, true);
        }
        requests.run_server(dice, true);
        requests.hear(dice, true);
    };
    let client: Client = loop {
        calmly(&mut requests, &mut dice);
        if let Poll::Ready(client) = look(connecting.as_mut()) {
            break client.unwrap();
        }
    };
    let mut calls = Calls::default();
    for _ in 0..400 {
        match dice.below(12) {
            0 | 1 => calls.start(&client, &mut dice),
            2 | 3 => requests.take_orders(),
            4 | 5 => requests.arrive(&mut dice, false),
            6 | 7 => requests.run_server(&mut dice, false),
            8 => requests.hear(&mut dice, false),
            9 if dice.one_in(3) => calls.cancel_one(&mut dice),
            // The server forgets its session; the client finds out with its next request, and gets a new one undisturbed.
            10 if dice.one_in(8) && calls.succeeded > 0 => {
                requests.session = None;
                for _ in 0..4 {
                    calmly(&mut requests, &mut dice);
                    calls.poll();
                }
            }
            11 => requests.advance(Duration::from_millis(u64::try_from(dice.below(20_000)).unwrap())),
            _ => {}
        }
        calls.poll();
    }
    for _ in 0..200 {
        calls.poll();
        calmly(&mut requests, &mut dice);
        requests.advance(Duration::from_secs(10));
    }
    calls.poll();
    assert_eq!(calls.len(), 0, "seed {seed}, {revision}: calls that never end");
    drop(client);
    requests.take_orders();
    assert!(requests.is_over, "seed {seed}, {revision}: the transport is not told to end");
    drop(requests);
    assert_eq!(at_work.load(Ordering::Relaxed), 0, "seed {seed}, {revision}: a handler is left");
    calls.succeeded
}
