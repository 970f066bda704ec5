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
    pub(crate) limits: StreamLimits,
}

/// The limits of streams in Redis.
pub(crate) struct StreamLimits {
    events: usize,
    bytes: usize,
    streams: usize,
    time_to_live: u64,
}

impl From<&RedisOptions> for StreamLimits {
    fn from(options: &RedisOptions) -> Self {
        Self {
            events: options.max_stream_events,
            bytes: options.max_stream_bytes,
            streams: options.max_session_streams,
            time_to_live: milliseconds(options.stream_timeout),
        }
    }
}

impl Writer {
    /// Writes until nobody is left who could send events, and all that they sent is written.
    pub(crate) async fn run(self) {
        let closing = CloseOnDrop(&self.queue);
        while let Some(batch) = self.queue.next().await {
            let Some(refused) = self.write(&batch).await else { break };
            self.queue.finish(&batch, &refused);
        }
        drop(closing);
    }

    /// Writes a batch, however long it takes; returns what Redis would not have, or nothing if nobody cares any more.
    async fn write(&self, batch: &Batch) -> Option<Vec<usize>> {
        let mut backoff = Backoff::default();
        let mut is_away = false;
        let epoch = self.epoch().await;
        loop {
            let failure = match self.attempt(batch, &epoch).await {
                Ok(refused) => {
                    if is_away {
                        tracing::info!(dropped = self.queue.dropped(), "Redis accepts events again");
                    }
                    return Some(refused);
                }
                Err(failure) => failure,
            };
            if self.queue.is_closed() {
                tracing::warn!(
                    events = batch.items.len(),
                    ?failure,
                    "events are lost at the end, Redis does not take them"
                );
                return None;
            }
            if !is_away {
                tracing::warn!(?failure, "Redis does not accept events; they stay in the queue");
                is_away = true;
            }
            sleep(backoff.next()).await;
        }
    }

    /// A name that no epoch has had, however long the system takes to find one.
    async fn epoch(&self) -> String {
        let mut bytes = [0; 16];
        while getrandom::fill(&mut bytes).is_err() {
            sleep(Duration::from_secs(1)).await;
        }
        hex(&bytes)
    }

    /// Writes a batch; returns the items that Redis will never have.
    async fn attempt(&self, batch: &Batch, epoch: &str) -> Result<Vec<usize>, Failure> {
        // A second more for each megabyte, or what is large would never get through a line that is slow.
        let more = Duration::from_micros(batch.bytes() as u64);
        let results = self.connection.once(more, |scripts| self.commands(batch, epoch, scripts)).await?;
        let first = results.len().saturating_sub(batch.items.len());
        let mut refused = Vec::new();
        for (index, result) in results.into_iter().enumerate() {
            match result {
                Ok(_) => {}
                Err(Failure::Refused { for_now: false, text }) => {
                    tracing::warn!(text, "Redis refused an event");
                    refused.extend(index.checked_sub(first));
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(refused)
    }

    fn commands(&self, batch: &Batch, epoch: &str, scripts: &Scripts) -> Pipeline {
        let distrust = batch.distrusts_all.then(|| redis::cmd("SET").arg(self.keys.epoch()).arg(epoch).to_owned());
        let forget = batch.forgotten.iter().map(|session| {
            let mut command = scripts.call(Script::Forget, 1);
            command.arg(self.keys.events(*session)).arg(ENDED);
            command
        });
        let lose = batch.lost.iter().map(|((session, stream), number)| {
            let mut command = self.call(scripts, Script::Lose, &self.keys.events(*session), *stream);
            command.arg(padded(*number));
            command
        });
        let append = batch.items.iter().map(|item| self.append(scripts, item));
        pipeline(distrust.into_iter().chain(forget).chain(lose).chain(append))
    }

    fn append(&self, scripts: &Scripts, item: &Item) -> Cmd {
        let number = item.event.number;
        let previous = match item.previous {
            Previous::None => String::new(),
            Previous::Number(number) => padded(number),
            Previous::Forgotten => "?".to_owned(),
        };
        let mut command = self.call(scripts, Script::Append, &self.keys.events(item.session), item.stream);
        command.arg(padded(number)).arg(number).arg(previous);
        command.arg(number.checked_sub(1).map_or_else(String::new, padded));
        command.arg(&*item.event.message).arg(self.limits.events).arg(self.limits.bytes);
        command
    }

    /// What the scripts begin with that write to a stream.
    fn call(&self, scripts: &Scripts, script: Script, events: &str, stream: u64) -> Cmd {
        let mut command = scripts.call(script, 2);
        command.arg(events).arg(self.keys.epoch());
        command.arg(stream).arg(self.limits.time_to_live).arg(self.limits.streams);
        command
    }
}

/// How many milliseconds it is remembered that a session has ended: far longer than any process takes to hear of it.
const ENDED: u64 = 10 * 60 * 1000;

/// Numbers that are in order as texts.
pub(crate) fn padded(number: u64) -> String {
    format!("{number:020}")
}

/// When the writer ends, for whatever reason, nobody must wait for it.
struct CloseOnDrop<'a>(&'a Queue);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
