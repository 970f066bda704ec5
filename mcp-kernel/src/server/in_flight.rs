//! The requests of the client that are in flight.

use std::collections::{BTreeMap, VecDeque};
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
/// Their keys grow, so that a list in the order of the keys is sufficient to find one by its key. Most requests get their response
/// in the order of their arrival, so both ends of the list are fast.
#[derive(Default)]
pub(crate) struct InFlight {
    /// The request with the smallest key; most connections never have a second one at the same time.
    first: Option<(RequestKey, Entry)>,
    /// Absent or empty if there is no first one.
    others: Option<Box<Others>>,
    started: u64,
    listening: usize,
}

/// The requests after the first one.
#[derive(Default)]
struct Others {
    requests: VecDeque<(RequestKey, Entry)>,
    /// The keys by id, while there are or were many. Ids are compared one by one otherwise, which is faster for a few.
    keys: Option<BTreeMap<RequestId, RequestKey>>,
}

impl Others {
    fn insert(&mut self, added: (RequestKey, Entry)) {
        if let Some(keys) = &mut self.keys {
            keys.insert(added.1.scope.id.clone(), added.0);
        }
        let index = self.requests.partition_point(|(other, _)| *other < added.0);
        self.requests.insert(index, added);
        if self.keys.is_none() && self.requests.len() > FEW {
            let id = |(key, entry): &(RequestKey, Entry)| (entry.scope.id.clone(), *key);
            self.keys = Some(self.requests.iter().map(id).collect());
        }
    }

    fn remove(&mut self, index: usize) -> Option<(RequestKey, Entry)> {
        let removed = self.requests.remove(index)?;
        if let Some(keys) = &mut self.keys {
            keys.remove(&removed.1.scope.id);
        }
        Some(removed)
    }

    fn index(&self, key: RequestKey) -> Option<usize> {
        self.requests.binary_search_by_key(&key, |(key, _)| *key).ok()
    }

    fn key_of(&self, id: &RequestId) -> Option<RequestKey> {
        match &self.keys {
            Some(keys) => keys.get(id).copied(),
            None => self.requests.iter().find(|(_, entry)| entry.scope.id == *id).map(|(key, _)| *key),
        }
    }
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
        self.others.get_or_insert_default().insert(added);
        Responder(key)
    }

    pub(crate) fn close(&mut self, key: RequestKey) -> Option<Entry> {
        let (_, entry) = match self.first.take_if(|(first, _)| *first == key) {
            Some(first) => {
                self.first = self.others.as_mut().and_then(|others| others.remove(0));
                first
            }
            None => {
                let others = self.others.as_mut()?;
                others.remove(others.index(key)?)?
            }
        };
        self.listening -= usize::from(entry.kind == Kind::Listening);
        self.others.take_if(|others| others.requests.is_empty() && others.requests.capacity() > KEPT);
        Some(entry)
    }

    fn iter(&self) -> impl Iterator<Item = &(RequestKey, Entry)> {
        self.first.iter().chain(self.others.iter().flat_map(|others| &others.requests))
    }

    /// The number of running and queued requests.
    pub(crate) fn running(&self) -> usize {
        let others = self.others.as_ref().map_or(0, |others| others.requests.len());
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
        let other = || self.others.as_ref().and_then(|others| others.requests.get(others.index(key)?));
        self.first.as_ref().filter(|(first, _)| *first == key).or_else(other).map(|(_, entry)| entry)
    }

    pub(crate) fn get_mut(&mut self, key: RequestKey) -> Option<&mut Entry> {
        if self.first.as_ref().is_some_and(|(first, _)| *first == key) {
            return self.first.as_mut().map(|(_, entry)| entry);
        }
        let others = self.others.as_mut()?;
        let index = others.index(key)?;
        others.requests.get_mut(index).map(|(_, entry)| entry)
    }

    /// The oldest request.
    pub(crate) fn first(&self) -> Option<&Entry> {
        self.first.as_ref().map(|(_, entry)| entry)
    }

    pub(crate) fn key_of(&self, id: &RequestId) -> Option<RequestKey> {
        let first = self.first.as_ref().filter(|(_, entry)| entry.scope.id == *id).map(|(key, _)| *key);
        first.or_else(|| self.others.as_ref()?.key_of(id))
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

/// With more requests, their ids have a map, which costs as much as so many comparisons.
const FEW: usize = 64;
