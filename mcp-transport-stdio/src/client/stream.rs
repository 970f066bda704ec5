//! The transport to a server on a pair of byte streams.

use std::sync::Arc;

use mcp_client::{Clock, CloseReason, Transport, TransportHandle, TransportKind};
use tokio::io::{AsyncRead, AsyncWrite};

use super::lines::{LineConnection, LinesEnd};
use super::wake_timer::WakeTimer;
use crate::clock::now;
use crate::framing::DEFAULT_LINE_LIMIT;

/// Connects a client to a server on any pair of byte streams, such as a socket.
///
/// When the server closes its stream, the client is closed. For a legacy server that disconnects when it is probed, use
/// [`Mode::Legacy`](mcp_client::Mode::Legacy).
///
/// # Examples
///
/// ```no_run
/// # #[cfg(unix)]
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use mcp_client::Client;
/// use mcp_transport_stdio::StreamTransport;
///
/// let (reader, writer) = tokio::net::UnixStream::connect("/run/my-server").await?.into_split();
/// let client = Client::connect(StreamTransport::new(reader, writer)).await?;
/// # drop(client);
/// # Ok(())
/// # }
/// ```
///
/// # Panics
///
/// Connecting panics outside of a tokio runtime with time enabled.
#[derive(Debug)]
#[must_use]
pub struct StreamTransport<R, W> {
    reader: R,
    writer: W,
    line_limit: usize,
}

impl<R, W> StreamTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Creates a transport that reads messages of the server from `reader`, and writes messages to `writer`.
    pub fn new(reader: R, writer: W) -> Self {
        Self { reader, writer, line_limit: DEFAULT_LINE_LIMIT }
    }

    /// Sets the maximum number of bytes in a line of the server. A longer line is skipped, and the call that it responds to
    /// fails with [`Error::ResponseTooLong`](mcp_client::Error::ResponseTooLong); if its id is unknown, all calls do.
    /// Defaults to 16 MiB.
    pub fn line_limit(mut self, line_limit: usize) -> Self {
        self.line_limit = line_limit;
        self
    }

    async fn run(self, mut handle: TransportHandle) {
        let mut lines = LineConnection::new(self.reader, self.writer, self.line_limit);
        match lines.run(&mut handle, &mut WakeTimer::default(), std::future::pending::<()>()).await {
            LinesEnd::ByClient => {
                let _ = lines.close_output().await;
                handle.close(CloseReason::ByClient);
            }
            LinesEnd::Disconnected(fault) => {
                let why =
                    fault.map_or_else(|| "the server closed the connection".to_owned(), |fault| fault.to_string());
                let why = CloseReason::Disconnected(why);
                // There is no way to restart the server.
                let _ = handle.handle_disconnect(&why);
                handle.close(why);
            }
        }
    }
}

impl<R, W> Transport for StreamTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn kind(&self) -> TransportKind {
        TransportKind::Pipe
    }

    fn clock(&self) -> Clock {
        Arc::new(now)
    }

    fn start(self, handle: TransportHandle) {
        tokio::spawn(self.run(handle));
    }
}
