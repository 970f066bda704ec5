//! Servers for many clients, each on a socket of its own.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use mcp_server::Server;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep};

use super::driver::serve_io;
use super::options::ServeOptions;

/// Serves every client that connects to a TCP socket of this machine, until `stop` is ready.
///
/// There is no way to tell who a client is, so only this machine may be listened to. Clients that are there when `stop`
/// becomes ready are served to their end, as [`serve_io`] does. If the process has no room for one more, such as for its
/// file descriptor, clients wait until it has.
///
/// The first line of a client that is not a JSON object ends its connection, as with [`serve_io`]: a web page can have a
/// browser send HTTP requests to this machine, whose bodies would otherwise be read as messages.
///
/// # Errors
///
/// Fails if the socket is not bound to a loopback address, or if it cannot be used.
pub async fn serve_tcp(
    server: Server,
    listener: TcpListener,
    options: ServeOptions,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        let why = format!(
            "{address} can be reached from other machines, and nobody is asked who they are: bind to 127.0.0.1 or ::1, \
             or serve HTTP with authorization"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    serve_each(server, options, stop, |cx| {
        listener.poll_accept(cx).map_ok(|(stream, _)| {
            // Small messages must not wait for each other.
            let _ = stream.set_nodelay(true);
            stream.into_split()
        })
    })
    .await
}

/// Serves every client that connects to a Unix socket, until `stop` is ready. Whoever may open the socket is served.
///
/// Its end, a lack of room and lines that are not JSON objects are as with [`serve_tcp`].
///
/// # Errors
///
/// Fails if the socket cannot be used.
#[cfg(unix)]
pub async fn serve_unix(
    server: Server,
    listener: tokio::net::UnixListener,
    options: ServeOptions,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_each(server, options, stop, |cx| listener.poll_accept(cx).map_ok(|(stream, _)| stream.into_split())).await
}

/// Accepts clients, as many as may be there at once, and serves each in a task of its own.
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
    let most = options.connections.max(1);
    let (stopped, stopping) = watch::channel(false);
    let mut clients = JoinSet::new();
    let mut stop = pin!(stop);
    let mut pause: Option<Pin<Box<Sleep>>> = None;
    let outcome = poll_fn(|cx| {
        loop {
            while let Poll::Ready(Some(_)) = clients.poll_join_next(cx) {}
            if stop.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if clients.len() >= most {
                return Poll::Pending;
            }
            if let Some(pause) = &mut pause {
                ready!(pause.as_mut().poll(cx));
            }
            pause = None;
            match accept(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok((reader, writer))) => {
                    let (server, options, mut stopping) = (server.clone(), Arc::clone(&options), stopping.clone());
                    clients.spawn(async move {
                        let stop = async move { drop(stopping.wait_for(|stopped| *stopped).await) };
                        serve_io(&server, reader, writer, &options, stop).await
                    });
                }
                Poll::Ready(Err(error)) => match Fault::of(&error) {
                    Fault::Client => {}
                    Fault::Machine => pause = Some(Box::pin(sleep(PAUSE))),
                    Fault::Socket => return Poll::Ready(Err(error)),
                },
            }
        }
    })
    .await;
    let _ = stopped.send(true);
    while clients.join_next().await.is_some() {}
    outcome
}

/// How long to wait for room before the next client is accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// Whose fault it is that a client was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It left before; the next one may be better.
    Client,
    /// There is no room for it (file descriptors, memory), or no network just now. That passes; those who are served
    /// must not suffer from it.
    Machine,
    /// Nobody can be accepted on it, ever.
    Socket,
}

impl Fault {
    #[expect(clippy::wildcard_enum_match_arm, reason = "a lack of room has no kind of its own")]
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => {
                Self::Client
            }
            // It does not listen, or is not of a kind that could.
            io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Self::Socket,
            _ => Self::Machine,
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
            let mut answer = [0; 1024];
            let read = client.read(&mut answer).await.unwrap();
            assert!(answer[..read].ends_with(b"\n"));
            let waited = begin.elapsed();
            drop(stop);
            assert_eq!(client.read(&mut answer).await.unwrap(), 0, "it is drained");
            waited
        };
        let accept = |_: &mut std::task::Context<'_>| accepted.pop_front().map_or(Poll::Pending, Poll::Ready);
        let serve = serve_each(server(), ServeOptions::default(), async { drop(stopped.await) }, accept);
        let (outcome, waited) = tokio::join!(serve, talk);
        outcome.unwrap();
        assert!(waited >= 4 * PAUSE && waited < 5 * PAUSE, "{waited:?}");
    }

    /// A stop is heard while there is no room, too.
    #[tokio::test(start_paused = true)]
    async fn stopping_does_not_wait_for_room() {
        let begin = Instant::now();
        let accept = |_: &mut std::task::Context<'_>| Poll::Ready(Accepted::Err(io::ErrorKind::OutOfMemory.into()));
        serve_each(server(), ServeOptions::default(), sleep(PAUSE * 5 / 2), accept).await.unwrap();
        assert_eq!(begin.elapsed(), PAUSE * 5 / 2);
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
