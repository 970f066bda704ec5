//! One connection: exchanges lines between a server and a client.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use mcp_kernel::Time;
use mcp_server::types::jsonrpc::{EnvelopeKind, Fault, Incoming, InvalidMessage, parse};
use mcp_server::types::{ErrorCode, Revision};
use mcp_server::{BoxFuture, Caller, Connection, SecondHandshake, Server};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Sleep, sleep};

use super::options::ServeOptions;
use crate::clock::PassTime;
use crate::{Line, LineReader};

/// Why a server stopped. None of these is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The client closed the input.
    InputClosed,
    /// The client closed the output.
    OutputClosed,
    /// The `stop` future completed, or a signal was received.
    Stopped,
    /// The client sent a line that is not a JSON object, on a stream where that closes the connection.
    InvalidInput,
}

/// Serves one client on a pair of byte streams, until the input ends or `stop` completes.
///
/// Handlers in flight then have [`ServeOptions::drain_timeout`] to complete, and their responses are sent. So has the decision
/// of `ServerBuilder::on_initialize`, if it is pending. If `stop` completes after the input has ended, they are cancelled at
/// once. While output is blocked, no input is read, so that
/// memory stays bounded.
///
/// The first line that is not a JSON object closes the connection after an error response: the streams may be those of a
/// socket, and web pages can make a browser send HTTP requests whose bodies contain lines of their choice.
///
/// # Errors
///
/// Returns an error if reading or writing fails, except if the client has disconnected.
pub async fn serve_io<R, W>(
    server: &Server,
    reader: R,
    writer: W,
    options: &ServeOptions,
    stop: impl Future<Output = ()>,
) -> io::Result<StopReason>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut stop = pin!(stop);
    let mut has_stopped = false;
    let poll_stop = |cx: &mut Context<'_>| {
        if has_stopped {
            return Poll::Pending;
        }
        ready!(stop.as_mut().poll(cx));
        has_stopped = true;
        Poll::Ready(())
    };
    serve_until(server, reader, writer, options, InvalidLines::CloseConnection, poll_stop).await
}

/// How lines that are not JSON objects are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidLines {
    /// Each gets an error response: the client started this process, and is trusted.
    Refuse,
    /// The first one closes the connection: the peer may not be an MCP client.
    CloseConnection,
}

/// Serves one client. `poll_stop` may be ready several times; each time moves on to the next stage.
///
/// ```text
///   Serving -- end of input, stop --> Draining -- idle, stop, timeout --> Closing -- all sent, stop, timeout --> end
/// ```
pub(super) async fn serve_until<R, W>(
    server: &Server,
    reader: R,
    writer: W,
    options: &ServeOptions,
    invalid_lines: InvalidLines,
    mut poll_stop: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> io::Result<StopReason>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut driver = Driver {
        server: server.clone(),
        connection: connection(server, options),
        reader: LineReader::new(reader, options.line_limit),
        writer,
        out: Vec::new(),
        sent: 0,
        is_flushed: true,
        timer: None,
        stage: Stage::Serving,
        is_abandoned: false,
        handover: None,
        options: options.clone(),
        invalid_lines,
    };
    let mut stage_timeout: Option<Pin<Box<Sleep>>> = None;
    let reason = poll_fn(|cx| {
        while poll_stop(cx).is_ready() {
            if let Some(reason) = driver.next_stage() {
                return Poll::Ready(Ok(reason));
            }
        }
        loop {
            if let Poll::Ready(reason) = driver.poll(cx) {
                return Poll::Ready(reason);
            }
            if driver.stage == Stage::Serving && !driver.is_abandoned {
                stage_timeout = None;
                return Poll::Pending;
            }
            let bound = stage_timeout.get_or_insert_with(|| Box::pin(sleep(options.drain_timeout)));
            ready!(bound.as_mut().poll(cx));
            stage_timeout = None;
            if let Some(reason) = driver.next_stage() {
                return Poll::Ready(Ok(reason));
            }
        }
    })
    .await;
    match &reason {
        Err(_) => driver.connection.set_error("io"),
        Ok(StopReason::InvalidInput) => driver.connection.set_error("invalid_input"),
        Ok(StopReason::InputClosed | StopReason::OutputClosed | StopReason::Stopped) => {}
    }
    if let Some(handover) = driver.handover.take() {
        handover.teardown.await;
    }
    driver.connection.teardown(|| sleep(options.teardown_timeout)).await;
    reason
}

fn connection(server: &Server, options: &ServeOptions) -> Connection {
    let second = if options.shared_pipe { SecondHandshake::Restart } else { SecondHandshake::Repeat };
    Connection::long_lived(server).second_handshake(second).network(options.network)
}

struct Driver<R, W> {
    /// The server of new connections; a handshake may choose another one for its connection.
    server: Server,
    connection: Connection,
    reader: LineReader<R>,
    writer: W,
    /// The output buffer, and how much of it was written.
    out: Vec<u8>,
    sent: usize,
    is_flushed: bool,
    timer: Option<(Time, Pin<Box<Sleep>>)>,
    stage: Stage,
    /// Whether the input has ended while the application decides about the handshake. The lines before its end were not
    /// read yet, so this is no stage: they are handled if the decision is ready in time.
    is_abandoned: bool,
    /// The transition to the next connection, if clients share the streams.
    handover: Option<Handover>,
    options: ServeOptions,
    invalid_lines: InvalidLines,
}

