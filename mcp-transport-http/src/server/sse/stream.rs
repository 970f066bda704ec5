//! All that one client hears.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use mcp_server::Connection;
use mcp_types::ErrorObject;
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep, sleep_until};

use super::client::Client;
use super::clients::Clients;
use crate::server::admission::Permit;
use crate::server::body::write_event;
use crate::server::exchange::{MOST_AT_ONCE, News, TEARDOWN, after, now};
use crate::server::lifeline::{AtWork, Stage, Watch};

/// The stream of a client, which is its session: dropping it ends everything.
///
/// ```text
/// open --drain, expiry--> closing --last answer--> over
///   |                        |  \--time is up: the rest is given up--> over
///   \------- dropped --------/
/// ```
pub(crate) struct Stream {
    client: Arc<Client>,
    connection: Connection,
    clients: Arc<Clients>,
    keep_alive: Duration,
    at_work: AtWork,
    permit: Option<Permit>,
    end: Watch,
    silence: Pin<Box<Sleep>>,
    /// When whoever listens may not hear any more.
    expiry: Option<Pin<Box<Sleep>>>,
    /// What the connection is to be reminded of.
    deadline: Option<(Instant, Pin<Box<Sleep>>)>,
    is_closing: bool,
    is_cut: bool,
    is_over: bool,
}

impl Stream {
    pub(crate) fn new(
        (client, connection): (Arc<Client>, Connection),
        clients: &Arc<Clients>,
        keep_alive: Duration,
        at_work: AtWork,
        permit: Permit,
    ) -> Self {
        clients.insert(&client);
        Self {
            client,
            connection,
            clients: Arc::clone(clients),
            keep_alive,
            end: at_work.watch(),
            at_work,
            permit: Some(permit),
            silence: Box::pin(sleep(keep_alive)),
            expiry: None,
            deadline: None,
            is_closing: false,
            is_cut: false,
            is_over: false,
        }
    }

    /// Ends the stream at a time.
    pub(crate) fn expire_at(&mut self, at: Instant) {
        self.expiry = Some(Box::pin(sleep_until(at.into())));
    }

    /// Whether everything has been said.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The room of the stream, to be held until its last event is sent.
    pub(crate) fn take_permit(&self) -> Option<Permit> {
        self.permit.as_ref().map(Permit::another)
    }

    /// Appends what there is to say.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) -> Poll<News> {
        loop {
            self.take(cx, events);
            if !events.is_empty() {
                self.silence.as_mut().reset(after(self.keep_alive));
                return Poll::Ready(News::Events);
            }
            if self.is_over {
                return Poll::Ready(News::Over);
            }
            if let Some(news) = ready!(self.poll_idle(cx)) {
                return Poll::Ready(news);
            }
        }
    }

    fn take(&mut self, cx: &mut Context<'_>, events: &mut Vec<u8>) {
        self.client.register(cx.waker());
        let _ = self.connection.poll(cx, now());
        self.client.release();
        while events.len() < MOST_AT_ONCE {
            let Some(transmit) = self.connection.poll_transmit() else {
                self.is_over = self.client.is_over();
                return;
            };
            events.extend_from_slice(b"event: message\n");
            write_event(events, &transmit.message);
        }
    }

    /// Waits for something other than a message; without news there may be messages now.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<News>> {
        self.end.poll(cx, &self.at_work);
        let stage = self.at_work.stage();
        if stage == Stage::Cut && !self.is_cut {
            self.is_cut = true;
            self.is_closing = true;
            let why = ErrorObject::internal_error("the server had to end before the request was done");
            self.client.drain();
            self.connection.abort_requests(&why);
            self.client.release();
            return Poll::Ready(None);
        }
        let is_expired = self.expiry.as_mut().is_some_and(|expiry| expiry.as_mut().poll(cx).is_ready());
        if !self.is_closing && (stage == Stage::Draining || is_expired) {
            self.is_closing = true;
            self.expiry = None;
            self.client.drain();
            return Poll::Ready(None);
        }
        if self.poll_deadline(cx).is_ready() {
            self.connection.handle_timeout(now());
            return Poll::Ready(None);
        }
        ready!(self.silence.as_mut().poll(cx));
        self.silence.as_mut().reset(after(self.keep_alive));
        Poll::Ready(Some(News::Silence))
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.connection.poll_timeout().map(|deadline| deadline.at) else {
            self.deadline = None;
            return Poll::Pending;
        };
        if at <= now() {
            return Poll::Ready(());
        }
        match &mut self.deadline {
            Some((other, sleep)) if *other == at => sleep.as_mut().poll(cx),
            deadline => deadline.insert((at, Box::pin(sleep_until(at.into())))).1.as_mut().poll(cx),
        }
    }
}

impl Drop for Stream {
    /// What handlers left to be done at the end is done, and counts as a stream until then.
    fn drop(&mut self) {
        self.clients.remove(&self.client.id);
        let teardown = self.connection.take_teardown(|| sleep(TEARDOWN));
        self.connection.handle_disconnect();
        self.client.end();
        let Some(teardown) = teardown else { return };
        let held = (self.at_work.another(), self.permit.take());
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                teardown.await;
                drop(held);
            });
        }
    }
}
