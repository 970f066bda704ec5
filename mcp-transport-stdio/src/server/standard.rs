//! Servers on standard input and output.

use std::io;

use mcp_server::Server;
use tokio::io::{AsyncRead, AsyncWrite};

use super::driver::{InvalidLines, StopReason, serve_until};
use super::options::ServeOptions;
use super::signals::stop_signals;
use super::threaded::{ThreadedReader, ThreadedWriter};

/// Serves the client that started this process, until standard input ends or the process receives SIGTERM, SIGINT or
/// Ctrl-C.
///
/// Standard output is reserved for the protocol: nothing else may print there. [`serve_stdio_with`] accepts settings, and
/// returns why the server stopped.
///
/// # Shutdown
///
/// | event | requests | reason |
/// |---|---|---|
/// | standard input ends | requests in flight and queued ones are served, within [`ServeOptions::drain_timeout`] | [`StopReason::InputClosed`] |
/// | SIGTERM, SIGINT, Ctrl-C | the same; no more input is read | [`StopReason::Stopped`] |
/// | another signal in the meantime | cancelled at once | that of the first event |
/// | standard output is closed | cancelled when the next message is written, because a closed pipe shows only then | [`StopReason::OutputClosed`] |
/// | a stream fails in another way | cancelled | an error |
///
/// While a client does not read responses, no input is read, so that the end of the input is not noticed either. The server
/// then stops on a signal, or when the client exits, which closes the output.
///
/// Teardown callbacks run in all cases. Closed streams and signals are not errors, so that a `main` which returns the result
/// exits with 0 for them.
///
/// Rust programs ignore SIGPIPE, so a closed output does not kill the process. A handler that panics gets an error response
/// and does not affect other requests; the panic message is on standard error.
///
/// # Examples
///
/// ```no_run
/// # async fn serve(server: mcp_server::Server) -> std::io::Result<()> {
/// mcp_transport_stdio::serve_stdio(server).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Returns an error if standard input or output cannot be used.
pub async fn serve_stdio(server: Server) -> io::Result<()> {
    serve_stdio_with(server, &ServeOptions::default()).await.map(drop)
}

/// Serves the client that started this process, like [`serve_stdio`], with settings. Returns why the server stopped.
///
/// # Errors
///
/// Returns an error if standard input or output cannot be used.
pub async fn serve_stdio_with(server: Server, options: &ServeOptions) -> io::Result<StopReason> {
    let poll_stop = stop_signals()?;
    serve_until(&server, input()?, output()?, options, invalid_lines(), poll_stop).await
}

/// The process that started this one is trusted to send messages. With a network socket as standard input, as with inetd,
/// the peer is unknown.
fn invalid_lines() -> InvalidLines {
    #[cfg(unix)]
    if unix::is_network_socket() {
        return InvalidLines::CloseConnection;
    }
    InvalidLines::Refuse
}

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

#[cfg(unix)]
fn input() -> io::Result<Reader> {
    unix::input().map_or_else(threaded_input, Ok)
}

#[cfg(unix)]
fn output() -> io::Result<Writer> {
    unix::output().map_or_else(threaded_output, Ok)
}

#[cfg(not(unix))]
fn input() -> io::Result<Reader> {
    threaded_input()
}

#[cfg(not(unix))]
fn output() -> io::Result<Writer> {
    threaded_output()
}

fn threaded_input() -> io::Result<Reader> {
    Ok(Box::new(ThreadedReader::start(io::stdin())?))
}

fn threaded_output() -> io::Result<Writer> {
    Ok(Box::new(ThreadedWriter::start(io::stdout())?))
}

/// Pipes and sockets, which clients usually pass to their servers, support non-blocking I/O. Everything else (a terminal, a
/// file) is read and written by a thread, which is slower.
#[cfg(unix)]
mod unix {
    use std::fs::{File, FileType, Metadata};
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    use std::os::unix::net::UnixStream as StdStream;

    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{Reader, Writer};

    pub(super) fn input() -> Option<Reader> {
        let (fd, kind) = owned(io::stdin().as_fd())?;
        if kind.is_fifo() {
            return Some(Box::new(pipe::Receiver::from_owned_fd(fd).ok()?));
        }
        kind.is_socket().then(|| stream(fd)).flatten().map(|stream| Box::new(stream) as Reader)
    }

    pub(super) fn output() -> Option<Writer> {
        let (fd, kind) = owned(io::stdout().as_fd())?;
        if kind.is_fifo() {
            return Some(Box::new(pipe::Sender::from_owned_fd(fd).ok()?));
        }
        kind.is_socket().then(|| stream(fd)).flatten().map(|stream| Box::new(stream) as Writer)
    }

    /// Returns whether standard input is a network socket. Some clients use Unix sockets as pipes.
    pub(super) fn is_network_socket() -> bool {
        let Some((fd, metadata)) = opened(io::stdin().as_fd()) else { return false };
        metadata.file_type().is_socket() && StdStream::from(fd).local_addr().is_err()
    }

    /// Returns a stream that can be made non-blocking.
    ///
    /// A stream that is shared with standard error must stay blocking, because code that prints there does not expect
    /// `WouldBlock`. One socket may be all three streams.
    fn owned(fd: BorrowedFd<'_>) -> Option<(OwnedFd, FileType)> {
        let (fd, metadata) = opened(fd)?;
        let (_, other) = opened(io::stderr().as_fd())?;
        let is_shared = (metadata.dev(), metadata.ino()) == (other.dev(), other.ino());
        (!is_shared).then(|| (fd, metadata.file_type()))
    }

    fn opened(fd: BorrowedFd<'_>) -> Option<(OwnedFd, Metadata)> {
        let file = File::from(fd.try_clone_to_owned().ok()?);
        let metadata = file.metadata().ok()?;
        Some((file.into(), metadata))
    }

    fn stream(fd: OwnedFd) -> Option<UnixStream> {
        let stream = StdStream::from(fd);
        stream.set_nonblocking(true).ok()?;
        UnixStream::from_std(stream).ok()
    }
}
