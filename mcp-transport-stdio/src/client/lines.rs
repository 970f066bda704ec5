//! One connection: exchanges lines between a client and a server.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use mcp_client::{TransportCommand, TransportHandle};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep, timeout};

use super::wake_timer::WakeTimer;
use crate::{Line, LineReader};

/// The streams of one server.
///
/// Reading never waits for writing, because a server may have to write before it can read on. When the output buffer is
/// full, messages stay queued in the client, which bounds them.
pub(super) struct LineConnection<R, W> {
    reader: LineReader<R>,
    writer: W,
    /// The output buffer, and how much of it was written.
    out: Vec<u8>,
    sent: usize,
    is_flushed: bool,
    /// Total number of bytes written.
    written: u64,
    /// The error of writing, after which nothing more is written.
    write_error: Option<io::Error>,
    /// How long to read on after the server has exited or closed its input.
    read_deadline: Option<Pin<Box<Sleep>>>,
    line_limit: usize,
}

/// Why a connection ended.
#[derive(Debug)]
pub(super) enum LinesEnd {
    /// The client was closed.
    ByClient,
    /// The server exited or closed its output, or an I/O error occurred.
    Disconnected(Option<io::Error>),
}

/// Size of the output buffer from which no more commands are taken.
const OUTPUT_LIMIT: usize = 256 * 1024;

/// Capacity from which an empty output buffer is released.
const MAX_IDLE_CAPACITY: usize = 64 * 1024;

/// Maximum number of lines that are read before other work is done.
const LINES_AT_ONCE: usize = 64;

/// How long output is read after the server has exited or closed its input.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// How long writing may take after the client was closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> LineConnection<R, W> {
    pub(super) fn new(reader: R, writer: W, line_limit: usize) -> Self {
        Self {
            reader: LineReader::new(reader, line_limit),
            writer,
            out: Vec::new(),
            sent: 0,
            is_flushed: true,
            written: 0,
            write_error: None,
            read_deadline: None,
            line_limit,
        }
    }

    /// Exchanges messages until the client is closed or the server disconnects. `exit` completes when the server process
    /// has exited.
    pub(super) async fn run(
        &mut self,
        handle: &mut TransportHandle,
        timer: &mut WakeTimer,
        exit: impl Future,
    ) -> LinesEnd {
        let mut exit = pin!(exit);
        let mut has_exited = false;
        poll_fn(|cx| {
            if !has_exited && exit.as_mut().poll(cx).is_ready() {
                has_exited = true;
                self.start_read_deadline();
            }
            self.poll(cx, handle, timer)
        })
        .await
    }

    /// Writes the rest of the buffer and closes the output; returns the reader for the remaining input.
    pub(super) async fn close_output(mut self) -> LineReader<R> {
        let closing = poll_fn(|cx| {
            // A server whose output is blocked might not read.
            while let Poll::Ready(Ok(Some(_))) = pin!(self.reader.next()).poll(cx) {}
            ready!(self.poll_write(cx))?;
            Pin::new(&mut self.writer).poll_shutdown(cx)
        });
        // The client is closed, so a failure does not matter.
        let _ = timeout(WRITE_TIMEOUT, closing).await;
        self.reader
    }

    fn poll(&mut self, cx: &mut Context<'_>, handle: &mut TransportHandle, timer: &mut WakeTimer) -> Poll<LinesEnd> {
        loop {
            let Some(has_executed) = self.poll_commands(cx, handle, timer) else {
                return Poll::Ready(LinesEnd::ByClient);
            };
            let was_full = self.out.len() >= OUTPUT_LIMIT;
            if self.write_error.is_none()
                && let Poll::Ready(Err(fault)) = self.poll_write(cx)
            {
                self.write_error = Some(fault);
                self.out = Vec::new();
                self.start_read_deadline();
            }
            let has_read = match self.poll_read(cx, handle) {
                Ok(Some(has_read)) => has_read,
                Ok(None) => return Poll::Ready(LinesEnd::Disconnected(self.write_error.take())),
                Err(fault) => return Poll::Ready(LinesEnd::Disconnected(Some(fault))),
            };
            let has_fired = timer.poll(cx, handle);
            // There is room for more commands.
            let has_room = was_full && self.out.is_empty();
            if !has_executed && !has_room && !has_read && !has_fired {
                break;
            }
        }
        let Some(deadline) = &mut self.read_deadline else { return Poll::Pending };
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(LinesEnd::Disconnected(self.write_error.take()))
    }

    /// Executes commands; returns whether there were any, and `None` if the client is closed.
    fn poll_commands(
        &mut self,
        cx: &mut Context<'_>,
        handle: &mut TransportHandle,
        timer: &mut WakeTimer,
    ) -> Option<bool> {
        let mut has_executed = false;
        while self.write_error.is_none() && self.out.len() < OUTPUT_LIMIT {
            let Poll::Ready(command) = handle.poll_command(cx) else { return Some(has_executed) };
            has_executed = true;
            match command? {
                TransportCommand::Send(outgoing) => {
                    self.out.extend_from_slice(&outgoing.message);
                    self.out.push(b'\n');
                }
                TransportCommand::WakeAt(at) => timer.set(handle, at),
                // A pipe has no streams per call.
                TransportCommand::Abort { .. } | TransportCommand::Ready { .. } => {}
            }
        }
        match timer.poll_blocked(cx, handle) {
            Poll::Ready(()) => None,
            Poll::Pending => Some(has_executed),
        }
    }

    /// Writes and flushes the output buffer.
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
        if self.out.capacity() > MAX_IDLE_CAPACITY {
            self.out = Vec::new();
        }
        if !self.is_flushed {
            ready!(Pin::new(&mut self.writer).poll_flush(cx))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Passes lines to the client; returns whether there were any, and `None` at the end of the stream.
    fn poll_read(&mut self, cx: &mut Context<'_>, handle: &TransportHandle) -> io::Result<Option<bool>> {
        let mut has_read = false;
        for _ in 0..LINES_AT_ONCE {
            if !handle.wants_input() {
                break;
            }
            let Poll::Ready(line) = pin!(self.reader.next()).poll(cx) else { break };
            match line? {
                Some(Line::Message(bytes)) => handle.handle_message(bytes),
                Some(Line::TooLong(summary)) => {
                    let limit = self.line_limit;
                    tracing::warn!(target: "mcp", limit, "a line of the server exceeds `line_limit` and was skipped");
                    handle.handle_oversized(limit, &summary);
                }
                None => return Ok(None),
            }
            has_read = true;
        }
        Ok(Some(has_read))
    }

    /// Returns the writer, and the total number of bytes written.
    pub(super) fn written(&self) -> (&W, u64) {
        (&self.writer, self.written)
    }

    /// Limits how long output is still read.
    fn start_read_deadline(&mut self) {
        self.read_deadline.get_or_insert_with(|| Box::pin(sleep(READ_TIMEOUT)));
    }
}
