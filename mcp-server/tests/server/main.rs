//! A server without I/O: what clients of every revision see of it.

mod asking;
mod building;
mod changes;
mod connections;
mod driving;
mod failures;
mod handshakes;
#[cfg(feature = "tower")]
mod layers;
mod lists;
mod prompts;
mod resources;
#[cfg(feature = "mrtr")]
mod rounds;
mod servers;
mod state;
mod teardown;
mod telling;
mod tools;
mod unanswered;
mod watching;
