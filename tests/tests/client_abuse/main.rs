//! Clients, and servers that mistreat them: over pipes and over sockets.
//!
//! Whatever a server sends, the calls before and after it are answered, and then no more than 10% is allocated beyond what
//! was before. `MCP_ABUSE_REQUESTS` says how many messages or responses each abuse consists of at least.
#![cfg(target_os = "linux")]

mod arena;
mod floods;
mod lists;
mod pipe;
mod responses;
mod socket;
