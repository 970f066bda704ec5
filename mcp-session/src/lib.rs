//! Sessions for the legacy revisions of the Model Context Protocol (before 2026-07-28): ids, owners, limits, expiry, and
//! stores to resume sessions and streams.
//!
//! Applications pass [`SessionOptions`] and stores to `mcp-transport-http`. Transports use the [`SessionManager`].
//!
//! | to | use |
//! |---|---|
//! | manage sessions | [`SessionManager`] with [`SessionOptions`]: a [`SessionLease`] while a session is used, [`EndedSession`] when it has ended |
//! | create ids that cannot be guessed | [`SessionId`], and [`EventIdKey`] for event ids |
//! | resume a session in another process | a [`SessionStore`] for [`SessionRecord`]s |
//! | resume a stream after a disconnect | an [`EventStore`] |
//! | store both in one process, or in tests | [`MemorySessionStore`], [`MemoryEventStore`] |
//! | store both for several processes | the crate `mcp-redis` |
//! | test a store of your own | the module `store_tests` (feature `store-tests`) |
//!
//! This crate has no HTTP, no tasks and no timers. The transport maps a [`SessionError`] to a response, keeps its own
//! state in each session, calls [`sweep`](SessionManager::sweep), and releases the resources of sessions that have
//! ended.
//!
//! # Examples
//!
//! ```
//! use mcp_kernel::server::Principal;
//! use mcp_session::{EndedSession, EndReason, SessionError, SessionManager, SessionOptions};
//! use tokio::time::{Instant, sleep_until};
//!
//! /// The state of the transport in each session.
//! struct State {
//!     greeting: String,
//! }
//!
//! # fn main() -> Result<(), SessionError> {
//! let sessions = SessionManager::new(SessionOptions::default());
//! let ann = Principal::new(Some("https://issuer.example"), "ann");
//!
//! // `initialize` was accepted.
//! let created = sessions.create(Some(ann.clone()), |_| State { greeting: "hello".into() })?;
//! created.evicted.into_iter().for_each(tear_down);
//! let id = created.lease.id();
//! drop(created.lease);
//!
//! // A request has the id of the session, which is not idle while there is a lease.
//! let lease = sessions.enter(&id, Some(&ann))?;
//! assert_eq!(lease.greeting, "hello");
//! assert_eq!(sessions.enter(&id, None).err(), Some(SessionError::WrongOwner));
//!
//! // The client sends `DELETE`.
//! tear_down(sessions.end(&id, Some(&ann), EndReason::Deleted)?);
//! assert!(lease.is_ended());
//! assert_eq!(sessions.enter(&id, Some(&ann)).err(), Some(SessionError::Unknown));
//! # Ok(())
//! # }
//!
//! /// Runs in the background.
//! async fn sweeper(sessions: SessionManager<State>) {
//!     loop {
//!         sleep_until(sessions.next_sweep(Instant::now())).await;
//!         sessions.sweep(Instant::now()).into_iter().for_each(tear_down);
//!     }
//! }
//!
//! fn tear_down(ended: EndedSession<State>) {
//!     // Cancel requests, close streams, drop events.
//!     drop(ended);
//! }
//! ```

#![forbid(unsafe_code)]

mod deadlines;
mod dropped_events;
mod event_id;
mod id;
mod id_map;
mod lease;
mod live_metrics;
mod manager;
mod memory;
mod metrics;
mod options;
mod slab;
mod store;
#[cfg(any(test, feature = "store-tests"))]
pub mod store_tests;
mod table;

pub use async_trait::async_trait;
pub use dropped_events::DroppedEvents;
pub use event_id::EventIdKey;
pub use id::{InvalidSessionId, NoRandomness, SessionId};
pub use lease::SessionLease;
pub use live_metrics::LiveMetrics;
pub use manager::{CreatedSession, EndedSession, SessionManager};
pub use mcp_kernel::observe::MetricSource;
pub use memory::{EventUsage, MemoryEventLimits, MemoryEventStore, MemorySessionStore};
pub use metrics::{EndReason, SessionError, SessionMetrics};
pub use options::{SessionOptions, WrongOwnerPolicy};
pub use store::{
    EventStore, RecordVersion, Replay, SaveOutcome, SessionRecord, SessionStore, StoreError, StoredEvent,
    VersionedRecord,
};
