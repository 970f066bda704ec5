//! Stores that are as long-lived as the process.

mod event_limits;
mod events;
mod sessions;

pub use event_limits::{EventUsage, MemoryEventLimits};
pub use events::MemoryEventStore;
pub use sessions::MemorySessionStore;
