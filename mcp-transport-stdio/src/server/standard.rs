//! Standard input and output.

use std::io;
use std::task::{Context, Poll};

use mcp_server::Server;
use tokio::io::{AsyncRead, AsyncWrite};

use super::driver::{Ended, InvalidLines, serve_until};
use super::options::ServeOptions;
use super::threaded::{ThreadedReader, ThreadedWriter};

/// Serves the client that started this process, until it closes our standard input or the process is told to stop
/// (SIGTERM, SIGINT, Ctrl-C).
///
/// Standard output belongs to the protocol from then on: nothing else may print there. The result is made to be that
/// of `main`; [`serve_stdio_with`] tells why the server stopped.
///
/// # The end
///
/// | what happens | what becomes of requests | returns |
/// |---|---|---|
/// | standard input ends | those that run or wait are answered, within [`ServeOptions::drain`] | [`Ended::InputClosed`] |
/// | SIGTERM, SIGINT, Ctrl-C | the same; nothing more is read | [`Ended::Stopped`] |
/// | one of these signals while requests are answered | they are given up at once | what the first one would have |
/// | standard output is closed | they are given up with the next message, as the end of a pipe shows only then | [`Ended::OutputClosed`] |
/// | a stream fails in another way | they are given up | an error |
///
/// A client that does not read its answers is not read from either, so the server does not see that such a client has
/// closed the input; a signal ends it, or the end of the client, which closes the output.
///
/// In all cases what handlers left for the end of the connection runs. None of the reasons to end is a failure, so a
/// `main` that passes errors on exits with 0 for each of them, and with 1 for an error:
///
/// ```no_run
/// # async fn serve(server: mcp_server::Server) -> std::io::Result<()> {
/// mcp_transport_stdio::serve_stdio(server).await?;
/// # Ok(())
/// # }
/// ```
///
/// Programs in Rust ignore SIGPIPE, so a client that closes its end does not kill the process. A handler that panics is
/// answered with an error and does not end anything; what it said is on standard error.
///
/// # Errors
///
/// Fails if standard input or output cannot be used.
pub async fn serve_stdio(server: Server) -> io::Result<()> {
    serve_stdio_with(server, &ServeOptions::default()).await.map(drop)
}

/// Does the same with other settings, and tells why the server stopped.
///
/// # Errors
///
/// Fails if standard input or output cannot be used.
pub async fn serve_stdio_with(server: Server, options: &ServeOptions) -> io::Result<Ended> {
    let poll_stop = stop_signals()?;
    serve_until(&server, input()?, output()?, options, invalid_lines(), poll_stop).await
}

/// Whoever started this process may be careless. But a process that was started for a connection to a network socket, as
/// by inetd, does not know who is at the other end.
fn invalid_lines() -> InvalidLines {
    #[cfg(unix)]
    if unix::is_network_socket() {
        return InvalidLines::EndConnection;
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

/// Pipes and sockets, which is what clients give to their servers, can be waited for. Everything else (a terminal, a
/// file) is read and written by a thread, which takes longer.
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

    /// Whether standard input is a socket other than a Unix socket, which is how some clients make pipes.
    pub(super) fn is_network_socket() -> bool {
        let Some((fd, metadata)) = opened(io::stdin().as_fd()) else { return false };
        metadata.file_type().is_socket() && StdStream::from(fd).local_addr().is_err()
    }

    /// A stream that is ours alone, so that we may say that it does not block.
    ///
    /// What is shared with standard error must keep blocking: those who print there do not expect to be told to come
    /// back later. One socket may well be all three streams.
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

/// Ready each time the process is told to stop.
#[cfg(unix)]
fn stop_signals() -> io::Result<impl FnMut(&mut Context<'_>) -> Poll<()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut signals = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    Ok(move |cx: &mut Context<'_>| {
        let is_told = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if is_told { Poll::Ready(()) } else { Poll::Pending }
    })
}

#[cfg(windows)]
fn stop_signals() -> io::Result<impl FnMut(&mut Context<'_>) -> Poll<()>> {
    let mut signal = tokio::signal::windows::ctrl_c()?;
    Ok(move |cx: &mut Context<'_>| signal.poll_recv(cx).map(drop))
}

/// Without a way to be told, the server stops when its input ends.
#[cfg(not(any(unix, windows)))]
fn stop_signals() -> io::Result<impl FnMut(&mut Context<'_>) -> Poll<()>> {
    Ok(|_: &mut Context<'_>| Poll::Pending)
}
