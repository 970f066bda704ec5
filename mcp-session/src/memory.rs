//! Stores that are as long-lived as the process.

mod events;
mod sessions;

pub use events::{EventUsage, MemoryEvents, MemoryLimits};
pub use sessions::MemorySessions;
