//! A server without I/O: what clients of every revision see of it.

mod asking;
mod audience;
#[cfg(feature = "blocking")]
mod blocking;
mod building;
mod buses;
mod changes;
mod connections;
mod driving;
#[cfg(feature = "mrtr")]
mod ends;
mod errors;
mod extractors;
mod failures;
mod gateway;
#[cfg(feature = "mrtr")]
mod handles;
mod handshakes;
#[cfg(feature = "tower")]
mod layers;
mod lists;
mod middleware;
mod observing;
mod prompts;
mod raw;
mod registries;
#[cfg(feature = "mrtr")]
mod replays;
mod resources;
#[cfg(feature = "mrtr")]
mod rounds;
mod scopes;
mod servers;
mod state;
mod teardown;
mod telling;
mod tools;
#[cfg(feature = "tower")]
mod tower_layers;
mod unanswered;
mod visibility;
mod watching;
