//! Servers on sockets.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use mcp_server::{Network, Server};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};

use super::driver::serve_io;
use super::options::ServeOptions;

/// Serves every client that connects to a local TCP socket, until `stop` completes.
///
/// Clients are not authenticated, so only loopback addresses are accepted. When `stop` completes, connections are drained
/// as by [`serve_io`]. If the process lacks resources for a new connection, such as file descriptors, clients wait.
///
/// The first line that is not a JSON object closes the connection, as with [`serve_io`]: a web page can make a browser send
/// HTTP requests to local sockets, whose bodies would otherwise be read as messages.
///
/// # Errors
///
/// Returns an error if the socket is not bound to a loopback address, or if it cannot accept connections.
pub async fn serve_tcp(
    server: Server,
    listener: TcpListener,
    options: ServeOptions,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        let why = format!(
            "{address} can be reached from other machines, and clients are not authenticated: bind to 127.0.0.1 or ::1, \
             or serve HTTP with authorization"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    serve_each(server, options.network(Network::Tcp), stop, |cx| {
        listener.poll_accept(cx).map_ok(|(stream, _)| {
            // Small messages are sent at once.
            let _ = stream.set_nodelay(true);
            stream.into_split()
        })
    })
    .await
}

/// Serves every client that connects to a Unix socket, until `stop` completes. The permissions of the socket decide which
/// users can connect.
///
/// Otherwise it behaves like [`serve_tcp`].
///
/// # Errors
///
/// Returns an error if the socket cannot accept connections.
#[cfg(unix)]
pub async fn serve_unix(
    server: Server,
    listener: tokio::net::UnixListener,
    options: ServeOptions,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let options = options.network(Network::Unix);
    serve_each(server, options, stop, |cx| listener.poll_accept(cx).map_ok(|(stream, _)| stream.into_split())).await
}

/// Accepts connections, up to the maximum, and serves each in a task of its own.
async fn serve_each<R, W>(
    server: Server,
    options: ServeOptions,
    stop: impl Future<Output = ()>,
    mut accept: impl FnMut(&mut std::task::Context<'_>) -> Poll<io::Result<(R, W)>>,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let options = Arc::new(options);
    let (stopped, stopping) = watch::channel(false);
    let mut clients = JoinSet::new();
    let mut stop = pin!(stop);
    let mut retry_delay: Option<Pin<Box<Sleep>>> = None;
    let outcome = poll_fn(|cx| {
        loop {
            while let Poll::Ready(Some(_)) = clients.poll_join_next(cx) {}
            if stop.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if clients.len() >= options.max_connections {
                return Poll::Pending;
            }
            if let Some(retry_delay) = &mut retry_delay {
                ready!(retry_delay.as_mut().poll(cx));
            }
            retry_delay = None;
            match accept(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok((reader, writer))) => {
                    let (server, options, mut stopping) = (server.clone(), Arc::clone(&options), stopping.clone());
                    clients.spawn(async move {
                        let stop = async move { drop(stopping.wait_for(|stopped| *stopped).await) };
                        serve_io(&server, reader, writer, &options, stop).await
                    });
                }
                Poll::Ready(Err(error)) => match AcceptError::of(&error) {
                    AcceptError::Client => {}
                    AcceptError::Resources => retry_delay = Some(Box::pin(sleep(RETRY_DELAY))),
                    AcceptError::Socket => return Poll::Ready(Err(error)),
                },
            }
        }
    })
    .await;
    let _ = stopped.send(true);
    while clients.join_next().await.is_some() {}
    outcome
}

/// How long to wait before accepting again if there are no resources.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The kind of an error of accepting a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AcceptError {
    /// The client disconnected before; accept the next one.
    Client,
    /// The process lacks resources (file descriptors, memory), or the network is down. Accept again later, and keep serving
    /// the other clients.
    Resources,
    /// The socket cannot accept connections.
    Socket,
}

impl AcceptError {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a lack of room has no kind of its own")]
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => {
                Self::Client
            }
            // The socket does not listen.
            io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Self::Socket,
            _ => Self::Resources,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
    use tokio::time::Instant;

    use super::*;

    type Accepted = io::Result<(ReadHalf<DuplexStream>, WriteHalf<DuplexStream>)>;

    fn server() -> Server {
        Server::builder("test", "1.0").build().unwrap()
    }

    /// What a socket says if there is no room for a client: EMFILE and ENFILE, or WSAEMFILE and WSAENOBUFS.
    const NO_ROOM: [i32; 2] = if cfg!(windows) { [10024, 10055] } else { [24, 23] };

    #[tokio::test(start_paused = true)]
    async fn those_who_find_no_room_wait() {
        let (mut client, ours) = duplex(1024);
        let [process, machine] = NO_ROOM;
        let full = [process, machine, process].map(|code| Err(io::Error::from_raw_os_error(code)));
        let mut accepted: VecDeque<Accepted> = full.into();
        accepted.push_back(Err(io::ErrorKind::ConnectionAborted.into()));
        accepted.push_back(Err(io::ErrorKind::OutOfMemory.into()));
        accepted.push_back(Ok(split(ours)));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let begin = Instant::now();
        let talk = async move {
            client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await.unwrap();
            let mut response = [0; 1024];
            let read = client.read(&mut response).await.unwrap();
            assert!(response[..read].ends_with(b"\n"));
            let waited = begin.elapsed();
            drop(stop);
            assert_eq!(client.read(&mut response).await.unwrap(), 0, "it is drained");
            waited
        };
        let accept = |_: &mut std::task::Context<'_>| accepted.pop_front().map_or(Poll::Pending, Poll::Ready);
        let serve = serve_each(server(), ServeOptions::default(), async { drop(stopped.await) }, accept);
        let (outcome, waited) = tokio::join!(serve, talk);
        outcome.unwrap();
        assert!(waited >= 4 * RETRY_DELAY && waited < 5 * RETRY_DELAY, "{waited:?}");
    }

    /// A stop is heard while there is no room, too.
    #[tokio::test(start_paused = true)]
    async fn stopping_does_not_wait_for_room() {
        let begin = Instant::now();
        let accept = |_: &mut std::task::Context<'_>| Poll::Ready(Accepted::Err(io::ErrorKind::OutOfMemory.into()));
        serve_each(server(), ServeOptions::default(), sleep(RETRY_DELAY * 5 / 2), accept).await.unwrap();
        assert_eq!(begin.elapsed(), RETRY_DELAY * 5 / 2);
    }

    #[tokio::test]
    async fn a_socket_that_is_of_no_use() {
        for kind in [io::ErrorKind::InvalidInput, io::ErrorKind::Unsupported] {
            let accept = |_: &mut std::task::Context<'_>| Poll::Ready(Accepted::Err(kind.into()));
            let outcome = serve_each(server(), ServeOptions::default(), std::future::pending(), accept).await;
            assert_eq!(outcome.unwrap_err().kind(), kind);
        }
    }
}
