//! What is to be sent, and where it belongs.

use std::collections::{BTreeMap, VecDeque};

use crate::RequestKey;
use crate::limits::Limits;

/// Where a message belongs; a transport maps it to a line on its one stream, or to one of several streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a transport must know what to do with each")]
pub enum Route {
    /// The answer to a request; the last message for it.
    Reply(RequestKey),
    /// Something that belongs to a request which is still open.
    Related(RequestKey),
    /// Something that a listen request asked for.
    Listen(RequestKey),
    /// Something that belongs to the connection as a whole.
    Standalone,
}

impl Route {
    /// What shares a stream, and so keeps its order: all that belongs to one request, or to the connection.
    pub(crate) const fn stream(self) -> Option<RequestKey> {
        match self {
            Self::Reply(key) | Self::Related(key) | Self::Listen(key) => Some(key),
            Self::Standalone => None,
        }
    }
}

/// One message on its way out: a single line of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a message that is not sent is lost"]
#[non_exhaustive]
pub struct Transmit {
    /// Where it belongs.
    pub route: Route,
    /// The message.
    pub message: Vec<u8>,
}

/// What may happen to a message when its reader is slow, mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// Progress: the next one says more.
    Progress,
    /// Log messages.
    Log,
    /// A change: a second one of the same kind says nothing new.
    Change,
    /// Must arrive.
    Needed,
}

struct Queued {
    transmit: Transmit,
    weight: Weight,
}

/// Messages on their way out.
///
/// They leave in order. A stream whose reader stopped is blocked by the driver and keeps its messages, within limits;
/// other streams go on.
#[derive(Default)]
pub(crate) struct Outbox {
    open: VecDeque<Queued>,
    /// By stream, so that no answer overtakes what was said before it.
    blocked: BTreeMap<Option<RequestKey>, Backlog>,
}

#[derive(Default)]
struct Backlog {
    queue: VecDeque<Queued>,
    bytes: usize,
}

impl Outbox {
    /// Queues a message; returns how many others were dropped for it, or it itself.
    pub(crate) fn push(&mut self, limits: &Limits, transmit: Transmit, weight: Weight) -> usize {
        let queued = Queued { transmit, weight };
        match self.blocked.get_mut(&queued.transmit.route.stream()) {
            Some(backlog) => backlog.push(limits, queued),
            None => {
                self.open.push_back(queued);
                0
            }
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Transmit> {
        self.open.pop_front().map(|queued| queued.transmit)
    }

    /// Keeps the messages of a route's stream back until it is unblocked.
    ///
    /// Returns how many messages were dropped because the stream holds more than it may.
    pub(crate) fn block(&mut self, limits: &Limits, route: Route) -> usize {
        let stream = route.stream();
        let (mine, others) =
            std::mem::take(&mut self.open).into_iter().partition(|queued| queued.transmit.route.stream() == stream);
        self.open = others;
        let mine: VecDeque<Queued> = mine;
        let backlog = self.blocked.entry(stream).or_default();
        mine.into_iter().map(|queued| backlog.push(limits, queued)).sum()
    }

    /// Whether there is anything of a route's stream.
    pub(crate) fn holds(&self, route: Route) -> bool {
        let stream = route.stream();
        self.blocked.contains_key(&stream) || self.open.iter().any(|queued| queued.transmit.route.stream() == stream)
    }

    /// Gives back memory that is not needed now.
    pub(crate) fn release(&mut self) {
        self.open.shrink_to_fit();
    }

    /// Lets the messages of a route's stream go on.
    pub(crate) fn unblock(&mut self, route: Route) {
        if let Some(backlog) = self.blocked.remove(&route.stream()) {
            self.open.extend(backlog.queue);
        }
    }

    /// Forgets everything that belongs to a request that nobody waits for any more.
    pub(crate) fn forget(&mut self, key: RequestKey) {
        self.open.retain(|queued| queued.transmit.route.stream() != Some(key));
        self.blocked.remove(&Some(key));
    }

    /// Whether a route's stream holds as much as it may: what must arrive is not dropped, so no more is to be added.
    pub(crate) fn is_full(&self, limits: &Limits, route: Route) -> bool {
        let backlog = self.blocked.get(&route.stream());
        backlog.is_some_and(|held| held.queue.len() >= limits.route_messages || held.bytes >= limits.route_bytes)
    }

    /// Forgets everything: nobody is there any more.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.blocked.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.blocked.values().all(|backlog| backlog.queue.is_empty())
    }
}

impl Backlog {
    fn push(&mut self, limits: &Limits, mut queued: Queued) -> usize {
        // A change that was told with the same words says nothing new.
        let same = |other: &Queued| other.transmit.message == queued.transmit.message;
        if queued.weight == Weight::Change && self.queue.iter().any(same) {
            return 0;
        }
        // What is counted is what is kept.
        queued.transmit.message.shrink_to_fit();
        self.bytes += queued.transmit.message.len();
        self.queue.push_back(queued);
        let mut dropped = 0;
        for weight in [Weight::Progress, Weight::Log, Weight::Change] {
            while self.queue.len() > limits.route_messages || self.bytes > limits.route_bytes {
                let Some(index) = self.queue.iter().position(|queued| queued.weight == weight) else { break };
                if let Some(queued) = self.queue.remove(index) {
                    self.bytes -= queued.transmit.message.len();
                    dropped += 1;
                }
            }
        }
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(route: Route, text: &str) -> Transmit {
        Transmit { route, message: text.into() }
    }

    fn drain(outbox: &mut Outbox) -> Vec<String> {
        std::iter::from_fn(|| outbox.pop()).map(|transmit| String::from_utf8(transmit.message).unwrap()).collect()
    }

    #[test]
    fn a_slow_route_does_not_hold_up_others() {
        let limits = Limits::default();
        let (mut outbox, slow, fast) = (Outbox::default(), Route::Related(RequestKey::new(1)), Route::Standalone);
        let _ = outbox.push(&limits, message(slow, "a"), Weight::Needed);
        let _ = outbox.block(&limits, slow);
        let _ = outbox.push(&limits, message(fast, "b"), Weight::Needed);
        let _ = outbox.push(&limits, message(slow, "c"), Weight::Needed);
        assert_eq!(drain(&mut outbox), ["b"]);
        outbox.unblock(slow);
        assert_eq!(drain(&mut outbox), ["a", "c"]);
        assert!(outbox.is_empty());
    }

    #[test]
    fn progress_goes_first_and_changes_coalesce() {
        let limits = Limits { route_messages: 2, ..Limits::default() };
        let (mut outbox, route) = (Outbox::default(), Route::Standalone);
        let _ = outbox.block(&limits, route);
        for (text, weight) in [
            ("progress", Weight::Progress),
            ("changed", Weight::Change),
            ("changed", Weight::Change),
            ("log", Weight::Log),
            ("answer", Weight::Needed),
        ] {
            let _ = outbox.push(&limits, message(route, text), weight);
        }
        outbox.unblock(route);
        assert_eq!(drain(&mut outbox), ["changed", "answer"]);
    }

    #[test]
    fn bytes_count_too() {
        let limits = Limits { route_bytes: 10, ..Limits::default() };
        let (mut outbox, route) = (Outbox::default(), Route::Standalone);
        let _ = outbox.block(&limits, route);
        assert_eq!(outbox.push(&limits, message(route, "12345678"), Weight::Progress), 0);
        assert_eq!(outbox.push(&limits, message(route, "12345678"), Weight::Progress), 1);
    }
}
