//! A server over HTTP: what clients of every revision see of it, without sockets wherever they make no difference.

mod cancelling;
mod configuring;
mod demo;
mod draining;
mod failures;
mod guarding;
mod legacy;
mod limits;
mod listening;
mod params;
mod raw_http;
mod sockets;
mod status_server;
mod statuses;
mod streams;
mod subscribers;
mod teardown;
mod throttled;

/// Whether responses may name a session.
const HAS_SESSIONS: bool = false;
