//! Multi round-trip requests of the Model Context Protocol, as pure logic.
//!
//! Since 2026-07-28 a server cannot ask its client anything while a request runs. It ends the request with questions
//! instead, and the client sends the request again, with the answers and with a state that the server gave it. Any
//! instance of the server can serve any round, and none of them keeps anything in between.
//!
//! The server's side is there with the feature `server`, which is a default:
//!
//! - `Sealer` makes a state that nobody can read, change, or use for something else, and opens it again: with a
//!   `KeyRing`, a `Binding` to the request and its principal, an expiry, and a size limit. A `Ledger` makes each state
//!   good for one use.
//! - `Journal` is what the state holds: the answers of earlier rounds and the results of steps that must not be
//!   repeated. `Round` is one run of a handler with it.
//! - `Questions` builds the interim result by hand.
//!
//! The client's side always is:
//!
//! - [`Retry`] collects the answers and makes the parameters of the next round.
//!
//! There is no I/O, no clock and no randomness in here; all of that comes in as arguments.

#![forbid(unsafe_code)]

#[cfg(feature = "server")]
mod binding;
#[cfg(feature = "server")]
mod journal;
#[cfg(feature = "server")]
mod key_ring;
#[cfg(feature = "server")]
mod ledger;
#[cfg(feature = "server")]
mod questions;
#[cfg(feature = "server")]
mod rejected;
mod retry;
#[cfg(feature = "server")]
mod round;
#[cfg(feature = "server")]
mod seal;

#[cfg(feature = "server")]
pub use binding::Binding;
#[cfg(feature = "server")]
pub use journal::Journal;
#[cfg(feature = "server")]
pub use key_ring::{Key, KeyRing};
#[cfg(feature = "server")]
pub use ledger::{Ledger, MemoryLedger};
#[cfg(feature = "server")]
pub use questions::{InvalidQuestions, Questions};
#[cfg(feature = "server")]
pub use rejected::Rejected;
pub use retry::{Next, Retry, RetryError, RetryLimits};
#[cfg(feature = "server")]
pub use round::{Asked, Round, Skew};
#[cfg(feature = "server")]
pub use seal::{NONCE_BYTES, Opened, Sealer, TooLarge};
