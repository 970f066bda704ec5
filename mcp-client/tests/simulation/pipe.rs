//! One pipe, whose server dies now and then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::noop_waker;
use mcp_client::types::Revision;
use mcp_client::{Client, CloseReason, ServerLossAction, Time, TransportCommand, TransportHandle, TransportKind};
use mcp_server::{Caller, Connection, Server};
use mcp_testkit::{Clock, ManualTransport};

use crate::world::{Calls, Dice, builder, look, server};

struct Pipe {
    clock: Clock,
    server: Server,
    handle: TransportHandle,
    connection: Option<Connection>,
    to_server: VecDeque<Vec<u8>>,
    to_client: VecDeque<Vec<u8>>,
    wake_at: Option<Time>,
    /// Whether a message was cut in half.
    has_cut: bool,
    is_over: bool,
}

impl Pipe {
    /// Takes the client's orders.
    fn take_orders(&mut self) {
        let waker = noop_waker();
        loop {
            match self.handle.poll_command(&mut Context::from_waker(&waker)) {
                Poll::Ready(Some(TransportCommand::Send(outgoing))) => {
                    self.to_server.push_back(outgoing.message.into_bytes())
                }
                Poll::Ready(Some(TransportCommand::WakeAt(at))) => self.wake_at = Some(at),
                Poll::Ready(Some(TransportCommand::Abort { .. } | TransportCommand::Ready { .. })) => {}
                Poll::Ready(None) => {
                    self.is_over = true;
                    return;
                }
                Poll::Pending => return,
            }
        }
    }

    fn run_server(&mut self, most: usize) {
        let Some(connection) = &mut self.connection else { return };
        let now = self.clock.now();
        for _ in 0..most {
            let Some(message) = self.to_server.pop_front() else { break };
            connection.feed(now, &message, &Caller::default());
        }
        let waker = noop_waker();
        let _ = connection.poll(&mut Context::from_waker(&waker), now);
        while let Some(transmit) = connection.poll_transmit() {
            self.to_client.push_back(transmit.message.into_bytes());
        }
    }

    fn advance(&mut self, by: Duration) {
        self.clock.advance(by);
        let now = self.clock.now();
        if self.wake_at.take_if(|at| *at <= now).is_some() {
            self.handle.handle_timeout();
        }
        if let Some(connection) = &mut self.connection {
            connection.handle_timeout(now);
        }
    }

    /// The server dies; what was on its way is gone.
    fn die(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            connection.handle_disconnect();
            self.to_server.clear();
            self.to_client.clear();
            // Half an answer to the handshake ends the client; a server that dies does not.
            let lost = self.handle.handle_disconnect(&CloseReason::Disconnected("it died".to_owned()));
            assert!(lost != ServerLossAction::Close || self.has_cut);
        }
    }

    fn start_again(&mut self) {
        if self.connection.is_none() {
            self.connection = Some(Connection::long_lived(&self.server));
            self.handle.handle_restart();
        }
    }
}

/// Returns how many calls succeeded.
pub(crate) fn run(seed: u64, revision: Revision) -> usize {
    let (mut dice, clock, at_work) = (Dice::new(seed), Clock::new(), Arc::new(AtomicUsize::new(0)));
    let server = server(&at_work);
    let transport = ManualTransport::new(TransportKind::Pipe, &clock);
    let mut connecting = Box::pin(builder(revision).connect(transport.clone()));
    assert!(look(connecting.as_mut()).is_pending());
    let handle = transport.take_handle();
    let mut pipe = Pipe {
        clock,
        connection: Some(Connection::long_lived(&server)),
        server,
        handle,
        to_server: VecDeque::new(),
        to_client: VecDeque::new(),
        wake_at: None,
        has_cut: false,
        is_over: false,
    };
    // The beginning is not disturbed; the rest is.
    let client: Client = loop {
        pipe.take_orders();
        pipe.run_server(usize::MAX);
        while let Some(message) = pipe.to_client.pop_front() {
            pipe.handle.handle_message(&message);
        }
        if let Poll::Ready(client) = look(connecting.as_mut()) {
            break client.unwrap();
        }
    };
    let mut calls = Calls::default();
    for _ in 0..400 {
        match dice.below(12) {
            0 | 1 => calls.start(&client, &mut dice),
            2 | 3 => pipe.take_orders(),
            4 | 5 => {
                let most = dice.below(3);
                pipe.run_server(most);
            }
            6 | 7 => {
                if let Some(message) = pipe.to_client.pop_front() {
                    // Now and then something is lost, comes twice, or is no message.
                    match dice.below(30) {
                        0 => {}
                        // A request that comes twice is refused, which its handler would hear of.
                        1 if !message.windows(8).any(|part| part == b"\"method\"") => {
                            (0..2).for_each(|_| pipe.handle.handle_message(&message));
                        }
                        2 => {
                            pipe.has_cut = true;
                            pipe.handle.handle_message(&message[..message.len() / 2]);
                        }
                        _ => pipe.handle.handle_message(&message),
                    }
                }
            }
            8 => pipe.advance(Duration::from_millis(u64::try_from(dice.below(20_000)).unwrap())),
            9 if dice.one_in(3) => calls.cancel_one(&mut dice),
            10 if dice.one_in(6) => pipe.die(),
            11 => pipe.start_again(),
            _ => calls.poll(),
        }
        calls.poll();
    }
    // From here on nothing is disturbed any more, and time goes on.
    for _ in 0..200 {
        pipe.start_again();
        calls.poll();
        pipe.take_orders();
        pipe.run_server(usize::MAX);
        while let Some(message) = pipe.to_client.pop_front() {
            pipe.handle.handle_message(&message);
        }
        pipe.advance(Duration::from_secs(10));
    }
    calls.poll();
    assert_eq!(calls.len(), 0, "seed {seed}, {revision}: calls that never end");
    drop(client);
    pipe.take_orders();
    assert!(pipe.is_over, "seed {seed}, {revision}: the transport is not told to end");
    pipe.run_server(usize::MAX);
    drop(pipe);
    assert_eq!(at_work.load(Ordering::Relaxed), 0, "seed {seed}, {revision}: a handler is left");
    calls.succeeded
}
