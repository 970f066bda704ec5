//! Timeouts for a connection whose client sends or reads nothing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A TCP stream that fails if its client sends no first bytes, or reads nothing.
///
/// Hyper has timeouts for everything in between, but not while it detects the HTTP version, nor while it writes.
pub(crate) struct StallTimeout {
    stream: TcpStream,
    /// How long a write may make no progress.
    stall_timeout: Duration,
    /// How much of [`PREFACE`] was received, while the version is not known, and the timer for it.
    opening: Option<(usize, Pin<Box<Sleep>>)>,
    /// The timer of a write that makes no progress.
    stuck: Option<Pin<Box<Sleep>>>,
}

/// The client connection preface of HTTP/2 (RFC 9113).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl StallTimeout {
    pub(crate) fn new(stream: TcpStream, opening_time: Duration, stall_timeout: Duration) -> Self {
        Self { stream, stall_timeout, opening: Some((0, Box::pin(sleep(opening_time)))), stuck: None }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(self.stall_timeout)));
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "stall timeout: the client does not read")))
    }
}

impl AsyncRead for StallTimeout {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let Some((count, time)) = &mut self.opening else { return read };
        let new = &buffer.filled()[before..];
        if read.is_pending() {
            ready!(time.as_mut().poll(cx));
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "header timeout: the client sends nothing",
            )));
        }
        let rest = &PREFACE[*count..];
        if new.len() < rest.len() && rest.starts_with(new) {
            *count += new.len();
        } else {
            self.opening = None;
        }
        read
    }
}

impl AsyncWrite for StallTimeout {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
