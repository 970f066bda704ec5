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
/// They are few, and their keys grow, so that a list in the order of the keys is sufficient. Most requests get their response
/// in the order of their arrival, so both ends of the list are fast.
#[derive(Default)]
pub(crate) struct InFlight {
    /// The request with the smallest key; most connections never have a second one at the same time.
    first: Option<(RequestKey, Entry)>,
    /// Absent or empty if there is no first one.
    #[expect(clippy::box_collection, reason = "most connections never have it, and there is one in each session")]
    others: Option<Box<VecDeque<(RequestKey, Entry)>>>,
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
        let added = match &mut self.first {
            None => {
                self.first = Some((key, entry));
                return Responder(key);
            }
            // A request that waited in a batch is opened after one with a greater key.
            Some(first) if key < first.0 => std::mem::replace(first, (key, entry)),
            Some(_) => (key, entry),
        };
        let others = self.others.get_or_insert_default();
        others.insert(others.partition_point(|(other, _)| *other < added.0), added);
        Responder(key)
    }

    pub(crate) fn close(&mut self, key: RequestKey) -> Option<Entry> {
        let (_, entry) = match self.first.take_if(|(first, _)| *first == key) {
            Some(first) => {
                self.first = self.others.as_mut().and_then(|others| others.pop_front());
                first
            }
            None => {
                let index = self.index(key)?;
                self.others.as_mut()?.remove(index)?
            }
        };
        self.listening -= usize::from(entry.kind == Kind::Listening);
        self.others.take_if(|others| others.is_empty() && others.capacity() > KEPT);
        Some(entry)
    }

    /// The position among the others.
    fn index(&self, key: RequestKey) -> Option<usize> {
        self.others.as_ref()?.binary_search_by_key(&key, |(key, _)| *key).ok()
    }

    fn iter(&self) -> impl Iterator<Item = &(RequestKey, Entry)> {
        self.first.iter().chain(self.others.iter().flat_map(|others| others.iter()))
    }

    /// The number of running and queued requests.
    pub(crate) fn running(&self) -> usize {
        let others = self.others.as_ref().map_or(0, |others| others.len());
        usize::from(self.first.is_some()) + others - self.listening
    }

    /// The number of listen streams.
    pub(crate) fn listening(&self) -> usize {
        self.listening
    }

    pub(crate) fn has(&self, key: RequestKey) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn get(&self, key: RequestKey) -> Option<&Entry> {
        let first = self.first.as_ref().filter(|(first, _)| *first == key);
        first.or_else(|| self.others.as_ref()?.get(self.index(key)?)).map(|(_, entry)| entry)
    }

    pub(crate) fn get_mut(&mut self, key: RequestKey) -> Option<&mut Entry> {
        if self.first.as_ref().is_some_and(|(first, _)| *first == key) {
            return self.first.as_mut().map(|(_, entry)| entry);
        }
        let index = self.index(key)?;
        self.others.as_mut()?.get_mut(index).map(|(_, entry)| entry)
    }

    /// The oldest request.
    pub(crate) fn first(&self) -> Option<&Entry> {
        self.first.as_ref().map(|(_, entry)| entry)
    }

    pub(crate) fn key_of(&self, id: &RequestId) -> Option<RequestKey> {
        self.iter().find(|(_, entry)| entry.scope.id == *id).map(|(key, _)| *key)
    }

    pub(crate) fn keys(&self) -> Vec<RequestKey> {
        self.iter().map(|(key, _)| *key).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

/// An empty list with a larger capacity is deallocated.
const KEPT: usize = 4;
