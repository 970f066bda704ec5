//! Sessions of legacy clients: their life, their streams, and what becomes of both.

#[path = "../server/demo.rs"]
#[expect(dead_code, reason = "the other tests use the rest of it")]
mod demo;
#[path = "../server/raw_http.rs"]
#[expect(dead_code, reason = "the other tests use the rest of it")]
mod raw_http;
mod session_client;
#[path = "../server/threads.rs"]
mod threads;

mod asking;
mod blocking;
mod draining;
mod expiring;
mod hooks;
mod leaving;
mod living;
mod mixing;
mod observing;
mod owning;
mod resuming;
mod slowing;
mod sockets;
mod streaming;
mod waking;

/// Whether responses may name a session.
const HAS_SESSIONS: bool = true;
