//! Multi round-trip requests of the Model Context Protocol, as pure logic.
//!
//! Since 2026-07-28 a server cannot send requests to its client. To elicit input it responds with an
//! [`InputRequiredResult`](mcp_types::InputRequiredResult), and the client repeats the request with the input responses
//! and the `requestState` of that result. Any instance of the server can serve any round, and no instance keeps anything
//! between rounds.
//!
//! The server side needs the feature `server`, which is enabled by default:
//!
//! - `Sealer` encrypts the `requestState` and authenticates it when it returns: with a `KeyRing`, a `Binding` to the
//!   request and its principal, a lifetime and a size limit. A `ReplayGuard` makes each state valid for one use.
//! - `Journal` is the content of the state: the input responses of earlier rounds, and the results of steps that must not
//!   be repeated. `Round` is one run of a handler with it.
//! - `InputRequiredBuilder` builds an `InputRequiredResult` by hand.
//!
//! The client side is always available:
//!
//! - [`Retry`] collects input responses and builds the parameters of the next round.
//!
//! This crate performs no I/O and reads no clock and no random source: times and nonces are arguments.

#![forbid(unsafe_code)]

#[cfg(feature = "server")]
mod binding;
#[cfg(feature = "server")]
mod builder;
#[cfg(feature = "server")]
mod invalid_state;
#[cfg(feature = "server")]
mod journal;
#[cfg(feature = "server")]
mod key_ring;
#[cfg(feature = "server")]
mod replay_guard;
mod retry;
#[cfg(feature = "server")]
mod round;
#[cfg(feature = "server")]
mod seal;

#[cfg(feature = "server")]
pub use binding::Binding;
#[cfg(feature = "server")]
pub use builder::{InputRequiredBuilder, InvalidInputRequests};
#[cfg(feature = "server")]
pub use invalid_state::InvalidState;
#[cfg(feature = "server")]
pub use journal::Journal;
#[cfg(feature = "server")]
pub use key_ring::{Key, KeyRing};
#[cfg(feature = "server")]
pub use replay_guard::{MemoryReplayGuard, ReplayGuard};
pub use retry::{Retry, RetryAction, RetryError, RetryLimits};
#[cfg(feature = "server")]
pub use round::{ResumeError, Round};
#[cfg(feature = "server")]
pub use seal::{NONCE_BYTES, OpenedState, Sealer, StateTooLarge};
