//! A server on a socket, and clients that mistreat it.
//!
//! Whatever clients do, honest ones are served before, meanwhile and after; then no task is left, no place is taken, and
//! hardly more than 10% is allocated beyond what was before. `tally` says how often.
#![cfg(target_os = "linux")]

mod arena;
mod clock;
mod floods;
mod framing;
#[path = "../abuse/heap.rs"]
mod heap;
mod http2;
mod json;
mod leaving;
mod mistreat;
mod origins;
mod readers;
mod sessions;
mod sessions_answers;
mod sessions_flood;
mod sessions_guess;
mod sessions_races;
mod sessions_streams;
#[path = "../abuse/tally.rs"]
mod tally;
mod unread;
mod uploads;
mod wire;
