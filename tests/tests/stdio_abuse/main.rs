//! A server on standard input and output, and clients that mistreat it.
//!
//! Whatever a client sends, requests before and after it are answered, the server keeps no more than its limits say,
//! and it ends well. `tally` says how often.
#![cfg(target_os = "linux")]

mod eras;
mod floods;
mod handlers;
#[path = "../harness/mod.rs"]
mod harness;
mod lines;
mod messages;
mod repeated;
mod rounds;
mod slow_reader;
#[path = "../abuse/tally.rs"]
mod tally;
