//! The transport to a server in a child process, which restarts it if it exits.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_client::{Clock, CloseReason, Network, ServerLossAction, Transport, TransportHandle, TransportKind};
use tokio::io::AsyncRead;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{sleep, timeout};

use super::lines::{LineConnection, LinesEnd};
use super::restart::{RestartPolicy, Restarts};
use super::wake_timer::WakeTimer;
use crate::child::{ChildProcess, ServerCommand, ShutdownTimeouts, SpawnError};
use crate::clock::now;
use crate::framing::{DEFAULT_LINE_LIMIT, LineReader};

/// Connects a client to a server in a child process, on its standard streams.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), mcp_client::Error> {
/// use mcp_client::Client;
/// use mcp_transport_stdio::{ChildTransport, ServerCommand};
///
/// let client = Client::connect(ChildTransport::new(ServerCommand::new("my-server").arg("--stdio"))).await?;
/// for tool in client.tools().all().await? {
///     println!("{}", tool.name);
/// }
/// client.close().await;
/// # Ok(())
/// # }
/// ```
///
/// # Restarts
///
/// ```text
///   spawn -- connected -- client closed -------------------------> stdin closed, SIGTERM, SIGKILL
///     ^          |
///     |     exited, or closed its output -- calls fail -- limit --> client closed, with the exit status
///     |          |
///     +------- delay
/// ```
///
/// - A server that exits is restarted, as far as the [`RestartPolicy`] allows. Calls that were in flight fail with its exit
///   status and are not repeated, because the server may have executed them. Later calls wait for the restart, and
///   subscriptions are opened again.
/// - A server that exits when it is probed is taken for a legacy server and restarted once, regardless of the
///   [`RestartPolicy`]. A server that exits before the first connection is ready closes the client.
/// - A line that is not a message, such as debug output, is ignored.
/// - Closing the client stops the process and its descendants; [`Client::close`](mcp_client::Client::close) waits for that.
///   When the runtime ends, they are killed.
///
/// # Panics
///
/// Connecting panics outside of a tokio runtime with I/O and time enabled.
#[derive(Debug)]
#[must_use]
pub struct ChildTransport {
    command: ServerCommand,
    shutdown_timeouts: ShutdownTimeouts,
    line_limit: usize,
    restart_policy: RestartPolicy,
}

impl ChildTransport {
    /// Creates a transport that starts the server with `command`.
    pub fn new(command: ServerCommand) -> Self {
        Self {
            command,
            shutdown_timeouts: ShutdownTimeouts::default(),
            line_limit: DEFAULT_LINE_LIMIT,
            restart_policy: RestartPolicy::default(),
        }
    }

    /// Sets the timeouts for stopping the server. Defaults to [`ShutdownTimeouts::default`].
    pub fn shutdown_timeouts(mut self, timeouts: ShutdownTimeouts) -> Self {
        self.shutdown_timeouts = timeouts;
        self
    }

    /// Sets the maximum number of bytes in a line of the server. A longer line is skipped, and the call that it responds to
    /// fails with [`Error::ResponseTooLong`](mcp_client::Error::ResponseTooLong); if its id is unknown, all calls do.
    /// Defaults to 16 MiB.
    pub fn line_limit(mut self, line_limit: usize) -> Self {
        self.line_limit = line_limit;
        self
    }

    /// Sets how often a server that exited is restarted. Defaults to [`RestartPolicy::default`].
    pub fn restart_policy(mut self, policy: RestartPolicy) -> Self {
        self.restart_policy = policy;
        self
    }

    async fn supervise(mut self, mut handle: TransportHandle) {
        let mut timer = WakeTimer::default();
        let mut restarts = Restarts::new(self.restart_policy);
        let mut has_exited_on_probe = false;
        let mut process = match self.command.spawn() {
            Ok(process) => process,
            Err(error) => return handle.close(spawn_failed(&error)),
        };
        loop {
            let Some((why, has_read)) = self.run(process, &mut handle, &mut timer).await else {
                return handle.close(CloseReason::ByClient);
            };
            let delay =
                match if has_read { handle.handle_disconnect(&why) } else { handle.handle_disconnect_unread(&why) } {
                    ServerLossAction::Close => return handle.close(why),
                    // The restarted server was not probed, so another exit counts as any other.
                    ServerLossAction::RestartWithoutProbe if !std::mem::replace(&mut has_exited_on_probe, true) => {
                        Some(Duration::ZERO)
                    }
                    ServerLossAction::RestartWithoutProbe | ServerLossAction::MayRestart => restarts.next(handle.now()),
                };
            tracing::warn!(target: "mcp", %why, ?delay, "the server exited; it is restarted unless the limit is reached");
            process = match self.restart(why, delay, &mut restarts, &mut handle, &mut timer).await {
                Ok(process) => process,
                Err(why) => return handle.close(why),
            };
            handle.handle_restart();
        }
    }

