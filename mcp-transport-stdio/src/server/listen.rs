//! Servers for many clients, each on a socket of its own.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use mcp_server::Server;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::driver::serve_io;
use super::options::ServeOptions;

/// Serves every client that connects to a TCP socket of this machine, until `stop` is ready.
///
/// There is no way to tell who a client is, so only this machine may be listened to.
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
    let (stopped, stopping) = watch::channel(false);
    let mut clients = JoinSet::new();
    let mut stop = pin!(stop);
    let outcome = poll_fn(|cx| {
        loop {
            while let Poll::Ready(Some(_)) = clients.poll_join_next(cx) {}
            if stop.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if clients.len() >= options.connections {
                return Poll::Pending;
            }
            match accept(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok((reader, writer))) => {
                    let (server, options, mut stopping) = (server.clone(), Arc::clone(&options), stopping.clone());
                    clients.spawn(async move {
                        let stop = async move { drop(stopping.wait_for(|stopped| *stopped).await) };
                        serve_io(&server, reader, writer, &options, stop).await
                    });
                }
                // A client that left before it was accepted is no reason to stop.
                Poll::Ready(Err(error)) if is_the_clients(&error) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
    })
    .await;
    let _ = stopped.send(true);
    while clients.join_next().await.is_some() {}
    outcome
}

fn is_the_clients(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}
