//! One client: lines in, lines out.

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
use crate::clock::now;
use crate::{Line, LineReader};

/// Why a server stopped; none of these is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The client closed its side: there is nothing more to read.
    InputClosed,
    /// The client does not read any more.
    OutputClosed,
    /// The server was told to stop.
    Stopped,
    /// The client sent a line that is not a JSON object, on a stream where that ends the connection.
    InvalidInput,
}

/// Serves one client on a pair of byte streams, until its input ends or `stop` is ready.
///
/// Then handlers that are at work may finish, within [`ServeOptions::drain`]; what they answer is still sent. If `stop`
/// becomes ready only after the input has ended, they are given up at once. A writer that blocks holds up reading: what
/// waits to be sent is bounded, and so is the memory of the connection.
///
/// The first line that is not a JSON object ends the connection, with an error that says so. The streams may belong to a
/// socket, where web pages can have a browser connect and send lines of their choice after those of HTTP.
///
/// # Errors
///
/// Fails if reading or writing does, other than by the end of the stream.
pub async fn serve_io<R, W>(
    server: &Server,
    reader: R,
    writer: W,
    options: &ServeOptions,
    stop: impl Future<Output = ()>,
) -> io::Result<Ended>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut stop = pin!(stop);
    let mut is_told = false;
    let poll_stop = |cx: &mut Context<'_>| {
        if is_told {
            return Poll::Pending;
        }
        ready!(stop.as_mut().poll(cx));
        is_told = true;
        Poll::Ready(())
    };
    serve_until(server, reader, writer, options, InvalidLines::EndConnection, poll_stop).await
}

/// What becomes of lines that are not JSON objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidLines {
    /// Each is answered with an error, and reading goes on: the client started this process, and may be careless.
    Refuse,
    /// The first one ends the connection: who knows who connected, and whether it speaks this protocol at all.
    EndConnection,
}

/// Does the same; `poll_stop` may be ready several times, and each time there is less patience.
///
/// ```text
///   Serving -- end of input, stop --> Draining -- idle, stop, time is over --> Closing -- all sent, stop, time is over --> end
/// ```
pub(super) async fn serve_until<R, W>(
    server: &Server,
    reader: R,
    writer: W,
    options: &ServeOptions,
    invalid_lines: InvalidLines,
    mut poll_stop: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> io::Result<Ended>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut driver = Driver {
        connection: connection(server, options),
        reader: LineReader::new(reader, options.line_limit),
        writer,
        out: Vec::new(),
        sent: 0,
        is_flushed: true,
        timer: None,
        stage: Stage::Serving,
        handover: None,
        options: options.clone(),
        invalid_lines,
    };
    let mut patience: Option<Pin<Box<Sleep>>> = None;
    let ended = poll_fn(|cx| {
        while poll_stop(cx).is_ready() {
            if let Some(ended) = driver.hurry() {
                return Poll::Ready(Ok(ended));
            }
        }
        loop {
            if let Poll::Ready(ended) = driver.poll(cx) {
                return Poll::Ready(ended);
            }
            if driver.stage == Stage::Serving {
                return Poll::Pending;
            }
            let bound = patience.get_or_insert_with(|| Box::pin(sleep(options.drain)));
            ready!(bound.as_mut().poll(cx));
            patience = None;
            if let Some(ended) = driver.hurry() {
                return Poll::Ready(Ok(ended));
            }
        }
    })
    .await;
    if let Some(handover) = driver.handover.take() {
        handover.teardown.await;
    }
    driver.connection.teardown(|| sleep(options.teardown)).await;
    ended
}

fn connection(server: &Server, options: &ServeOptions) -> Connection {
    let second = if options.shared_pipe { SecondHandshake::Restart } else { SecondHandshake::Repeat };
    Connection::long_lived(server).second_handshake(second)
}

struct Driver<R, W> {
    connection: Connection,
    reader: LineReader<R>,
    writer: W,
    /// What is on its way out, and how much of it is gone.
    out: Vec<u8>,
    sent: usize,
    is_flushed: bool,
    timer: Option<(Time, Pin<Box<Sleep>>)>,
    stage: Stage,
    /// What comes before the next connection, where clients share the streams.
    handover: Option<Handover>,
    options: ServeOptions,
    invalid_lines: InvalidLines,
}

/// The end of a connection, and the handshake that waits for it to begin the next one.
struct Handover {
    teardown: BoxFuture<()>,
    handshake: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Serving,
    /// Nothing more is read; what is at work may finish.
    Draining(Ended),
    /// Nothing is at work any more; what is there may be sent.
    Closing(Ended),
}

/// How much may be on its way out before reading and answering have to wait.
const OUT_LIMIT: usize = 256 * 1024;