    /// Runs a connection until the server exits; returns the reason, and whether the server may have read anything. `None`
    /// if the client is closed.
    async fn run(
        &self,
        mut process: ChildProcess,
        handle: &mut TransportHandle,
        timer: &mut WakeTimer,
    ) -> Option<(CloseReason, bool)> {
        let (Some(stdout), Some(stdin)) = (process.take_stdout(), process.take_stdin()) else {
            return Some((CloseReason::Disconnected("the server has no standard streams".to_owned()), false));
        };
        let mut lines = LineConnection::new(stdout, stdin, self.line_limit);
        match lines.run(handle, timer, process.wait()).await {
            LinesEnd::ByClient => {
                self.stop(process, lines).await;
                None
            }
            LinesEnd::Disconnected(_) => {
                let (stdin, written) = lines.written();
                let has_read = written > unread(stdin);
                drop(lines);
                let mut ending = pin!(wait_or_stop(process, self.shutdown_timeouts));
                let ended = timer.run_while(handle, ending.as_mut()).await;
                let why = match ended {
                    Some(why) => why,
                    None => ending.await,
                };
                Some((why, has_read))
            }
        }
    }

    /// Stops a server after the client was closed.
    // IO-11
    async fn stop(&self, process: ChildProcess, lines: LineConnection<ChildStdout, ChildStdin>) {
        // The output is read until the server exits, so that writing does not block it.
        let mut discarding = pin!(discard(lines.close_output().await));
        let mut ending = pin!(process.shutdown(self.shutdown_timeouts));
        let ended = poll_fn(|cx| {
            let _ = discarding.as_mut().poll(cx);
            ending.as_mut().poll(cx)
        });
        if let Err(error) = ended.await {
            tracing::warn!(target: "mcp", %error, "the server could not be stopped");
        }
    }

    /// Restarts the server after a delay; fails if the limit of restarts is reached.
    async fn restart(
        &mut self,
        mut why: CloseReason,
        mut delay: Option<Duration>,
        restarts: &mut Restarts,
        handle: &mut TransportHandle,
        timer: &mut WakeTimer,
    ) -> Result<ChildProcess, CloseReason> {
        while let Some(wait) = delay {
            if timer.run_while(handle, sleep(wait)).await.is_none() {
                return Err(CloseReason::ByClient);
            }
            match self.command.spawn() {
                Ok(process) => return Ok(process),
                // The program could be started before, so this may be temporary.
                Err(error) => (why, delay) = (spawn_failed(&error), restarts.next(handle.now())),
            }
        }
        Err(why)
    }
}

impl Transport for ChildTransport {
    fn kind(&self) -> TransportKind {
        TransportKind::Pipe
    }

    fn network(&self) -> Network {
        Network::Stdio
    }

    fn clock(&self) -> Clock {
        Arc::new(now)
    }

    fn start(self, handle: TransportHandle) {
        tokio::spawn(self.supervise(handle));
    }
}

/// Waits for a server that has closed its output to exit, or stops it; returns the exit status.
async fn wait_or_stop(mut process: ChildProcess, timeouts: ShutdownTimeouts) -> CloseReason {
    match timeout(timeouts.stdin_timeout, process.wait()).await {
        Ok(Ok(status)) => CloseReason::Exited { status: status.to_string() },
        Ok(Err(error)) => CloseReason::Disconnected(error.to_string()),
        Err(_) => match process.shutdown(timeouts.stdin_timeout(Duration::ZERO)).await {
            Ok(status) => CloseReason::Exited { status: format!("it closed its output, and was stopped ({status})") },
            Err(error) => CloseReason::Disconnected(error.to_string()),
        },
    }
}

/// Returns how many bytes the server has not read from its standard input; 0 if that is not known.
#[cfg(unix)]
fn unread(stdin: &ChildStdin) -> u64 {
    rustix::io::ioctl_fionread(stdin).unwrap_or(0)
}

#[cfg(not(unix))]
fn unread(_: &ChildStdin) -> u64 {
    0
}

/// Reads to the end, and then waits forever.
async fn discard<R: AsyncRead + Unpin>(mut reader: LineReader<R>) {
    while let Ok(Some(_)) = reader.next().await {}
    pending().await
}

fn spawn_failed(error: &SpawnError) -> CloseReason {
    CloseReason::Disconnected(format!("{error}: {}", error.source))
}
