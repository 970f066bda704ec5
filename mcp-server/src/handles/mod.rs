//! State between calls, by handles.
//!
//! Clients of 2026-07-28 have no sessions, and neither do older clients of a stateless server. State between calls then
//! travels as a handle: a text that one tool returns, and that the model passes to other tools. [`Handles`](crate::Handles)
//! defines how the handles for a type are kept, [`Handle`](crate::Handle) is an argument or a part of a result, and
//! [`CallerHandles`] mints them.
//!
//! A handle is valid for the caller that it was minted for, at the same server, for its kind, and for its lifetime. To a
//! caller, one that has expired or was revoked is the same as one that never existed, or that belongs to another user.
//!
//! Handles that are [stored](crate::Handles::stored) need a [`HandleStore`]: [`MemoryHandleStore`] for one process, or one that
//! several processes share.

mod access;
pub(crate) mod call;
mod caller;
pub(crate) mod decoding;
pub(crate) mod error;
pub(crate) mod handle;
pub(crate) mod kind;
mod memory;
pub(crate) mod registry;
pub(crate) mod schema;
mod store;
#[cfg(any(test, feature = "store-tests"))]
pub mod store_tests;
pub(crate) mod value;

pub use async_trait::async_trait;
pub use caller::CallerHandles;
pub use error::{HandleMisuse, HandleTooLarge};
pub use memory::{MemoryHandleLimits, MemoryHandleStore};
pub use store::{HandleKey, HandleOwner, HandleRecord, HandleStore, HandleStoreError, ReplaceOutcome, VersionedHandle};
