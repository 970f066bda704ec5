//! What tests of stores in Redis need.

use std::time::Duration;

use bytes::Bytes;
use mcp_kernel::server::Principal;
use mcp_redis::{Redis, RedisEventStore, RedisOptions};
use mcp_session::{EventStore as _, SessionId, SessionRecord, StoredEvent};
use mcp_types::{RawObject, Revision};
use tokio::time::{Instant, sleep};

use crate::server::Server;

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

pub(crate) fn id() -> SessionId {
    SessionId::random().unwrap()
}

pub(crate) fn record(name: &str) -> SessionRecord {
    let initialize = RawObject::parse(&format!(r#"{{"clientInfo":{{"name":"{name}"}}}}"#)).unwrap();
    SessionRecord::new(initialize, Revision::V2025_11_25, Some(Principal::new(Some("https://issuer.example"), "alice")))
}

/// With more time than usual, because the machine may have other things to do.
pub(crate) fn options() -> RedisOptions {
    RedisOptions::default().command_timeout(Duration::from_secs(5))
}

pub(crate) async fn connect(server: &Server) -> Redis {
    connect_with(server, options()).await
}

pub(crate) async fn connect_with(server: &Server, options: RedisOptions) -> Redis {
    Redis::connect(&server.url(), options).await.unwrap()
}

pub(crate) fn event(number: u64) -> StoredEvent {
    StoredEvent { number, message: Bytes::from(format!("message {number}")) }
}

pub(crate) fn append(
    events: &RedisEventStore,
    session: SessionId,
    stream: u64,
    numbers: impl IntoIterator<Item = u64>,
) {
    numbers.into_iter().for_each(|number| events.append(session, stream, event(number)));
}

/// The numbers that are replayed if these are all, after it was checked that each comes with its message.
pub(crate) async fn replay(events: &RedisEventStore, session: SessionId, stream: u64, after: u64) -> Option<Vec<u64>> {
    let replayed = events.replay(session, stream, after).await.unwrap();
    for found in &replayed.events {
        assert_eq!(*found, event(found.number));
    }
    replayed.is_whole.then(|| replayed.events.iter().map(|event| event.number).collect())
}

/// Waits until something holds.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut holds: impl FnMut() -> F) {
    let end = Instant::now() + Duration::from_secs(15);
    while !holds().await {
        assert!(Instant::now() < end, "not within 15 s: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
