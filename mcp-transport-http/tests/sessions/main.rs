//! Sessions of legacy clients: their life, their streams, and what becomes of both.

#[path = "../server/kit.rs"]
#[expect(dead_code, reason = "the other tests use the rest of it")]
mod http_kit;
mod kit;
#[path = "../server/threads.rs"]
mod threads;

mod asking;
mod blocking;
mod draining;
mod leaving;
mod living;
mod mixing;
mod owning;
mod resuming;
mod slowing;
mod sockets;
mod streaming;
mod waking;

/// What the kit may see in responses.
const HAS_SESSIONS: bool = true;
