//! Stores that are as long-lived as the process.

mod events;
mod sessions;

pub use events::{EventUsage, MemoryEventLimits, MemoryEventStore};
pub use sessions::MemorySessionStore;
