//! The task that receives the changes of tasks.

use std::sync::Arc;
use std::time::Duration;

use mcp_tasks::{TaskChange, TaskChangeHub};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind, RedisError, Value};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::connection::Backoff;
use crate::endpoint::Endpoint;

/// A connection that is subscribed to the changes, and is re-established when it breaks.
pub(crate) struct Subscription {
    pub(crate) endpoint: Endpoint,
    pub(crate) channel: String,
    pub(crate) hub: TaskChangeHub,
    /// The time to connect, and to respond.
    pub(crate) limit: Duration,
}

impl Subscription {
    /// Receives until it is aborted.
    pub(crate) async fn run(self) {
        let mut backoff = Backoff::default();
        let mut is_unavailable = false;
        loop {
            let closed = Arc::new(Notify::new());
            let subscribed = timeout(self.limit, self.subscribe(&closed)).await;
            match subscribed
                .map_err(|_| "no response".to_owned())
                .and_then(|done| done.map_err(|error| error.to_string()))
            {
                Ok(connection) => {
                    if std::mem::take(&mut is_unavailable) {
                        tracing::info!("Redis reports changes of tasks again");
                    }
                    backoff = Backoff::default();
                    // Also the first time: it was not subscribed before.
                    self.hub.send(TaskChange::Gap);
                    self.watch(connection, &closed).await;
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_unavailable, true) {
                        tracing::warn!(error, "Redis does not report changes of tasks");
                    }
                }
            }
            sleep(backoff.next()).await;
        }
    }

    async fn subscribe(&self, closed: &Arc<Notify>) -> Result<MultiplexedConnection, RedisError> {
        let (hub, channel, closed) = (self.hub.clone(), self.channel.clone(), Arc::clone(closed));
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_push_sender(move |push: PushInfo| {
                if push.kind == PushKind::Disconnection {
                    closed.notify_one();
                } else if push.kind == PushKind::Message
                    && let Some(change) = change(&channel, &push.data)
                {
                    hub.send(change);
                }
                Ok::<_, std::convert::Infallible>(())
            });
        let mut connection = self.endpoint.connect(&config).await?;
        connection.subscribe(&self.channel).await?;
        Ok(connection)
    }

    /// Waits until the connection breaks, or is silent.
    async fn watch(&self, mut connection: MultiplexedConnection, closed: &Notify) {
        loop {
            if timeout(CHECK_INTERVAL, closed.notified()).await.is_ok() {
                return;
            }
            let ping = redis::cmd("PING");
            let response = timeout(self.limit, ping.query_async::<Value>(&mut connection)).await;
            if !matches!(response, Ok(Ok(_))) {
                return;
            }
        }
    }
}

/// Decodes a message. One that this crate did not publish may mean anything.
fn change(channel: &str, data: &[Value]) -> Option<TaskChange> {
    let [Value::BulkString(name), Value::BulkString(message)] = data else { return Some(TaskChange::Gap) };
    if name != channel.as_bytes() {
        return None;
    }
    let text = std::str::from_utf8(message).unwrap_or_default();
    Some(match text {
        "queued" => TaskChange::Queued,
        id => id.parse().map_or(TaskChange::Gap, TaskChange::Changed),
    })
}

/// The interval of checks whether the connection is alive.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_tasks::TaskId;

    #[test]
    fn messages_are_decoded() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let id = TaskId::random().unwrap();
        for (data, expected) in [
            (vec![text("c"), text("queued")], Some(TaskChange::Queued)),
            (vec![text("c"), text(&id.to_string())], Some(TaskChange::Changed(id))),
            (vec![text("c"), text("nonsense")], Some(TaskChange::Gap)),
            (vec![text("c")], Some(TaskChange::Gap)),
            (vec![text("other"), text("queued")], None),
        ] {
            assert_eq!(change("c", &data), expected, "{data:?}");
        }
    }
}
