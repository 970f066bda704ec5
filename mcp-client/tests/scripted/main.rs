//! The client against a server that the test plays message by message, over both kinds of transport.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]

mod asking;
mod caching;
mod cancelling;
mod fixtures;
mod gateway;
mod listening;
mod lists;
mod mending;
mod pausing;
mod restarting;
mod rounds;
#[cfg(feature = "validate")]
mod schemas;
mod talking;
mod tasks;
