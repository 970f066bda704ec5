//! Clients over HTTP: with our own server, and with servers that behave badly.

mod answers;
mod authorizing;
mod eras;
mod headers;
mod listening;
#[cfg(feature = "internals")]
mod logins;
mod old;
mod own;
mod per_call;
mod proofs;
mod refusals;
mod scripted;
mod sessions;
mod sharing;
mod streams;
mod switching;
