//! The task that publishes messages.

use std::sync::Arc;

use redis::Pipeline;
use tokio::time::{Duration, sleep};

use crate::bus::outbox::{Batch, Outbox};
use crate::connection::{Backoff, Connection, Failure, pipeline};
use crate::keys::Keys;
use crate::script::{Script, Scripts};

pub(crate) struct Sender {
    pub(crate) connection: Connection,
    pub(crate) keys: Keys,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) origin: String,
}

/// What follows the number and the origin of a message: its content, or nothing, because messages were lost.
pub(crate) const CONTENT: u8 = b'm';
pub(crate) const LOST: u8 = b'g';

impl Sender {
    /// Publishes until all handles are dropped and the queue is empty.
    pub(crate) async fn run(self) {
        while let Some(batch) = self.outbox.next().await {
            let Some(has_refused) = self.publish(&batch).await else { break };
            self.outbox.finish(has_refused);
        }
    }

    /// Publishes a batch, and retries until it succeeds, so that messages may arrive twice. Returns whether Redis refused one, or
    /// `None` if all handles were dropped.
    async fn publish(&self, batch: &Batch) -> Option<bool> {
        let mut backoff = Backoff::default();
        let mut is_unavailable = false;
        loop {
            let failure = match self.attempt(batch).await {
                Ok(has_refused) => {
                    if is_unavailable {
                        tracing::info!("Redis accepts changes again");
                    }
                    if has_refused {
                        // Not at once, as the next attempt to tell the others may be refused, too.
                        sleep(backoff.next()).await;
                    }
                    return Some(has_refused);
                }
                Err(failure) => failure,
            };
            if self.outbox.is_closed() {
                tracing::warn!(
                    changes = batch.messages.len(),
                    ?failure,
                    "Redis does not accept changes at shutdown; they are lost"
                );
                return None;
            }
            if !is_unavailable {
                tracing::warn!(?failure, "Redis does not accept changes; they stay in the queue");
                is_unavailable = true;
            }
            sleep(backoff.next()).await;
        }
    }

    /// Publishes a batch once; returns whether Redis refused some of it.
    async fn attempt(&self, batch: &Batch) -> Result<bool, Failure> {
        let bytes: usize = batch.messages.iter().map(|message| message.len()).sum();
        // A second more for each megabyte, so that large batches succeed over slow connections.
        let more = Duration::from_micros(bytes as u64);
        let results = self.connection.execute_pipeline(more, |scripts| self.commands(batch, scripts)).await?;
        let mut has_refused = false;
        for result in results {
            match result {
                Ok(_) => {}
                Err(Failure::Refused { is_temporary: false, text }) => {
                    tracing::warn!(text, "Redis refused a change");
                    has_refused = true;
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(has_refused)
    }

    fn commands(&self, batch: &Batch, scripts: &Scripts) -> Pipeline {
        let lost = batch.has_lost.then(|| self.message(LOST, &[]));
        let messages = lost.into_iter().chain(batch.messages.iter().map(|message| self.message(CONTENT, message)));
        pipeline(messages.map(|message| {
            let mut command = scripts.call(Script::Publish, 1);
            command.arg(self.keys.bus_number()).arg(self.keys.bus()).arg(message);
            command
        }))
    }

    fn message(&self, kind: u8, content: &[u8]) -> Vec<u8> {
        [self.origin.as_bytes(), b":", &[kind], content].concat()
    }
}
