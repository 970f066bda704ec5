//! One server: lines out, lines in.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mcp_client::{Link, Order};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep, timeout};

use super::alarm::Alarm;
use crate::{Line, LineReader};

/// The streams of one server.
///
/// Reading never waits for writing: a server may have to get rid of its results before it reads on. What waits to be
/// sent beyond a buffer stays with the client, which bounds it.
pub(super) struct Wire<R, W> {
    reader: LineReader<R>,
    writer: W,
    /// What is on its way out, and how much of it is gone.
    out: Vec<u8>,
    sent: usize,
    is_flushed: bool,
    /// How much was written in all.
    written: u64,
    /// Why nothing can be written any more.
    fault: Option<io::Error>,
    /// Runs when the server does not listen any more: what it said before may still be on its way.
    last_words: Option<Pin<Box<Sleep>>>,
    line_limit: usize,
}

/// Why a wire is of no use any more.
#[derive(Debug)]
pub(super) enum Ended {
    /// The client has no use for the server any more.
    ByClient,
    /// The server is gone, because of a fault if there was one.
    Gone(Option<io::Error>),
}

/// How much may be on its way out before orders have to wait.
const OUT_LIMIT: usize = 256 * 1024;

/// An empty buffer that is larger than this is given back.
const OUT_KEPT: usize = 64 * 1024;

/// How many lines are read before it is the turn of the rest.
const LINES_AT_ONCE: usize = 64;

/// How long a server that does not listen any more may be heard.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long the last messages of a client may take to be written.
const LAST_WRITES: Duration = Duration::from_secs(1);

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Wire<R, W> {
    pub(super) fn new(reader: R, writer: W, line_limit: usize) -> Self {
        Self {
            reader: LineReader::new(reader, line_limit),
            writer,
            out: Vec::new(),
            sent: 0,
            is_flushed: true,
            written: 0,
            fault: None,
            last_words: None,
            line_limit,
        }
    }

    /// Works for a client, until it is closed or the server is gone. `exit` is ready when the server is certain to say
    /// nothing more than what it has said already.
    pub(super) async fn run(&mut self, link: &mut Link, alarm: &mut Alarm, exit: impl Future) -> Ended {
        let mut exit = pin!(exit);
        let mut has_exited = false;
        poll_fn(|cx| {
            if !has_exited && exit.as_mut().poll(cx).is_ready() {
                has_exited = true;
                self.expect_end();
            }
            self.poll(cx, link, alarm)
        })
        .await
    }

    /// Sends what is left and closes the way out; the rest of what the server says can be read from what is returned.
    pub(super) async fn hang_up(mut self) -> LineReader<R> {
        let goodbye = poll_fn(|cx| {
            // A server that cannot get rid of what it says would not read either.
            while let Poll::Ready(Ok(Some(_))) = pin!(self.reader.next()).poll(cx) {}
            ready!(self.poll_write(cx))?;
            Pin::new(&mut self.writer).poll_shutdown(cx)
        });
        // Nobody is left to hear of a failure.
        let _ = timeout(LAST_WRITES, goodbye).await;
        self.reader
    }

    fn poll(&mut self, cx: &mut Context<'_>, link: &mut Link, alarm: &mut Alarm) -> Poll<Ended> {
        loop {
            let Some(has_taken) = self.poll_orders(cx, link, alarm) else { return Poll::Ready(Ended::ByClient) };
            let was_full = self.out.len() >= OUT_LIMIT;
            if self.fault.is_none()
                && let Poll::Ready(Err(fault)) = self.poll_write(cx)
            {
                self.fault = Some(fault);
                self.out = Vec::new();
                self.expect_end();
            }
            let has_read = match self.poll_read(cx, link) {
                Ok(Some(has_read)) => has_read,
                Ok(None) => return Poll::Ready(Ended::Gone(self.fault.take())),
                Err(fault) => return Poll::Ready(Ended::Gone(Some(fault))),
            };
            let is_late = alarm.poll(cx, link);
            // Orders that had to wait do not any more.
            let has_room = was_full && self.out.is_empty();
            if !has_taken && !has_room && !has_read && !is_late {
                break;
            }
        }
        let Some(last_words) = &mut self.last_words else { return Poll::Pending };
        ready!(last_words.as_mut().poll(cx));
        Poll::Ready(Ended::Gone(self.fault.take()))
    }

    /// Takes what there is to do; returns whether there was anything, and nothing if the client is closed.
    fn poll_orders(&mut self, cx: &mut Context<'_>, link: &mut Link, alarm: &mut Alarm) -> Option<bool> {
        let mut has_taken = false;
        while self.fault.is_none() && self.out.len() < OUT_LIMIT {
            let Poll::Ready(order) = link.poll_next(cx) else { return Some(has_taken) };
            has_taken = true;
            match order? {
                Order::Send(outgoing) => {
                    self.out.extend_from_slice(&outgoing.message);
                    self.out.push(b'\n');
                }
                Order::WakeAt(at) => alarm.set(link, at),
                // A pipe has no streams of its own for calls, and none to open.
                Order::Abort { .. } | Order::Ready { .. } => {}
            }
        }
        match alarm.poll_blocked(cx, link) {
            Poll::Ready(()) => None,
            Poll::Pending => Some(has_taken),
        }
    }

    /// Sends what there is.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.out.len() {
            let rest = self.out.get(self.sent..).unwrap_or_default();
            let written = ready!(Pin::new(&mut self.writer).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += written;
            self.written += written as u64;
            self.is_flushed = false;
        }
        self.out.clear();
        self.sent = 0;
        if self.out.capacity() > OUT_KEPT {
            self.out = Vec::new();
        }
        if !self.is_flushed {
            ready!(Pin::new(&mut self.writer).poll_flush(cx))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Tells the client what there is to read; returns whether there was anything, and nothing at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>, link: &Link) -> io::Result<Option<bool>> {
        let mut has_read = false;
        for _ in 0..LINES_AT_ONCE {
            if !link.wants_input() {
                break;
            }
            let Poll::Ready(line) = pin!(self.reader.next()).poll(cx) else { break };
            match line? {
                Some(Line::Message(bytes)) => link.message(bytes),
                Some(Line::TooLong(summary)) => {
                    let limit = self.line_limit;
                    tracing::warn!(target: "mcp", limit, "a line of the server is too long, and was skipped");
                    link.oversized(limit, &summary);
                }
                None => return Ok(None),
            }
            has_read = true;
        }
        Ok(Some(has_read))
    }

    /// Where messages go, and how many bytes went there.
    pub(super) fn written(&self) -> (&W, u64) {
        (&self.writer, self.written)
    }

    /// Nothing more than what is on its way will come.
    fn expect_end(&mut self) {
        self.last_words.get_or_insert_with(|| Box::pin(sleep(LAST_WORDS)));
    }
}