/// The teardown of a connection, and the handshake of the next one, which waits for it.
struct Handover {
    teardown: BoxFuture<()>,
    handshake: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Serving,
    /// No more input is read; handlers in flight may complete.
    Draining(StopReason),
    /// No handler is in flight; the rest of the output is sent.
    Closing(StopReason),
}

/// Size of the output buffer from which no more input is read.
const OUTPUT_LIMIT: usize = 256 * 1024;

/// How many lines are fed before their handlers are called, if more have arrived: few enough that the memory of one group serves
/// the next one, and enough that the code of each step is used several times while it is in the caches.
const LINES_PER_POLL: usize = 8;

/// Capacity from which an empty output buffer is released.
const MAX_IDLE_CAPACITY: usize = 64 * 1024;

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Driver<R, W> {
    /// Makes progress; ready when the connection has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<StopReason>> {
        // Whether the connection, the output and the timer are up to date unless more is read.
        let mut is_settled = false;
        loop {
            let mut time = PassTime::default();
            let has_read = self.poll_read(cx, &mut time)?;
            if is_settled && !has_read && self.stage == Stage::Serving {
                return Poll::Pending;
            }
            let now = time.get();
            // `poll_write` finds out whether there is output.
            let _ = self.connection.poll(cx, now);
            let has_written = match self.poll_write(cx) {
                Poll::Ready(Ok(has_written)) => has_written,
                Poll::Ready(Err(error)) if is_closed(&error) => return Poll::Ready(Ok(StopReason::OutputClosed)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => false,
            };
            self.advance();
            let is_sent = self.out.is_empty() && self.is_flushed;
            match self.stage {
                Stage::Closing(reason) if is_sent => return Poll::Ready(Ok(reason)),
                Stage::Serving | Stage::Draining(_) | Stage::Closing(_) => {}
            }
            // Everything above may set a deadline, and one that has passed may be followed by another.
            let has_fired = self.poll_timer(cx, now);
            if !has_read && !has_written && !has_fired {
                return Poll::Pending;
            }
            is_settled = !has_fired;
        }
    }

    /// Reads and feeds lines; returns whether there were any.
    fn poll_read(&mut self, cx: &mut Context<'_>, time: &mut PassTime) -> io::Result<bool> {
        let caller = Caller::default();
        let limits = self.connection.server().config().limits.message;
        let is_strict = self.invalid_lines == InvalidLines::CloseConnection;
        let (mut has_read, mut fed) = (false, 0_usize);
        if let Some(Handover { teardown, .. }) = &mut self.handover {
            let Poll::Ready(()) = teardown.as_mut().poll(cx) else { return Ok(false) };
            if let Some(Handover { handshake, .. }) = self.handover.take() {
                self.connection.feed(time.get(), &handshake, &caller);
                has_read = true;
            }
        }
        self.is_abandoned = self.stage == Stage::Serving
            && self.server.config().intercept_initialize
            && self.connection.has_pending_handshake()
            && match self.reader.poll_read_ahead(cx) {
                Poll::Pending => false,
                Poll::Ready(Err(error)) if !is_closed(&error) => return Err(error),
                Poll::Ready(_) => true,
            };
        while self.stage == Stage::Serving && self.out.len() < OUTPUT_LIMIT && self.connection.wants_input() {
            let Poll::Ready(line) = pin!(self.reader.next()).poll(cx) else {
                // The rest of a line that cannot be a message is not awaited.
                if is_strict && self.reader.partial().first().is_some_and(|first| !may_begin_message(*first)) {
                    self.connection.feed(time.get(), self.reader.partial(), &caller);
                    self.finish(StopReason::InvalidInput);
                }
                break;
            };
            has_read = true;
            match line {
                Ok(Some(Line::Message(bytes))) => {
                    let incoming = parse(bytes, &limits);
                    let ends = is_strict && !is_object(&incoming, &self.connection);
                    match incoming {
                        Ok(incoming) if self.options.shared_pipe && self.connection.is_restart(&incoming) => {
                            let handshake = bytes.to_vec();
                            self.restart_connection(handshake);
                            break;
                        }
                        Ok(incoming) => self.connection.feed_parsed(time.get(), incoming, &caller, None),
                        Err(_) => self.connection.feed(time.get(), bytes, &caller),
                    };
                    if ends {
                        self.finish(StopReason::InvalidInput);
                    }
                }
                Ok(Some(Line::TooLong(summary))) => {
                    let ends = is_strict
                        && match summary.kind {
                            EnvelopeKind::NotAnObject => true,
                            EnvelopeKind::Batch => !has_batches(&self.connection),
                            EnvelopeKind::Unknown | EnvelopeKind::Call | EnvelopeKind::Response => false,
                        };
                    self.connection.handle_oversized(self.options.line_limit, &summary);
                    if ends {
                        self.finish(StopReason::InvalidInput);
                    }
                }
                Ok(None) => self.drain(StopReason::InputClosed),
                Err(error) if is_closed(&error) => self.drain(StopReason::InputClosed),
                Err(error) => return Err(error),
            }
            // Requests that arrived together are responded to together.
            if !self.reader.has_buffered_line() {
                break;
            }
            fed += 1;
            if fed % LINES_PER_POLL == 0 {
                let _ = self.connection.poll(cx, time.get());
            }
        }
        Ok(has_read)
    }

    /// Starts a new connection with the handshake of another client.
    fn restart_connection(&mut self, handshake: Vec<u8>) {
        // Responses to the client before are still sent.
        self.connection.take_lines(&mut self.out, usize::MAX);
        let next = connection(&self.server, &self.options);
        let mut last = std::mem::replace(&mut self.connection, next);
        let bound = self.options.teardown_timeout;
        let teardown = Box::pin(async move { last.teardown(|| sleep(bound)).await });
        self.handover = Some(Handover { teardown, handshake });
    }

    /// Writes output; returns whether there was any.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut has_written = false;
        loop {
            if self.sent == self.out.len() {
                self.out.clear();
                self.sent = 0;
                self.connection.take_lines(&mut self.out, OUTPUT_LIMIT);
                if self.out.is_empty() {
                    if self.out.capacity() > MAX_IDLE_CAPACITY {
                        self.out = Vec::new();
                    }
                    break;
                }
            }
            let rest = self.out.get(self.sent..).unwrap_or_default();
            let written = ready!(Pin::new(&mut self.writer).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += written;
            (has_written, self.is_flushed) = (true, false);
        }
        if !self.is_flushed {
            ready!(Pin::new(&mut self.writer).poll_flush(cx))?;
            self.is_flushed = true;
        }
        Poll::Ready(Ok(has_written))
    }

    /// Polls the next deadline; returns whether it has passed.
    fn poll_timer(&mut self, cx: &mut Context<'_>, now: Time) -> bool {
        let Some(due) = self.connection.poll_timeout().map(|deadline| deadline.at) else {
            self.timer = None;
            return false;
        };
        let (_, sleep) = match &mut self.timer {
            Some(timer) if timer.0 == due => timer,
            timer => timer.insert((due, Box::pin(sleep(due.duration_since(now))))),
        };
        let has_fired = sleep.as_mut().poll(cx).is_ready();
        if has_fired {
            self.timer = None;
            self.connection.handle_timeout(now.max(due));
        }
        has_fired
    }

    /// Moves on to the next stage without waiting for the end of this one; returns the reason if this was the last one.
    fn next_stage(&mut self) -> Option<StopReason> {
        match self.stage {
            // The decision about the handshake is dropped.
            Stage::Serving if self.is_abandoned => self.finish(StopReason::InputClosed),
            Stage::Serving => self.drain(StopReason::Stopped),
            // The handlers still in flight are cancelled.
            Stage::Draining(reason) => self.finish(reason),
            // The client does not read the rest of the output.
            Stage::Closing(reason) => return Some(reason),
        }
        None
    }

    /// Stops reading; handlers in flight may complete.
    fn drain(&mut self, reason: StopReason) {
        self.stage = Stage::Draining(reason);
        self.connection.drain();
    }

    /// Cancels handlers in flight.
    fn finish(&mut self, reason: StopReason) {
        self.stage = Stage::Closing(reason);
        self.connection.close();
    }

    /// Moves on to the next stage if this one is complete.
    fn advance(&mut self) {
        match self.stage {
            Stage::Serving if self.connection.is_closed() => self.stage = Stage::Closing(StopReason::OutputClosed),
            Stage::Draining(reason) if !self.connection.is_busy() => self.finish(reason),
            Stage::Serving | Stage::Draining(_) | Stage::Closing(_) => {}
        }
    }
}

/// Returns whether a line that starts with this byte can be a message, or is blank.
fn may_begin_message(first: u8) -> bool {
    matches!(first, b'{' | b'[') || first.is_ascii_whitespace()
}

fn has_batches(connection: &Connection) -> bool {
    connection.negotiated() == Some(Revision::V2025_03_26)
}

/// Returns whether a line is a JSON object, or an array if the revision has batches.
fn is_object(incoming: &Result<Incoming<'_>, InvalidMessage>, connection: &Connection) -> bool {
    match incoming {
        Ok(Incoming::Single(_)) => true,
        Ok(Incoming::Batch(_)) => has_batches(connection),
        Err(invalid) => {
            let is_array = matches!(invalid.fault(), Fault::EmptyBatch | Fault::BatchTooLarge { .. });
            let is_scalar = matches!(invalid.fault(), Fault::NotAnObject { .. });
            if is_array { has_batches(connection) } else { !is_scalar && invalid.code() != ErrorCode::PARSE_ERROR }
        }
    }
}

/// Returns whether the error means that the peer has disconnected.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
    )
}
