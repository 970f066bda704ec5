//! The event store.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use redis::Value;
use tokio::time::timeout;

use crate::Shared;
use crate::record::invalid;
use crate::script::{Script, Scripts};
use mcp_session::{EventStore, MetricSource, Replay, SessionId, StoreError, StoredEvent, async_trait};

/// An [`EventStore`] in Redis, so that all instances can replay events; created by [`Redis::events`](crate::Redis::events).
///
/// One task writes the events from a queue. While Redis is unavailable the queue fills, and then events are
/// [dropped](Self::dropped). Of a stream with dropped events, only the later events are replayed.
#[derive(Clone)]
pub struct RedisEventStore {
    pub(crate) shared: Arc<Shared>,
}

impl RedisEventStore {
    /// Returns the number of events that were dropped because the queue was full, or because Redis refused them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.shared.queue.dropped().count()
    }

    /// Returns the number of events in the queue, and their bytes.
    #[must_use]
    pub fn queued(&self) -> (usize, usize) {
        self.shared.queue.queued()
    }

    /// Waits until everything that was appended or removed so far is written to Redis, or dropped. A process that exits
    /// without it loses the events in the queue.
    ///
    /// # Errors
    ///
    /// Returns an error after the [timeout](crate::RedisOptions::command_timeout), or if the runtime of the connection has shut
    /// down.
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.shared.flush().await
    }
}

#[async_trait]
impl EventStore for RedisEventStore {
    fn append(&self, session: SessionId, stream: u64, event: StoredEvent) {
        self.shared.queue.append(session, stream, event);
    }

    async fn replay(&self, session: SessionId, stream: u64, after: u64) -> Result<Replay, StoreError> {
        self.shared.flush().await?;
        let key = format!("{}:{stream}", self.shared.keys.events(session));
        let replay = |scripts: &Scripts| {
            let mut command = scripts.call(Script::Replay, 3);
            command.arg(&key).arg(format!("{key}:meta")).arg(self.shared.keys.epoch()).arg(after);
            command
        };
        decode(self.shared.commands.execute_idempotent(replay).await?, after)
    }

    fn forget(&self, session: SessionId) {
        self.shared.queue.forget(session);
    }

    fn metrics(&self) -> Option<Arc<dyn MetricSource>> {
        Some(self.shared.queue.dropped().source())
    }
}

impl fmt::Debug for RedisEventStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisEventStore").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

impl Shared {
    async fn flush(&self) -> Result<(), StoreError> {
        match timeout(self.limit, self.queue.flushed()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(StoreError("the task that writes events to Redis has ended with its runtime".to_owned())),
            Err(_) => {
                let (events, bytes) = self.queue.queued();
                let limit = self.limit;
                Err(StoreError(format!(
                    "Redis does not respond: {events} events ({bytes} bytes) are still queued after {limit:?}"
                )))
            }
        }
    }
}

/// Decodes the last number of the stream, the last number that was lost, and the events after `after`.
fn decode(response: Value, after: u64) -> Result<Replay, StoreError> {
    if response == Value::Nil {
        return Ok(Replay::default());
    }
    let parts = if let Value::Array(parts) = response { <[Value; 3]>::try_from(parts).ok() } else { None };
    let Some([last, lost, Value::Array(entries)]) = parts else {
        return Err(invalid("a response that is not a stream"));
    };
    let last = number(&last)?.ok_or_else(|| invalid("a stream without a last number"))?;
    let lost = number(&lost)?;
    let mut events = Vec::with_capacity(entries.len());
    let mut previous = after;
    for entry in entries {
        let event = event(entry).ok_or_else(|| invalid("an event that cannot be decoded"))?;
        if event.number <= previous {
            return Err(invalid("events that are out of order"));
        }
        previous = event.number;
        events.push(event);
    }
    // Redis may have evicted events alone. And a client that has seen later events than the last one in Redis has seen some
    // that were not written, and there may be more of these.
    let is_whole = previous == last && lost.is_none_or(|lost| lost <= after);
    Ok(Replay { events, is_whole })
}

/// Decodes 20 digits, or an empty string.
fn number(value: &Value) -> Result<Option<u64>, StoreError> {
    let Value::BulkString(text) = value else { return Err(invalid("an event number that is not a string")) };
    if text.is_empty() {
        return Ok(None);
    }
    let digits = std::str::from_utf8(text).ok().filter(|text| text.len() == 20);
    digits
        .and_then(|digits| digits.parse().ok())
        .map(Some)
        .ok_or_else(|| invalid("an event number that is not a number"))
}

/// Decodes `[<number>-1, [m, <message>]]`.
fn event(entry: Value) -> Option<StoredEvent> {
    let Value::Array(parts) = entry else { return None };
    let [Value::BulkString(id), Value::Array(fields)] = <[Value; 2]>::try_from(parts).ok()? else { return None };
    let [Value::BulkString(name), Value::BulkString(message)] = <[Value; 2]>::try_from(fields).ok()? else {
        return None;
    };
    let number = std::str::from_utf8(&id).ok()?.strip_suffix("-1")?.parse().ok()?;
    (name == b"m").then(|| StoredEvent { number, message: Bytes::from(message) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn answer(last: &str, floor: &str, numbers: &[&str]) -> Value {
        let entries = numbers.iter().map(|id| Value::Array(vec![text(id), Value::Array(vec![text("m"), text(id)])]));
        Value::Array(vec![text(last), text(floor), Value::Array(entries.collect())])
    }

    #[test]
    fn missing_events_are_noticed() {
        let (two, three) = ("00000000000000000002", "00000000000000000003");
        let numbers = |answer, after| {
            let Replay { events, is_whole } = decode(answer, after).unwrap();
            (events.iter().map(|event| event.number).collect::<Vec<_>>(), is_whole)
        };
        assert_eq!(numbers(answer(three, "", &["1-1", "3-1"]), 0), (vec![1, 3], true));
        assert_eq!(numbers(answer(three, two, &["3-1"]), 2), (vec![3], true));
        assert_eq!(numbers(answer(three, two, &["3-1"]), 1), (vec![3], false), "2 is lost");
        assert_eq!(numbers(answer(three, "", &["1-1"]), 0), (vec![1], false), "3 is missing");
        assert_eq!(numbers(answer(three, "", &[]), 3), (vec![], true));
        assert_eq!(numbers(answer(three, "", &[]), 4), (vec![], false), "4 was never written");
        assert_eq!(numbers(Value::Nil, 0), (vec![], false));
        for nonsense in [
            answer("3", "", &["3-1"]),
            answer("", "", &["3-1"]),
            answer(three, "x", &["3-1"]),
            answer(three, "", &["3-1", "2-1"]),
            answer(three, "", &["3-2"]),
            answer(three, "", &["x-1"]),
            Value::Array(vec![text(three), text("")]),
            Value::Int(1),
        ] {
            assert!(decode(nonsense.clone(), 0).is_err(), "{nonsense:?}");
        }
    }
}
