//! Our client with our server, in memory.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

mod answering;
mod breaking;
mod caching;
mod calls;
mod demo;
mod listening;
mod lists;
mod observing;
mod tasks;
