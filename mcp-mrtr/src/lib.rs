//! Multi round-trip requests of the Model Context Protocol.
//!
//! Since 2026-07-28 a server cannot send requests to its client. To elicit input it responds with an
//! [`InputRequiredResult`](mcp_types::InputRequiredResult), and the client repeats the request with the input responses
//! and the `requestState` of that result. Any instance of the server can serve any round, and no instance keeps state
//! between rounds.
//!
//! `mcp-server` and `mcp-client` use this crate; their builders take its `KeyRing`, `ReplayGuard` and [`RetryLimits`].
//!
//! The server side needs the feature `server`, which is enabled by default:
//!
//! - `Sealer` encrypts the `requestState` and authenticates it when it returns: with a `KeyRing`, a `Binding` to the
//!   request and its authenticated user, a lifetime and a size limit. A `ReplayGuard` makes each state valid for one
//!   use.
//! - `Journal` is the content of the state: the input responses of earlier rounds, and the results of steps that must not
//!   be repeated. `Round` is one run of a request handler with its journal.
//! - `InputRequiredBuilder` builds an `InputRequiredResult` without a journal.
//!
//! The client side is always available:
//!
//! - [`Retry`] collects input responses and builds the parameters of the next round.
//!
//! This crate performs no I/O and reads no clock and no random source: times and nonces are arguments.
//!
//! # Examples
//!
//! A client repeats a request with the input that the server requires:
//!
//! ```
//! use mcp_mrtr::{Retry, RetryAction, RetryLimits};
//! use mcp_types::{InputRequiredResult, RawObject};
//!
//! let mut retry = Retry::new(&RawObject::parse(r#"{"name":"deploy"}"#)?, RetryLimits::default())?;
//!
//! // The server responded with an `InputRequiredResult`.
//! let result = r#"{"resultType":"input_required","requestState":"s1","inputRequests":{"roots":{"method":"roots/list"}}}"#;
//! let result: InputRequiredResult = serde_json::from_str(result)?;
//! if let RetryAction::Respond(input_requests) = retry.handle(result)? {
//!     for (key, _request) in input_requests.iter() {
//!         retry.respond(key, RawObject::parse(r#"{"roots":[]}"#)?)?;
//!     }
//! }
//! let params = retry.params()?;
//! assert_eq!(params.as_str(), r#"{"name":"deploy","inputResponses":{"roots":{"roots":[]}},"requestState":"s1"}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(feature = "server")]
mod binding;
#[cfg(feature = "server")]
mod builder;
#[cfg(all(feature = "server", any(test, feature = "store-tests")))]
pub mod guard_tests;
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
pub use async_trait::async_trait;
#[cfg(feature = "server")]
pub use binding::Binding;
#[cfg(feature = "server")]
pub use builder::{InputRequiredBuilder, InvalidInputRequests};
#[cfg(feature = "server")]
pub use invalid_state::InvalidState;
#[cfg(feature = "server")]
pub use journal::{Journal, RequestDigest};
#[cfg(feature = "server")]
pub use key_ring::{Key, KeyRing};
#[cfg(feature = "server")]
pub use replay_guard::{MemoryReplayGuard, ReplayGuard};
pub use retry::{Retry, RetryAction, RetryError, RetryLimits};
#[cfg(feature = "server")]
pub use round::{ResumeError, Round};
#[cfg(feature = "server")]
pub use seal::{NONCE_BYTES, OpenedState, Sealer, StateTooLarge};
