//! A server that runs as a child process, and runs again if it dies.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_client::{Clock, Closed, Link, Lost, Transport, TransportKind};
use tokio::io::AsyncRead;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::{sleep, timeout};

use super::alarm::Alarm;
use super::restart::{Restart, Restarts};
use super::wire::{Ended, Wire};
use crate::child::{ChildProcess, Ladder, Spawn, SpawnError};
use crate::clock::now;
use crate::{DEFAULT_LINE_LIMIT, LineReader};

/// Talks to a server on the standard streams of a child process.
///
/// ```no_run
/// # async fn example() -> Result<(), mcp_client::Error> {
/// use mcp_client::Client;
/// use mcp_transport_stdio::{ChildTransport, Spawn};
///
/// let client = Client::connect(ChildTransport::new(Spawn::new("my-server").arg("--stdio"))).await?;
/// for tool in client.tools().all().await? {
///     println!("{}", tool.name);
/// }
/// client.close().await;
/// # Ok(())
/// # }
/// ```
///
/// ```text
///   start -- talk -- client closed ------------------------> stdin closed, SIGTERM, SIGKILL
///     ^        |
///     |     died, or hung up -- calls end -- too often ----> the client is closed, with the exit status
///     |        |
///     +---- wait a while
/// ```
///
/// - A server that died is started again, as [`Restart`] says. Calls that were open end with an error that says how it
///   died; whether they had an effect nobody knows, so they are not made again. Calls made in the meantime wait, and
///   those who listen do so again.
/// - A server that dies when it is asked whether it is modern is taken for a legacy one and started again once, whatever
///   [`Restart`] says. One that dies before it has ever been of use closes the client.
/// - A line that is no message, such as a stray `print`, is passed over.
/// - To close the client ends the process, with all that it started: [`Client::close`](mcp_client::Client::close) waits
///   for that. So does the end of the runtime, at once.
///
/// # Panics
///
/// A client that uses it panics outside of a tokio runtime with I/O and time enabled.
#[derive(Debug)]
pub struct ChildTransport {
    spawn: Spawn,
    ladder: Ladder,
    line_limit: usize,
    restart: Restart,
}

impl ChildTransport {
    /// Starts the server that `spawn` describes, as often as it takes.
    #[must_use]
    pub fn new(spawn: Spawn) -> Self {
        Self { spawn, ladder: Ladder::default(), line_limit: DEFAULT_LINE_LIMIT, restart: Restart::default() }
    }

    /// How long each step may take by which the server is ended.
    #[must_use]
    pub fn ladder(mut self, ladder: Ladder) -> Self {
        self.ladder = ladder;
        self
    }

    /// Sets the maximum number of bytes in a line of the server. A longer one is skipped, and the call that it was to
    /// answer ends with [`Error::TooLong`](mcp_client::Error::TooLong): that call if the id can be read, else every open
    /// one. Defaults to 16 MiB.
    #[must_use]
    pub fn line_limit(mut self, line_limit: usize) -> Self {
        self.line_limit = line_limit;
        self
    }

    /// How often a server that died is started again. Default: five times within a minute.
    #[must_use]
    pub fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    async fn supervise(mut self, mut link: Link) {
        let mut alarm = Alarm::default();
        let mut restarts = Restarts::new(self.restart);
        let mut has_died_of_probe = false;
        let mut process = match self.spawn.start() {
            Ok(process) => process,
            Err(error) => return link.closed(not_started(&error)),
        };
        loop {
            let Some((why, has_read)) = self.talk(process, &mut link, &mut alarm).await else {
                return link.closed(Closed::ByClient);
            };
            let delay = match if has_read { link.lost(&why) } else { link.lost_unread(&why) } {
                Lost::ForGood => return link.closed(why),
                // One that dies of that again has no excuse.
                Lost::OfTheProbe if !std::mem::replace(&mut has_died_of_probe, true) => Some(Duration::ZERO),
                Lost::OfTheProbe | Lost::Restartable => restarts.next(link.now()),
            };
            tracing::warn!(target: "mcp", %why, ?delay, "a server is gone, and started again unless that was too often");
            process = match self.start_again(why, delay, &mut restarts, &mut link, &mut alarm).await {
                Ok(process) => process,
                Err(why) => return link.closed(why),
            };
            link.restarted();
        }
    }

