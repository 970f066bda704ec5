//! Sessions of the stateful revisions: who has one, for how long, and what was said in it.
//!
//! | for | there is |
//! |---|---|
//! | who has a session | [`SessionManager`] with its [`SessionOptions`]: [`Lease`] while it is used, [`Ended`] when it is over |
//! | ids that nobody can guess | [`SessionId`], and [`EventKey`] for the ids of events |
//! | going on elsewhere | [`SessionStore`] with what a [`SessionRecord`] says |
//! | going on after a gap | [`EventStore`] with what was sent |
//! | one process, and tests | [`MemorySessions`], [`MemoryEvents`] |
//! | more than one process | the crate `mcp-redis` |
//! | a store of your own | `store_tests` (with the feature `store-tests`): what it has to do, as tests |
//!
//! What is not here: HTTP, servers, tasks and timers. A transport decides what a refusal is on the wire, keeps its own
//! state in each session, calls [`sweep`](SessionManager::sweep), and tears down what has ended.
//!
//! ```
//! use mcp_kernel::server::Principal;
//! use mcp_session::{Ended, Reason, Refused, SessionManager, SessionOptions};
//! use tokio::time::{Instant, sleep_until};
//!
//! /// What the transport has for each session.
//! struct State {
//!     greeting: String,
//! }
//!
//! # fn main() -> Result<(), Refused> {
//! let sessions = SessionManager::new(SessionOptions::default());
//! let ann = Principal::new(Some("https://issuer.example"), "ann");
//!
//! // The handshake was good.
//! let created = sessions.create(Some(ann.clone()), |_| State { greeting: "hello".into() })?;
//! created.evicted.into_iter().for_each(tear_down);
//! let id = created.lease.id();
//! drop(created.lease);
//!
//! // A request names it. As long as there is a lease, the session is not idle.
//! let lease = sessions.enter(&id, Some(&ann))?;
//! assert_eq!(lease.greeting, "hello");
//! assert_eq!(sessions.enter(&id, None).err(), Some(Refused::WrongOwner));
//!
//! // The client says that it is done.
//! tear_down(sessions.end(&id, Some(&ann), Reason::Deleted)?);
//! assert!(lease.is_ended());
//! assert_eq!(sessions.enter(&id, Some(&ann)).err(), Some(Refused::Unknown));
//! # Ok(())
//! # }
//!
//! /// Runs beside the server.
//! async fn sweeper(sessions: SessionManager<State>) {
//!     loop {
//!         sleep_until(sessions.next_sweep(Instant::now())).await;
//!         sessions.sweep(Instant::now()).into_iter().for_each(tear_down);
//!     }
//! }
//!
//! fn tear_down(ended: Ended<State>) {
//!     // Cancel what runs, close what is open, forget what was kept.
//!     drop(ended);
//! }
//! ```

#![forbid(unsafe_code)]

mod event_id;
mod id;
mod manager;
mod memory;
mod metrics;
mod options;
mod slab;
mod store;
#[cfg(any(test, feature = "store-tests"))]
pub mod store_tests;
mod table;

pub use event_id::EventKey;
pub use id::{InvalidId, NoRandomness, SessionId};
pub use manager::{Created, Ended, Lease, SessionManager};
pub use memory::{EventUsage, MemoryEvents, MemoryLimits, MemorySessions};
pub use metrics::{Reason, Refused, SessionMetrics};
pub use options::{SessionOptions, WrongOwner};
pub use store::{
    BoxFuture, EventStore, Replay, Saved, SessionRecord, SessionStore, StoreError, StoredEvent, Version, Versioned,
};
