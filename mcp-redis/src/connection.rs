//! A connection to Redis that reconnects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, PushInfo, PushKind, RedisError, Value};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::endpoint::Endpoint;
use crate::script::{Script, Scripts};
use mcp_session::StoreError;

/// Why a command failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// No response: the commands may or may not have been executed.
    NoResponse(String),
    /// Redis refused a command.
    Refused {
        /// Whether it may succeed later.
        is_temporary: bool,
        text: String,
    },
}

/// One connection, which is re-established when it breaks. Commands are pipelined.
pub(crate) struct Connection {
    endpoint: Endpoint,
    limit: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connected: Option<Connected>,
    backoff: Backoff,
    /// The earliest time of the next attempt, and the failure of the last one.
    failed: Option<(Instant, Failure)>,
}

#[derive(Clone)]
struct Connected {
    connection: MultiplexedConnection,
    scripts: Scripts,
    is_closed: Arc<AtomicBool>,
}

impl Connection {
    pub(crate) fn new(endpoint: Endpoint, limit: Duration) -> Self {
        Self { endpoint, limit, state: Mutex::default() }
    }

    /// Executes idempotent commands, which are retried once if the connection breaks.
    pub(crate) async fn execute_idempotent_pipeline(
        &self,
        commands: impl Fn(&Scripts) -> Pipeline,
    ) -> Result<Vec<Result<Value, Failure>>, Failure> {
        let deadline = Instant::now() + self.limit;
        match self.attempt(deadline, &commands).await {
            Err(Failure::NoResponse(_)) if Instant::now() < deadline => self.attempt(deadline, &commands).await,
            result => result,
        }
    }

    /// Executes commands at most once, with additional time.
    pub(crate) async fn execute_pipeline(
        &self,
        more: Duration,
        commands: impl Fn(&Scripts) -> Pipeline,
    ) -> Result<Vec<Result<Value, Failure>>, Failure> {
        self.attempt(Instant::now() + self.limit + more, &commands).await
    }

    /// Executes one command at most once.
    pub(crate) async fn execute(&self, command: impl Fn(&Scripts) -> Cmd) -> Result<Value, Failure> {
        only_result(self.execute_pipeline(Duration::ZERO, |scripts| pipeline([command(scripts)])).await?)
    }

    /// Executes one idempotent command.
    pub(crate) async fn execute_idempotent(&self, command: impl Fn(&Scripts) -> Cmd) -> Result<Value, Failure> {
        only_result(self.execute_idempotent_pipeline(|scripts| pipeline([command(scripts)])).await?)
    }

    async fn attempt(
        &self,
        deadline: Instant,
        commands: &impl Fn(&Scripts) -> Pipeline,
    ) -> Result<Vec<Result<Value, Failure>>, Failure> {
        let mut connected = self.connected(deadline).await?;
        let first = commands(&connected.scripts);
        let results = self.send(deadline, &mut connected, &first).await?;
        // Redis forgot a script, which had no effect then; the commands that were sent with it are idempotent.
        if results.iter().any(|result| result.as_ref().is_err_and(is_unknown_script)) {
            return self.send(deadline, &mut connected, &commands(&Scripts::Source)).await.map(failures);
        }
        Ok(failures(results))
    }

    async fn send(
        &self,
        deadline: Instant,
        connected: &mut Connected,
        commands: &Pipeline,
    ) -> Result<Vec<Result<Value, RedisError>>, Failure> {
        type Results = Vec<Result<Value, RedisError>>;
        let error = match timeout_at(deadline, commands.query_async::<Results>(&mut connected.connection)).await {
            Ok(Ok(results)) => {
                if results.iter().any(|result| result.as_ref().is_err_and(is_elsewhere)) {
                    connected.is_closed.store(true, Ordering::Relaxed);
                }
                return Ok(results);
            }
            Ok(Err(error)) => error.into(),
            Err(_) => self.timed_out(),
        };
        // Later responses on this connection could belong to other commands.
        connected.is_closed.store(true, Ordering::Relaxed);
        Err(error)
    }

