//! The client: its calls, and the loop that carries its messages.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use mcp_client::types::{ElicitResult, ElicitValue, Era, Method, Revision};
use mcp_client::{Client, Clock, Error, Transport, TransportCommand, TransportHandle, TransportKind};
use serde::Deserialize;
use serde_json::json;

use crate::link::Link;

/// Calls a tool, and another one that sends an elicitation request.
pub(crate) fn exchange(revision: Revision, link: &mut impl Link) {
    let transport = Polled::new(link.clock());
    let calls = async {
        let client = connect(revision, &transport).await?;
        assert_eq!(client.revision(), Some(revision));
        let Sum { sum } = client.call_tool("add").arguments(&json!({ "a": 2, "b": 3 })).structured().await?;
        assert_eq!(sum, 5);
        let booked = client.call_tool("book").await?;
        assert_eq!(booked.content[0].as_text(), Some("booked for 4"));
        Ok::<_, Error>(())
    };
    let (outcome, sent) = transport.carry(calls, link);
    outcome.expect("all calls succeed");
    let call = Method::TOOLS_CALL.as_str();
    if revision.era() == Era::Modern {
        // The second call is repeated with the result of the elicitation.
        assert_eq!(sent, ["server/discover", call, call, call]);
    } else {
        // The elicitation is a request of the server, to which the client responds.
        assert_eq!(sent, ["initialize", "notifications/initialized", call, call, "response"]);
    }
}

/// Calls a tool that never responds, with a limit to the time.
pub(crate) fn exceed_time_limit(revision: Revision, link: &mut impl Link, limit: Duration) {
    let transport = Polled::new(link.clock());
    let start = (link.clock())();
    let call =
        async { connect(revision, &transport).await?.call_tool("wait").total_timeout(limit).idle_timeout(limit).await };
    let (outcome, sent) = transport.carry(call, link);
    assert!(matches!(outcome, Err(Error::TimedOut)), "{outcome:?}");
    assert_eq!(sent.last(), Some(&"notifications/cancelled".to_owned()));
    assert_eq!((link.clock())().duration_since(start), limit);
}

#[derive(Deserialize)]
struct Sum {
    sum: i64,
}

async fn connect(revision: Revision, transport: &Polled) -> Result<Client, Error> {
    Client::builder("wasm-client", env!("CARGO_PKG_VERSION"))
        .revisions([revision])
        .on_form_elicitation(async |_, _| ElicitResult::accepted([("guests", ElicitValue::from(4))]))
        .connect(transport.clone())
        .await
}

/// A transport without a task: messages are carried while [`carry`](Self::carry) waits.
#[derive(Clone)]
struct Polled {
    handle: Arc<Mutex<Option<TransportHandle>>>,
    clock: Clock,
}

impl Polled {
    fn new(clock: Clock) -> Self {
        Self { handle: Arc::default(), clock }
    }

    /// Runs a future and carries messages until it completes and nothing is left to send. Returns its output and
    /// the methods of the messages that were sent.
    fn carry<T>(&self, calls: impl Future<Output = T>, link: &mut impl Link) -> (T, Vec<String>) {
        let mut calls = pin!(calls);
        let mut cx = Context::from_waker(Waker::noop());
        let (mut sent, mut wake_at) = (Vec::new(), None);
        loop {
            let outcome = calls.as_mut().poll(&mut cx);
            let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
            let handle = handle.as_mut().expect("the client has started its transport");
            let mut has_moved = false;
            while let Poll::Ready(Some(command)) = handle.poll_command(&mut cx) {
                has_moved = true;
                match command {
                    TransportCommand::Send(outgoing) => {
                        sent.push(outgoing.method.map_or_else(|| "response".to_owned(), |method| method.to_string()));
                        link.send(&outgoing.message);
                    }
                    TransportCommand::WakeAt(at) => wake_at = Some(at),
                    TransportCommand::Abort { .. } | TransportCommand::Ready { .. } => {}
                }
            }
            if let Poll::Ready(outcome) = outcome {
                return (outcome, sent);
            }
            if has_moved {
                continue;
            }
            match link.receive(wake_at) {
                Some(message) => handle.handle_message(&message),
                None => {
                    wake_at = None;
                    handle.handle_timeout();
                }
            }
        }
    }
}

impl Transport for Polled {
    fn kind(&self) -> TransportKind {
        TransportKind::Pipe
    }

    fn clock(&self) -> Clock {
        Arc::clone(&self.clock)
    }

    fn start(self, handle: TransportHandle) {
        *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle);
    }
}
