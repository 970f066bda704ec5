//! Sessions and events in a Redis server that each test starts for itself.
//!
//! The program `redis-server` has to be there (Debian: `apt-get install redis-server`). Where it cannot be, the variable
//! `MCP_WITHOUT_REDIS` lets these tests do nothing, except in CI.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

mod buses;
mod events;
mod failures;
mod fixtures;
mod records;
mod server;
mod shared;
mod stores;
mod tasks;
mod tls;
mod topologies;
