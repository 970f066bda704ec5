//! A server without I/O: what clients of every revision see of it.

mod asking;
#[cfg(feature = "blocking")]
mod blocking;
mod building;
mod changes;
mod driving;
mod errors;
mod extractors;
mod failures;
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
