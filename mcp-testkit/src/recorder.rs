//! An observer that records what it receives.

use std::sync::{Arc, Mutex, PoisonError};

use mcp_kernel::observe::{MetricSource, Observation, Observer, Operation, Role, Session, SourceMetric};

/// An [`Observer`] that records observations as text, and counts what has started and not ended. Clones share everything.
///
/// An operation is recorded as `server start tools/call`, and `server end tools/call add: Completed`; a session in the same
/// way, and everything else as its `Debug` output.
///
/// # Examples
///
/// ```
/// use mcp_server::types::Revision;
/// use mcp_server::Server;
/// use mcp_testkit::{Recorder, ScriptedClient};
///
/// let recorder = Recorder::default();
/// let server = Server::builder("demo", "1.0").observer(recorder.observer()).build()?;
/// let mut client = ScriptedClient::new(&server, Revision::V2025_11_25);
/// recorder.take();
/// client.call("ping", serde_json::json!({}));
/// assert_eq!(recorder.take(), ["server start ping", "server end ping: Completed"]);
/// # Ok::<(), mcp_server::BuildError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Recorder(Arc<Mutex<Recorded>>);

#[derive(Default)]
struct Recorded {
    observations: Vec<String>,
    operations: i64,
    sessions: i64,
    queued: i64,
    streams: i64,
    sources: Vec<Arc<dyn MetricSource>>,
}

impl Recorder {
    /// Returns an observer that records here.
    #[must_use]
    pub fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(self.clone())
    }

    /// Returns the observations since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        self.with(|recorded| std::mem::take(&mut recorded.observations))
    }

    /// Returns the number of operations that have started and not ended.
    #[must_use]
    pub fn operations(&self) -> i64 {
        self.with(|recorded| recorded.operations)
    }

    /// Returns the number of sessions that have started and not ended.
    #[must_use]
    pub fn sessions(&self) -> i64 {
        self.with(|recorded| recorded.sessions)
    }

    /// Returns the number of requests that wait for others.
    #[must_use]
    pub fn queued(&self) -> i64 {
        self.with(|recorded| recorded.queued)
    }

    /// Returns the number of streams that were opened and not closed.
    #[must_use]
    pub fn streams(&self) -> i64 {
        self.with(|recorded| recorded.streams)
    }

    /// Returns the current value of a metric, summed over all sources.
    #[must_use]
    pub fn metric(&self, metric: SourceMetric) -> u64 {
        let sources = self.with(|recorded| recorded.sources.clone());
        let mut sum = 0;
        for source in sources {
            source.read(&mut |read, value| sum += if read == metric { value } else { 0 });
        }
        sum
    }

    fn with<R>(&self, access: impl FnOnce(&mut Recorded) -> R) -> R {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Recorder {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are recorded as they are")]
    fn observe(&self, observation: &Observation<'_>) {
        self.with(|recorded| {
            let text = match observation {
                Observation::OperationStarted(operation) => {
                    recorded.operations += 1;
                    format!("{} start {}", role(operation.role), named(operation))
                }
                Observation::OperationEnded(operation, end) => {
                    recorded.operations -= i64::from(!operation.is_notification);
                    format!("{} end {}: {:?}", role(operation.role), named(operation), end.outcome)
                }
                Observation::SessionStarted(session) => {
                    recorded.sessions += 1;
                    format!("{} start {}", role(session.role), kind(session))
                }
                Observation::SessionEnded(session, end) => {
                    recorded.sessions -= 1;
                    format!("{} end {}: {}", role(session.role), kind(session), end.error.unwrap_or("Completed"))
                }
                other => {
                    match other {
                        Observation::Queued(change) => recorded.queued += change,
                        Observation::StreamOpened(_) => recorded.streams += 1,
                        Observation::StreamClosed(_) => recorded.streams -= 1,
                        _ => {}
                    }
                    format!("{other:?}")
                }
            };
            recorded.observations.push(text);
        });
    }

    fn watch(&self, source: Arc<dyn MetricSource>) {
        self.with(|recorded| recorded.sources.push(source));
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Server => "server",
    }
}

fn named(operation: &Operation<'_>) -> String {
    let method = operation.method.as_str();
    operation.target.map_or_else(|| method.to_owned(), |target| format!("{method} {target}"))
}

fn kind(session: &Session) -> &'static str {
    if session.is_lasting { "session" } else { "single request" }
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorded").field("observations", &self.observations).finish_non_exhaustive()
    }
}
