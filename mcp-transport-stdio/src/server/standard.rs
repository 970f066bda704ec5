//! Standard input and output.

use std::io;

use mcp_server::Server;
use tokio::io::{AsyncRead, AsyncWrite};

use super::driver::{Ended, serve_io};
use super::options::ServeOptions;

/// Serves the client that started this process, until it closes our standard input or the process is told to stop
/// (SIGTERM, SIGINT, Ctrl-C).
///
/// Standard output belongs to the protocol from then on: nothing else may print there. The result is made to be that
/// of `main`; [`serve_stdio_with`] tells why the server stopped.
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
    let stop = stop_signal()?;
    serve_io(&server, input(), output(), options, stop).await
}

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

#[cfg(unix)]
fn input() -> Reader {
    unix::input().unwrap_or_else(|| Box::new(tokio::io::stdin()))
}

#[cfg(unix)]
fn output() -> Writer {
    unix::output().unwrap_or_else(|| Box::new(tokio::io::stdout()))
}

#[cfg(not(unix))]
fn input() -> Reader {
    Box::new(tokio::io::stdin())
}

#[cfg(not(unix))]
fn output() -> Writer {
    Box::new(tokio::io::stdout())
}

/// Pipes and sockets, which is what clients give to their servers, can be waited for. Everything else (a terminal, a
/// file) is read and written by a thread, which takes longer.
#[cfg(unix)]
mod unix {
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    use std::os::unix::net::UnixStream as StdStream;

    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{Reader, Writer};

    pub(super) fn input() -> Option<Reader> {
        let (fd, metadata) = opened(io::stdin().as_fd())?;
        if metadata.file_type().is_fifo() {
            return Some(Box::new(pipe::Receiver::from_owned_fd(fd).ok()?));
        }
        metadata.file_type().is_socket().then(|| stream(fd)).flatten().map(|stream| Box::new(stream) as Reader)
    }

    pub(super) fn output() -> Option<Writer> {
        let (fd, metadata) = opened(io::stdout().as_fd())?;
        // What is shared with standard error must keep blocking: those who print there do not expect to be told to
        // come back later.
        let (_, other) = opened(io::stderr().as_fd())?;
        if (metadata.dev(), metadata.ino()) == (other.dev(), other.ino()) {
            return None;
        }
        if metadata.file_type().is_fifo() {
            return Some(Box::new(pipe::Sender::from_owned_fd(fd).ok()?));
        }
        metadata.file_type().is_socket().then(|| stream(fd)).flatten().map(|stream| Box::new(stream) as Writer)
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

/// Ready when the process is told to stop.
#[cfg(unix)]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut signals = [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    Ok(std::future::poll_fn(move |cx| {
        let is_told = signals.iter_mut().any(|signal| signal.poll_recv(cx).is_ready());
        if is_told { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    }))
}

#[cfg(not(unix))]
fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        // Without a way to be told, the server stops when its input ends.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
