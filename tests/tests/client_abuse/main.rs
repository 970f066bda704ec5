//! Clients, and servers that mistreat them: over pipes and over sockets.
//!
//! Whatever a server sends, the calls before and after it are answered, and then no more than 10% is allocated beyond what
//! was before. `tally` says how often.
#![cfg(target_os = "linux")]

mod arena;
mod floods;
#[path = "../abuse/heap.rs"]
mod heap;
mod lists;
mod pipe;
mod responses;
mod socket;
#[path = "../abuse/tally.rs"]
mod tally;
