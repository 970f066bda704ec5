//! The requests of the peer that are worked on, or wait to be.

use std::collections::BTreeMap;

use mcp_types::{LoggingLevel, Method, Number, ProgressToken, RequestId, Revision};

use crate::RequestKey;

/// One request.
pub(crate) struct Entry {
    pub(crate) id: RequestId,
    pub(crate) method: Method,
    pub(crate) revision: Revision,
    pub(crate) log_level: Option<LoggingLevel>,
    pub(crate) progress_token: Option<ProgressToken>,
    pub(crate) last_progress: Option<Number>,
    pub(crate) batch: Option<RequestKey>,
    pub(crate) kind: Kind,
}

/// How a request is worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The application works on it, or will.
    Running,
    /// It is a subscription.
    Listening,
}

/// The right to answer a request, once.
///
/// It belongs to the request, not to its id: after the request was cancelled, a new one may use the id again, and this
/// does not answer it.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a request that is not answered stays open"]
pub struct Responder(RequestKey);

impl Responder {
    /// The request that this answers.
    #[must_use]
    pub fn key(&self) -> RequestKey {
        self.0
    }
}

/// The requests that are open, by handle and by id.
#[derive(Default)]
pub(crate) struct InFlight {
    entries: BTreeMap<RequestKey, Entry>,
    by_id: BTreeMap<RequestId, RequestKey>,
    started: u64,
    running: usize,
    listening: usize,
}

impl InFlight {
    /// A handle that was never used before.
    pub(crate) fn next_key(&mut self) -> RequestKey {
        self.started += 1;
        RequestKey::new(self.started)
    }

    /// Whether a request with the id is open; `1` is not `"1"` (S0.27).
    pub(crate) fn has_id(&self, id: &RequestId) -> bool {
        self.by_id.contains_key(id)
    }

    pub(crate) fn open(&mut self, key: RequestKey, entry: Entry) -> Responder {
        self.by_id.insert(entry.id.clone(), key);
        *self.count_of(entry.kind) += 1;
        self.entries.insert(key, entry);
        Responder(key)
    }

    pub(crate) fn close(&mut self, key: RequestKey) -> Option<Entry> {
        let entry = self.entries.remove(&key)?;
        self.by_id.remove(&entry.id);
        *self.count_of(entry.kind) -= 1;
        Some(entry)
    }

    /// Requests that wait count as running: they are bounded together.
    fn count_of(&mut self, kind: Kind) -> &mut usize {
        match kind {
            Kind::Running => &mut self.running,
            Kind::Listening => &mut self.listening,
        }
    }

    /// How many requests run or wait.
    pub(crate) fn running(&self) -> usize {
        self.running
    }

    /// How many subscriptions there are.
    pub(crate) fn listening(&self) -> usize {
        self.listening
    }

    pub(crate) fn get_mut(&mut self, key: RequestKey) -> Option<&mut Entry> {
        self.entries.get_mut(&key)
    }

    pub(crate) fn key_of(&self, id: &RequestId) -> Option<RequestKey> {
        self.by_id.get(id).copied()
    }

    pub(crate) fn keys(&self) -> Vec<RequestKey> {
        self.entries.keys().copied().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Gives back memory that is not needed now: an empty map may keep its root.
    pub(crate) fn release(&mut self) {
        if self.is_empty() {
            (self.entries, self.by_id) = (BTreeMap::new(), BTreeMap::new());
        }
    }
}
