//! Tasks of the Model Context Protocol: tool calls that outlive their request, and the process that runs them.
//!
//! | to | use |
//! |---|---|
//! | run tools as tasks | [`Tasks`], with [`Tool::task`](mcp_server::Tool::task) and [`TaskSettings`] |
//! | describe a task and its transitions | [`TaskRecord`], with the [`TaskCall`] that it runs and a [`TaskOutcome`] at its end |
//! | keep tasks in one process, or in tests | [`MemoryTaskStore`] |
//! | keep tasks for several processes | the crate `mcp-redis` |
//! | implement a store | [`TaskStore`], with a [`TaskChangeHub`] |
//! | test a store of your own | the module `store_tests` (feature `store-tests`) |
//!
//! A task is one record. Its transitions are functions without I/O, to which the time is passed; a store compares versions
//! when a record is replaced, so each transition applies to the record that it was computed from. A task that can run is in
//! the queue of its store. A worker *claims* it for the time of a *lease*, and *renews* the lease while the task runs. When
//! a lease expires, another worker takes the task over, and the *ticket* of the previous one is no longer accepted.

#![forbid(unsafe_code)]

mod call;
mod changes;
mod id;
mod journal;
mod limits;
mod memory;
mod owner;
mod record;
mod runtime;
mod store;
#[cfg(any(test, feature = "store-tests"))]
pub mod store_tests;
mod wire;

pub use async_trait::async_trait;
pub use call::TaskCall;
pub use changes::{TaskChange, TaskChangeHub, TaskChanges};
pub use id::{InvalidTaskId, NoRandomness, TaskId};
pub use journal::{OpenInputRequest, TaskJournal};
pub use limits::{TaskLimit, TaskLimits, TaskPart};
pub use mcp_server::tasks::{TaskOptions, TaskSupport};
pub use memory::MemoryTaskStore;
pub use owner::TaskOwner;
pub use record::{ResponseOutcome, TaskOutcome, TaskRecord, TransitionError};
pub use runtime::Tasks;
pub use runtime::settings::TaskSettings;
pub use store::{
    ClaimedTask, InsertedTask, NewTask, QueueAction, ReplaceOutcome, StoredTask, TaskClaim, TaskCursor, TaskPage,
    TaskStart, TaskStore, TaskStoreError, TaskTicket, TaskUsage, TaskWrite, VersionedTask,
};
