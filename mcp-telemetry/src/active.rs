//! The numbers of what has started and not ended.

use std::sync::atomic::{AtomicI64, Ordering};

use mcp_kernel::observe::{Role, Session, StreamKind};

use crate::methods::MethodId;
use crate::names::OTHER;

/// Counts requests, sessions, streams and the queue. They are read when metrics are collected.
pub(crate) struct Active {
    server: RoleCounts,
    client: RoleCounts,
    streams: [Count; STREAM_KINDS.len()],
    pub(crate) queued: Count,
}

/// The counts of one role.
struct RoleCounts {
    requests: Vec<Count>,
    sessions: Count,
}

/// The kinds of streams, with their values of `mcp.stream.kind`.
const STREAM_KINDS: [&str; 4] = ["response", "listen", "standalone", OTHER];

impl Active {
    pub(crate) fn new() -> Self {
        let counts =
            || RoleCounts { requests: MethodId::all().map(|_| Count::default()).collect(), sessions: Count::default() };
        Self { server: counts(), client: counts(), streams: Default::default(), queued: Count::default() }
    }

    pub(crate) fn change_requests(&self, role: Role, method: MethodId, change: i64) {
        if let Some(count) = self.role(role).requests.get(method.index()) {
            count.add(change);
        }
    }

    /// The requests in flight of each method that has had any.
    pub(crate) fn requests(&self, role: Role) -> impl Iterator<Item = (MethodId, i64)> {
        let counts = MethodId::all().zip(&self.role(role).requests);
        counts.filter_map(|(method, count)| Some((method, count.get()?)))
    }

    /// Single requests are not counted as sessions.
    pub(crate) fn change_sessions(&self, session: &Session, change: i64) {
        if session.is_lasting {
            self.role(session.role).sessions.add(change);
        }
    }

    pub(crate) fn sessions(&self, role: Role) -> Option<i64> {
        self.role(role).sessions.get()
    }

    pub(crate) fn stream(&self, kind: StreamKind) -> &Count {
        let [response, listen, standalone, other] = &self.streams;
        match kind {
            StreamKind::Response => response,
            StreamKind::Listen => listen,
            StreamKind::Standalone => standalone,
            _ => other,
        }
    }

    /// The open streams of each kind that there has been.
    pub(crate) fn streams(&self) -> impl Iterator<Item = (&'static str, i64)> {
        let counts = STREAM_KINDS.into_iter().zip(&self.streams);
        counts.filter_map(|(kind, count)| Some((kind, count.get()?)))
    }

    fn role(&self, role: Role) -> &RoleCounts {
        match role {
            Role::Server => &self.server,
            Role::Client => &self.client,
        }
    }
}

/// A number of things that start and end, or [`UNUSED`](Self::UNUSED) if none has started.
pub(crate) struct Count(AtomicI64);

impl Count {
    const UNUSED: i64 = i64::MIN;

    pub(crate) fn add(&self, change: i64) {
        self.update(|value| value.saturating_add(change));
    }

    /// Returns the number, if there has ever been one.
    pub(crate) fn get(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|value| *value != Self::UNUSED)
    }

    fn update(&self, change: impl Fn(i64) -> i64) {
        let change = |value: i64| Some(change(if value == Self::UNUSED { 0 } else { value }));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }
}

impl Default for Count {
    fn default() -> Self {
        Self(AtomicI64::new(Self::UNUSED))
    }
}
