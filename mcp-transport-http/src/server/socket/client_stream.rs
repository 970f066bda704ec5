//! The byte stream of a connection.

#[cfg(feature = "http2")]
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::byte_stream::ByteStream;
use super::connection::Stalled;

/// A connection whose first bytes were already read, and which fails if its client reads nothing.
pub(crate) struct ClientStream {
    stream: ByteStream,
    /// What was read to detect the HTTP version.
    first: Bytes,
    /// How long a write may make no progress.
    stall_timeout: Duration,
    /// The timer of a write that makes no progress.
    stuck: Option<Pin<Box<Sleep>>>,
}

/// The version of HTTP that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    Http1,
    #[cfg(feature = "http2")]
    Http2,
}

/// The client connection preface of HTTP/2 (RFC 9113).
#[cfg(feature = "http2")]
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl ClientStream {
    /// Detects the HTTP version, by the first bytes if there is a choice.
    pub(crate) async fn accept(mut stream: ByteStream, stall_timeout: Duration) -> io::Result<(HttpVersion, Self)> {
        let (version, first) = detect_version(&mut stream).await?;
        Ok((version, Self { stream, first, stall_timeout, stuck: None }))
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(self.stall_timeout)));
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, Stalled)))
    }
}

/// Waits for the first bytes, and returns what was read of them.
#[cfg(feature = "http2")]
async fn detect_version(stream: &mut ByteStream) -> io::Result<(HttpVersion, Bytes)> {
    let mut first = [0; PREFACE.len()];
    let mut count = 0;
    let mut version = HttpVersion::Http2;
    while version == HttpVersion::Http2 && count < PREFACE.len() {
        let mut rest = ReadBuf::new(&mut first[count..]);
        poll_fn(|cx| Pin::new(&mut *stream).poll_read(cx, &mut rest)).await?;
        let new = rest.filled().len();
        count += new;
        if new == 0 || !PREFACE.starts_with(&first[..count]) {
            version = HttpVersion::Http1;
        }
    }
    Ok((version, Bytes::copy_from_slice(&first[..count])))
}

#[cfg(not(feature = "http2"))]
async fn detect_version(_: &mut ByteStream) -> io::Result<(HttpVersion, Bytes)> {
    Ok((HttpVersion::Http1, Bytes::new()))
}

impl AsyncRead for ClientStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let count = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first.split_to(count));
        // The rest is read at once. Hyper would make room for it in a second buffer otherwise, which it keeps.
        if self.first.is_empty()
            && buffer.remaining() > 0
            && let Poll::Ready(Err(error)) = Pin::new(&mut self.stream).poll_read(cx, buffer)
        {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
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
