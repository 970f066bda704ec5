//! The requests of the client that are in flight.

use std::collections::VecDeque;
use std::sync::Arc;

use mcp_types::jsonrpc::PayloadBuf;
use mcp_types::{Number, RequestId};

use super::scope::RequestScope;
use crate::RequestKey;

/// A request in flight.
pub(crate) struct Entry {
    pub(crate) scope: Arc<RequestScope>,
    pub(crate) last_progress: Option<Number>,
    pub(crate) batch: Option<RequestKey>,
    pub(crate) kind: Kind,
    /// The parameters, if the kernel can respond to the request.
    pub(crate) held: Option<Box<PayloadBuf>>,
}

/// What a request in flight is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request for the application, running or queued.
    Running,
    /// A listen stream.
    Listening,
}

/// The right to respond to a request, once.
///
/// It belongs to the request and not to its id, which the client may reuse after it cancelled the request.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a request without a response stays in flight"]
pub struct Responder(RequestKey);

impl Responder {
    /// Returns the request.
    #[must_use]
    pub fn key(&self) -> RequestKey {
        self.0
    }
}

/// The requests in flight.
///
/// They are few, and their keys grow, so that a list in the order of the keys is sufficient. Most requests finish in
/// the order of their arrival, so both ends of the list are fast.
#[derive(Default)]
pub(crate) struct InFlight {
    open: VecDeque<(RequestKey, Entry)>,
    started: u64,
    listening: usize,
}

impl InFlight {
    /// Returns a key that was never used before.
    pub(crate) fn next_key(&mut self) -> RequestKey {
        self.started += 1;
        RequestKey::new(self.started)
    }

    /// Returns whether a request with this id is in flight; `1` is not `"1"`.
    // S0.27
    pub(crate) fn has_id(&self, id: &RequestId) -> bool {
        self.key_of(id).is_some()
    }

    pub(crate) fn open(&mut self, key: RequestKey, entry: Entry) -> Responder {
        self.listening += usize::from(entry.kind == Kind::Listening);
        if self.open.capacity() == 0 {
            self.open.reserve_exact(1);
        }
        let index = self.open.partition_point(|(other, _)| *other < key);
        self.open.insert(index, (key, entry));
        Responder(key)
    }

    pub(crate) fn close(&mut self, key: RequestKey) -> Option<Entry> {
        let (_, entry) = self.open.remove(self.index(key)?)?;
        self.listening -= usize::from(entry.kind == Kind::Listening);
        if self.open.is_empty() && self.open.capacity() > KEPT {
            self.open = VecDeque::new();
        }
        Some(entry)
    }

    fn index(&self, key: RequestKey) -> Option<usize> {
        self.open.binary_search_by_key(&key, |(key, _)| *key).ok()
    }

    /// The number of running and queued requests.
    pub(crate) fn running(&self) -> usize {
        self.open.len() - self.listening
    }

    /// The number of listen streams.
    pub(crate) fn listening(&self) -> usize {
        self.listening
    }

    pub(crate) fn has(&self, key: RequestKey) -> bool {
        self.index(key).is_some()
    }

    pub(crate) fn get(&self, key: RequestKey) -> Option<&Entry> {
        self.open.get(self.index(key)?).map(|(_, entry)| entry)
    }

    pub(crate) fn get_mut(&mut self, key: RequestKey) -> Option<&mut Entry> {
        let index = self.index(key)?;
        self.open.get_mut(index).map(|(_, entry)| entry)
    }

    /// The oldest request.
    pub(crate) fn first(&self) -> Option<&Entry> {
        self.open.front().map(|(_, entry)| entry)
    }

    pub(crate) fn key_of(&self, id: &RequestId) -> Option<RequestKey> {
        self.open.iter().find(|(_, entry)| entry.scope.id == *id).map(|(key, _)| *key)
    }

    pub(crate) fn keys(&self) -> Vec<RequestKey> {
        self.open.iter().map(|(key, _)| *key).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

/// An empty list with a larger capacity is deallocated.
const KEPT: usize = 4;
