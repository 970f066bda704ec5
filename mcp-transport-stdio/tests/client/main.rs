//! Clients of servers behind lines of text: our own, ill-behaved ones, and ones that die.
//!
//! No test asserts that something is fast. Every wait has a limit, so that a fault is a failure and not a hang.
#![cfg(all(unix, feature = "client", feature = "server"))]

mod children;
mod ends;
mod kit;
mod own;
mod streams;
