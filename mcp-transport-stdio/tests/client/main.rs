//! Clients of servers behind lines of text: our own, ill-behaved ones, and ones that die.
//!
//! No test asserts that something is fast. Every wait has a limit, so that a fault is a failure and not a hang.
//!
//! The servers of `children` and `ends` are shell scripts, so those are for Unix. `processes`, a test of its own, is for
//! every system.
#![cfg(all(feature = "client", feature = "server"))]

#[cfg(unix)]
mod children;
#[cfg(unix)]
mod ends;
mod long_lines;
mod own;
mod peer;
#[cfg(unix)]
mod script;
mod streams;
