//! A server at the other end of two streams of bytes.

use std::sync::Arc;

use mcp_client::{Clock, Closed, Link, Transport, TransportKind};
use tokio::io::{AsyncRead, AsyncWrite};

use super::alarm::Alarm;
use super::wire::{Ended, Wire};
use crate::DEFAULT_LINE_LIMIT;
use crate::clock::now;

/// Talks to a server on any two streams of bytes: a socket, or pipes in a test.
///
/// When the server hangs up, the client is closed: nobody here knows how to get another one. A server that hangs up when
/// it is asked whether it is modern has to be connected to with
/// [`Mode::Legacy`](mcp_client::Mode::Legacy).
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
/// A client that uses it panics outside of a tokio runtime with time enabled.
#[derive(Debug)]
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
    /// Reads what the server says from `reader`, and tells it things on `writer`.
    pub fn new(reader: R, writer: W) -> Self {
        Self { reader, writer, line_limit: DEFAULT_LINE_LIMIT }
    }

    /// Sets the maximum number of bytes in a line of the server. A longer one is skipped, and the call that it was to
    /// answer ends with [`Error::TooLong`](mcp_client::Error::TooLong): that call if the id can be read, else every open
    /// one. Defaults to 16 MiB.
    #[must_use]
    pub fn line_limit(mut self, line_limit: usize) -> Self {
        self.line_limit = line_limit;
        self
    }

    async fn run(self, mut link: Link) {
        let mut wire = Wire::new(self.reader, self.writer, self.line_limit);
        match wire.run(&mut link, &mut Alarm::default(), std::future::pending::<()>()).await {
            Ended::ByClient => {
                let _ = wire.hang_up().await;
                link.closed(Closed::ByClient);
            }
            Ended::Gone(fault) => {
                let why = fault.map_or_else(|| "the server hung up".to_owned(), |fault| fault.to_string());
                let why = Closed::Lost(why);
                // Whatever comes after it, there is no other server.
                let _ = link.lost(&why);
                link.closed(why);
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

    fn start(self, link: Link) {
        tokio::spawn(self.run(link));
    }
}