    /// The current connection, or a new one.
    async fn connected(&self, deadline: Instant) -> Result<Connected, Failure> {
        let mut state = timeout_at(deadline, self.state.lock()).await.map_err(|_| self.timed_out())?;
        if let Some(connected) = &state.connected {
            if !connected.is_closed.load(Ordering::Relaxed) {
                return Ok(connected.clone());
            }
            state.connected = None;
        }
        if let Some((next, cause)) = &state.failed
            && Instant::now() < *next
        {
            return Err(cause.clone());
        }
        let failure = match timeout_at(deadline, connect(&self.endpoint)).await {
            Ok(Ok(connected)) => {
                state.connected = Some(connected.clone());
                state.backoff = Backoff::default();
                state.failed = None;
                return Ok(connected);
            }
            Ok(Err(error)) => Failure::from(error),
            Err(_) => self.timed_out(),
        };
        state.failed = Some((Instant::now() + state.backoff.next(), failure.clone()));
        Err(failure)
    }

    fn timed_out(&self) -> Failure {
        Failure::NoResponse(format!("no response within {:?}", self.limit))
    }
}

async fn connect(endpoint: &Endpoint) -> Result<Connected, RedisError> {
    let is_closed = Arc::new(AtomicBool::new(false));
    let closed = is_closed.clone();
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_concurrency_limit(CONCURRENT_COMMANDS)
        .set_push_sender(move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                closed.store(true, Ordering::Relaxed);
            }
            Ok::<_, std::convert::Infallible>(())
        });
    let mut connection = endpoint.connect(&config).await?;
    let mut load = Pipeline::new();
    for script in Script::ALL {
        load.cmd("SCRIPT").arg("LOAD").arg(script.source());
    }
    let scripts = Scripts::Loaded(load.query_async::<Vec<String>>(&mut connection).await?.into());
    Ok(Connected { connection, scripts, is_closed })
}

/// A pipeline of commands with separate results.
pub(crate) fn pipeline(commands: impl IntoIterator<Item = Cmd>) -> Pipeline {
    let mut pipeline = Pipeline::new();
    pipeline.ignore_errors();
    for command in commands {
        pipeline.add_command(command);
    }
    pipeline
}

fn only_result(results: Vec<Result<Value, Failure>>) -> Result<Value, Failure> {
    results
        .into_iter()
        .next()
        .unwrap_or_else(|| Err(Failure::NoResponse("there was no response to the command".to_owned())))
}

fn failures(results: Vec<Result<Value, RedisError>>) -> Vec<Result<Value, Failure>> {
    results.into_iter().map(|result| result.map_err(Failure::from)).collect()
}

fn is_unknown_script(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT")
}

/// Whether another server has the data now.
fn is_elsewhere(error: &RedisError) -> bool {
    error.code().is_some_and(|code| ELSEWHERE.contains(&code))
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        let text = error.to_string();
        match (error.kind(), error.code()) {
            (ErrorKind::Server(_) | ErrorKind::Extension, Some(code)) => {
                Self::Refused { is_temporary: TEMPORARY.contains(&code) || ELSEWHERE.contains(&code), text }
            }
            (ErrorKind::AuthenticationFailed, _) => Self::Refused { is_temporary: true, text },
            _ => Self::NoResponse(text),
        }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NoResponse(text) => Self(format!("Redis does not respond: {text}")),
            Failure::Refused { text, .. } => Self(format!("Redis refused the command: {text}")),
        }
    }
}

/// The exponential backoff between attempts, with jitter.
#[derive(Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    pub(crate) fn next(&mut self) -> Duration {
        let backoff = MAX_BACKOFF.min(MIN_BACKOFF * (1 << self.0));
        self.0 = (self.0 + 1).min(8);
        let mut random = [0];
        // Without randomness there is no jitter, which is no reason to fail.
        let _ = getrandom::fill(&mut random);
        backoff / 2 + backoff / 2 * u32::from(random[0]) / 255
    }
}

const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);

/// The maximum number of commands in flight; others wait within their timeout.
const CONCURRENT_COMMANDS: usize = 1024;

/// The temporary errors of Redis: it starts, has no memory left, or cannot write to its disk.
const TEMPORARY: [&str; 8] =
    ["LOADING", "BUSY", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "MISCONF", "OOM", "CLUSTERDOWN"];

/// The errors of a server that became a replica, or gave its slots to another node of the cluster.
const ELSEWHERE: [&str; 3] = ["READONLY", "MOVED", "ASK"];
