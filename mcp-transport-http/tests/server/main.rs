//! A server over HTTP: what clients of every revision see of it, without sockets wherever they make no difference.

mod cancelling;
mod configuring;
mod draining;
mod failures;
mod guarding;
mod kit;
mod legacy;
mod limits;
mod listening;
mod params;
mod sockets;
mod statuses;
mod streams;
mod subscribers;
mod teardown;
mod throttled;

/// What the kit may see in responses.
const HAS_SESSIONS: bool = false;