/// An empty buffer that is larger than this is given back.
const OUT_KEPT: usize = 64 * 1024;

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Driver<R, W> {
    /// Goes on as far as it can without waiting; ready when it is all over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Ended>> {
        loop {
            let now = now();
            let has_read = self.poll_read(cx, now)?;
            // Whether there is something to send shows when it is taken.
            let _ = self.connection.poll(cx, now);
            let has_written = match self.poll_write(cx) {
                Poll::Ready(Ok(has_written)) => has_written,
                Poll::Ready(Err(error)) if is_closed(&error) => return Poll::Ready(Ok(Ended::OutputClosed)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => false,
            };
            self.advance();
            let is_sent = self.out.is_empty() && self.is_flushed;
            match self.stage {
                Stage::Closing(ended) if is_sent => return Poll::Ready(Ok(ended)),
                Stage::Serving | Stage::Draining(_) | Stage::Closing(_) => {}
            }
            // All of the above may set a deadline, and one that is over may be followed by another.
            let is_late = self.poll_timer(cx, now);
            if !has_read && !has_written && !is_late {
                return Poll::Pending;
            }
        }
    }

    /// Feeds what there is to read; returns whether there was anything.
    fn poll_read(&mut self, cx: &mut Context<'_>, now: Time) -> io::Result<bool> {
        let caller = Caller::default();
        let limits = self.connection.server().config().limits.message;
        let is_strict = self.invalid_lines == InvalidLines::EndConnection;
        let mut has_read = false;
        if let Some(Handover { teardown, .. }) = &mut self.handover {
            let Poll::Ready(()) = teardown.as_mut().poll(cx) else { return Ok(false) };
            if let Some(Handover { handshake, .. }) = self.handover.take() {
                self.connection.feed(now, &handshake, &caller);
                has_read = true;
            }
        }
        while self.stage == Stage::Serving && self.out.len() < OUT_LIMIT && self.connection.wants_input() {
            let Poll::Ready(line) = pin!(self.reader.next()).poll(cx) else {
                // What cannot become a message is not waited for.
                if is_strict && self.reader.partial().first().is_some_and(|first| !may_begin_message(*first)) {
                    self.connection.feed(now, self.reader.partial(), &caller);
                    self.finish(Ended::InvalidInput);
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
                            self.begin_anew(handshake);
                            break;
                        }
                        Ok(incoming) => self.connection.feed_parsed(now, incoming, &caller),
                        Err(_) => self.connection.feed(now, bytes, &caller),
                    };
                    if ends {
                        self.finish(Ended::InvalidInput);
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
                        self.finish(Ended::InvalidInput);
                    }
                }
                Ok(None) => self.drain(Ended::InputClosed),
                Err(error) if is_closed(&error) => self.drain(Ended::InputClosed),
                Err(error) => return Err(error),
            }
            // What has come together is answered together.
            if !self.reader.has_buffered_line() {
                break;
            }
        }
        Ok(has_read)
    }

    /// Ends the connection of one client, and has another one begin with its handshake.
    fn begin_anew(&mut self, handshake: Vec<u8>) {
        // What was said to the client before is still on its way to it.
        self.connection.take_lines(&mut self.out, usize::MAX);
        let next = connection(self.connection.server(), &self.options);
        let mut last = std::mem::replace(&mut self.connection, next);
        let bound = self.options.teardown;
        let teardown = Box::pin(async move { last.teardown(|| sleep(bound)).await });
        self.handover = Some(Handover { teardown, handshake });
    }

    /// Sends what there is; returns whether anything moved.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut has_written = false;
        loop {
            if self.sent == self.out.len() {
                self.out.clear();
                self.sent = 0;
                self.connection.take_lines(&mut self.out, OUT_LIMIT);
                if self.out.is_empty() {
                    if self.out.capacity() > OUT_KEPT {
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

    /// Waits for the next deadline; returns whether it was over.
    fn poll_timer(&mut self, cx: &mut Context<'_>, now: Time) -> bool {
        let Some(due) = self.connection.poll_timeout().map(|deadline| deadline.at) else {
            self.timer = None;
            return false;
        };
        let (_, sleep) = match &mut self.timer {
            Some(timer) if timer.0 == due => timer,
            timer => timer.insert((due, Box::pin(sleep(due.duration_since(now))))),
        };
        let is_late = sleep.as_mut().poll(cx).is_ready();
        if is_late {
            self.timer = None;
            self.connection.handle_timeout(now.max(due));
        }
        is_late
    }

    /// Goes on to the next stage without waiting for the end of this one; returns how it ended if there is none.
    fn hurry(&mut self) -> Option<Ended> {
        match self.stage {
            Stage::Serving => self.drain(Ended::Stopped),
            // What is still at work has had its time.
            Stage::Draining(ended) => self.finish(ended),
            // Nobody reads what is left.
            Stage::Closing(ended) => return Some(ended),
        }
        None
    }

    /// Stops reading; what is at work may finish.
    fn drain(&mut self, ended: Ended) {
        self.stage = Stage::Draining(ended);
        self.connection.drain();
    }

    /// Gives up what is at work.
    fn finish(&mut self, ended: Ended) {
        self.stage = Stage::Closing(ended);
        self.connection.close();
    }

    /// Moves on to the next stage when there is nothing to wait for.
    fn advance(&mut self) {
        match self.stage {
            Stage::Serving if self.connection.is_closed() => self.stage = Stage::Closing(Ended::OutputClosed),
            Stage::Draining(ended) if !self.connection.is_busy() => self.finish(ended),
            Stage::Serving | Stage::Draining(_) | Stage::Closing(_) => {}
        }
    }
}

/// Whether a line that begins like this can be a message. Blank lines may come before it.
fn may_begin_message(first: u8) -> bool {
    matches!(first, b'{' | b'[') || first.is_ascii_whitespace()
}

fn has_batches(connection: &Connection) -> bool {
    connection.negotiated() == Some(Revision::V2025_03_26)
}

/// Whether a line is a JSON object, be it a message or not, or an array where the revision has batches.
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

/// Whether the other side is just gone.
fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
    )
}
