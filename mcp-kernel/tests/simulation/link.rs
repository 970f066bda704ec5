//! What lies between the two machines.

use std::collections::{BTreeMap, VecDeque};

use mcp_kernel::server::Route;
use mcp_kernel::{CallId, RequestKey};

use crate::Random;

/// What a link may do to messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One stream in each direction: everything arrives, late and in order.
    Stdio,
    /// Each message of the client, and what the server says about each request, has a stream of its own. Streams
    /// overtake each other and break.
    Http,
}

/// Something on its way to the server.
pub(crate) enum Up {
    Message {
        bytes: Vec<u8>,
        /// The stream that answers travel on.
        stream: u64,
        /// Whether the client reads the answers: nobody reads those to a copy that a transport made by mistake.
        read: bool,
    },
    /// The client closes a stream.
    Abort { stream: u64 },
}

pub(crate) struct Link {
    pub(crate) kind: Kind,
    up: BTreeMap<u64, VecDeque<Up>>,
    down: BTreeMap<Option<RequestKey>, VecDeque<Vec<u8>>>,
    streams: u64,
    by_call: BTreeMap<CallId, u64>,
}

impl Link {
    pub(crate) fn new(kind: Kind) -> Self {
        Self { kind, up: BTreeMap::new(), down: BTreeMap::new(), streams: 0, by_call: BTreeMap::new() }
    }

    /// Takes a message of the client.
    pub(crate) fn send_up(&mut self, call: Option<CallId>, bytes: Vec<u8>, read: bool) {
        self.streams += 1;
        let stream = self.streams;
        if let Some(call) = call {
            self.by_call.insert(call, stream);
        }
        let queue = if self.kind == Kind::Stdio { 0 } else { stream };
        self.up.entry(queue).or_default().push_back(Up::Message { bytes, stream, read });
    }

    /// Takes the end of a stream, which follows what was sent on it.
    pub(crate) fn abort(&mut self, call: CallId) {
        if let Some(stream) = self.by_call.get(&call).copied() {
            self.up.entry(stream).or_default().push_back(Up::Abort { stream });
        }
    }

    /// Takes a message of the server.
    pub(crate) fn send_down(&mut self, route: Route, bytes: Vec<u8>) {
        let stream = match (self.kind, route) {
            (Kind::Stdio, _) | (_, Route::Standalone) => None,
            (Kind::Http, Route::Reply(key) | Route::Related(key) | Route::Listen(key)) => Some(key),
        };
        self.down.entry(stream).or_default().push_back(bytes);
    }

    /// Loses what is on a broken stream.
    pub(crate) fn break_down(&mut self, key: RequestKey) {
        self.down.remove(&Some(key));
    }

    pub(crate) fn next_up(&mut self, random: &mut Random) -> Option<Up> {
        pop(&mut self.up, random)
    }

    pub(crate) fn next_down(&mut self, random: &mut Random) -> Option<Vec<u8>> {
        pop(&mut self.down, random)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.up.is_empty() && self.down.is_empty()
    }
}

/// Takes the first message of any stream.
fn pop<K: Ord + Copy, T>(streams: &mut BTreeMap<K, VecDeque<T>>, random: &mut Random) -> Option<T> {
    if streams.is_empty() {
        return None;
    }
    let stream = *streams.keys().nth(random.below(streams.len()))?;
    let queue = streams.get_mut(&stream)?;
    let first = queue.pop_front();
    if queue.is_empty() {
        streams.remove(&stream);
    }
    first
}
