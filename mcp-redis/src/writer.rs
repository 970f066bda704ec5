//! The task that writes events to Redis.

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Pipeline};
use tokio::time::sleep;

use crate::connection::{Backoff, Connection, Failure, pipeline};
use crate::keys::{Keys, hex};
use crate::queue::{Batch, Item, Previous, Queue};
use crate::script::{Script, Scripts};
use crate::{RedisOptions, milliseconds};

pub(crate) struct Writer {
    pub(crate) connection: Connection,
    pub(crate) queue: Arc<Queue>,
    pub(crate) keys: Keys,
    pub(crate) options: RedisOptions,
}

impl Writer {
    /// Writes until all handles are dropped and the queue is empty.
    pub(crate) async fn run(self) {
        let closing = CloseOnDrop(&self.queue);
        while let Some(batch) = self.queue.next().await {
            let Some(refused) = self.write(&batch).await else { break };
            self.queue.finish(&batch, &refused);
        }
        drop(closing);
    }

    /// Writes a batch, and retries until it succeeds. Returns the items that Redis refused, or `None` if the queue was closed.
    async fn write(&self, batch: &Batch) -> Option<Vec<usize>> {
        let mut backoff = Backoff::default();
        let mut is_unavailable = false;
        let epoch = self.epoch().await;
        loop {
            let failure = match self.attempt(batch, &epoch).await {
                Ok(refused) => {
                    if is_unavailable {
                        tracing::info!(dropped = self.queue.dropped().count(), "Redis accepts events again");
                    }
                    return Some(refused);
                }
                Err(failure) => failure,
            };
            if self.queue.is_closed() {
                tracing::warn!(
                    events = batch.items.len(),
                    ?failure,
                    "Redis does not accept events at shutdown; they are lost"
                );
                return None;
            }
            if !is_unavailable {
                tracing::warn!(?failure, "Redis does not accept events; they stay in the queue");
                is_unavailable = true;
            }
            sleep(backoff.next()).await;
        }
    }

    /// Creates a random name for an epoch, and retries until the random source succeeds.
    async fn epoch(&self) -> String {
        let mut bytes = [0; 16];
        while getrandom::fill(&mut bytes).is_err() {
            sleep(Duration::from_secs(1)).await;
        }
        hex(&bytes)
    }

    /// Writes a batch once; returns the items that Redis refused.
    async fn attempt(&self, batch: &Batch, epoch: &str) -> Result<Vec<usize>, Failure> {
        // A second more for each megabyte, so that large batches succeed over slow connections.
        let more = Duration::from_micros(batch.bytes() as u64);
        let results = self.connection.execute_pipeline(more, |scripts| self.commands(batch, epoch, scripts)).await?;
        let first = results.len().saturating_sub(batch.items.len());
        let mut refused = Vec::new();
        for (index, result) in results.into_iter().enumerate() {
            match result {
                Ok(_) => {}
                Err(Failure::Refused { is_temporary: false, text }) => {
                    tracing::warn!(text, "Redis refused an event");
                    refused.extend(index.checked_sub(first));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(refused)
    }

    fn commands(&self, batch: &Batch, epoch: &str, scripts: &Scripts) -> Pipeline {
        let invalidate = batch.invalidates_all.then(|| redis::cmd("SET").arg(self.keys.epoch()).arg(epoch).to_owned());
        let forget = batch.forgotten.iter().map(|session| {
            let mut command = scripts.call(Script::Forget, 1);
            command.arg(self.keys.events(*session)).arg(ENDED_MILLISECONDS);
            command
        });
        let lose = batch.lost.iter().map(|((session, stream), number)| {
            let mut command = self.call(scripts, Script::Lose, &self.keys.events(*session), *stream);
            command.arg(padded(*number));
            command
        });
        let append = batch.items.iter().map(|item| self.append(scripts, item));
        pipeline(invalidate.into_iter().chain(forget).chain(lose).chain(append))
    }

    fn append(&self, scripts: &Scripts, item: &Item) -> Cmd {
        let number = item.event.number;
        let previous = match item.previous {
            Previous::None => String::new(),
            Previous::Number(number) => padded(number),
            Previous::Evicted => "?".to_owned(),
        };
        let mut command = self.call(scripts, Script::Append, &self.keys.events(item.session), item.stream);
        command.arg(padded(number)).arg(number).arg(previous);
        command.arg(number.checked_sub(1).map_or_else(String::new, padded));
        command.arg(&*item.event.message).arg(self.options.max_stream_events).arg(self.options.max_stream_bytes);
        command
    }

    /// Returns a call of a script that writes to a stream, with the arguments that all of these have.
    fn call(&self, scripts: &Scripts, script: Script, events: &str, stream: u64) -> Cmd {
        let mut command = scripts.call(script, 2);
        command.arg(events).arg(self.keys.epoch());
        command.arg(stream).arg(milliseconds(self.options.stream_timeout)).arg(self.options.max_session_streams);
        command
    }
}

/// How many milliseconds the end of a session is recorded: longer than any process takes to notice it.
const ENDED_MILLISECONDS: u64 = 10 * 60 * 1000;

/// Formats a number so that numbers sort like their texts.
pub(crate) fn padded(number: u64) -> String {
    format!("{number:020}")
}

/// Closes the queue when the writer ends for any reason, so that no caller waits for it.
struct CloseOnDrop<'a>(&'a Queue);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