    /// Talks to a server until it is gone; returns how it ended and whether it may have read anything, or nothing if the
    /// client is closed.
    async fn talk(&self, mut process: ChildProcess, link: &mut Link, alarm: &mut Alarm) -> Option<(Closed, bool)> {
        let (Some(stdout), Some(stdin)) = (process.take_stdout(), process.take_stdin()) else {
            return Some((Closed::Lost("it has no standard streams".to_owned()), false));
        };
        let mut wire = Wire::new(stdout, stdin, self.line_limit);
        match wire.run(link, alarm, process.wait()).await {
            Ended::ByClient => {
                self.end(process, wire).await;
                None
            }
            Ended::Gone(_) => {
                let (stdin, written) = wire.written();
                let has_read = written > unread(stdin);
                drop(wire);
                let mut ending = pin!(bury(process, self.ladder));
                let ended = alarm.meanwhile(link, ending.as_mut()).await;
                let why = match ended {
                    Some(why) => why,
                    None => ending.await,
                };
                Some((why, has_read))
            }
        }
    }

    /// Ends a server that nobody needs any more.
    // IO-11
    async fn end(&self, process: ChildProcess, wire: Wire<ChildStdout, ChildStdin>) {
        // Whoever is about to end may have something to say, and must not be held up by that.
        let mut listening = pin!(discard(wire.hang_up().await));
        let mut ending = pin!(process.shutdown(self.ladder));
        let ended = poll_fn(|cx| {
            let _ = listening.as_mut().poll(cx);
            ending.as_mut().poll(cx)
        });
        if let Err(error) = ended.await {
            tracing::warn!(target: "mcp", %error, "a server could not be ended");
        }
    }

    /// Starts another server in place of one that is gone, after a while; fails if there is to be none.
    async fn start_again(
        &mut self,
        mut why: Closed,
        mut delay: Option<Duration>,
        restarts: &mut Restarts,
        link: &mut Link,
        alarm: &mut Alarm,
    ) -> Result<ChildProcess, Closed> {
        while let Some(wait) = delay {
            if alarm.meanwhile(link, sleep(wait)).await.is_none() {
                return Err(Closed::ByClient);
            }
            match self.spawn.start() {
                Ok(process) => return Ok(process),
                // It was there before, so it may be there again.
                Err(error) => (why, delay) = (not_started(&error), restarts.next(link.now())),
            }
        }
        Err(why)
    }
}

impl Transport for ChildTransport {
    fn kind(&self) -> TransportKind {
        TransportKind::Pipe
    }

    fn clock(&self) -> Clock {
        Arc::new(now)
    }

    fn start(self, link: Link) {
        tokio::spawn(self.supervise(link));
    }
}

/// Waits for the end of a server that has hung up, and sees to it; says how it ended.
async fn bury(mut process: ChildProcess, ladder: Ladder) -> Closed {
    match timeout(ladder.close, process.wait()).await {
        Ok(Ok(exited)) => Closed::Exited { status: exited.status.to_string() },
        Ok(Err(error)) => Closed::Lost(error.to_string()),
        Err(_) => match process.shutdown(ladder.with_close(Duration::ZERO)).await {
            Ok(status) => Closed::Exited { status: format!("it hung up, and was made to end ({status})") },
            Err(error) => Closed::Lost(error.to_string()),
        },
    }
}

/// How many bytes a server that is gone left unread; none where that is not known.
#[cfg(unix)]
fn unread(stdin: &ChildStdin) -> u64 {
    rustix::io::ioctl_fionread(stdin).unwrap_or(0)
}

#[cfg(not(unix))]
fn unread(_: &ChildStdin) -> u64 {
    0
}

/// Reads to the end, and never comes back.
async fn discard<R: AsyncRead + Unpin>(mut reader: LineReader<R>) {
    while let Ok(Some(_)) = reader.next().await {}
    pending().await
}

fn not_started(error: &SpawnError) -> Closed {
    Closed::Lost(format!("{error}: {}", error.source))
}
