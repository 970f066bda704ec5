//! The messages that are queued for a client.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use super::transmit::{Route, Transmit};
use crate::RequestKey;
use crate::limits::Limits;
use crate::queue::{pop, push};

/// Which messages are dropped when a client does not read; the first are dropped first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Priority {
    /// Progress notifications, which the next one replaces.
    Progress,
    /// Log messages.
    Log,
    /// Notifications of changes, of which one of a kind is enough.
    Change,
    /// Messages that are never dropped.
    Required,
}

struct Queued {
    transmit: Transmit,
    priority: Priority,
}

impl Queued {
    fn size(&self) -> usize {
        self.transmit.message.len()
    }

    fn is_on(&self, stream: Option<RequestKey>) -> bool {
        self.transmit.route.stream() == stream
    }

    fn is_response(&self) -> bool {
        matches!(self.transmit.route, Route::Reply(_))
    }
}

/// The messages that are queued for a client.
///
/// They are sent in order. The driver blocks a stream that is not read, which keeps its messages back while those of
/// other streams are sent. The size of a stream's queue is bounded, whether blocked or not: equal notifications of
/// changes are sent once, and messages of low priority are dropped.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The only message, if the queue is empty: most connections never have a second one at the same time.
    only: Option<Queued>,
    /// Allocated for the second message.
    queue: Option<Box<Queue>>,
}

/// The messages of a connection that has, or had, more than one.
#[derive(Default)]
struct Queue {
    open: VecDeque<Queued>,
    open_bytes: usize,
    /// What the streams in `open` hold, except for responses, of which each request has one.
    held: BTreeMap<Option<RequestKey>, Held>,
    /// By stream, so that no message overtakes an earlier one of its stream.
    blocked: BTreeMap<Option<RequestKey>, Backlog>,
}

/// The number and size of a stream's messages.
#[derive(Clone, Copy, Default)]
struct Held {
    messages: usize,
    bytes: usize,
}

impl Held {
    fn add(&mut self, queued: &Queued) {
        self.messages += 1;
        self.bytes += queued.size();
    }

    fn remove(&mut self, queued: &Queued) {
        self.messages -= 1;
        self.bytes -= queued.size();
    }

    fn is_over(self, limits: &Limits) -> bool {
        self.messages > limits.max_route_messages || self.bytes > limits.max_route_bytes
    }

    fn is_full(self, limits: &Limits) -> bool {
        self.messages >= limits.max_route_messages || self.bytes >= limits.max_route_bytes
    }
}

#[derive(Default)]
struct Backlog {
    queue: VecDeque<Queued>,
    held: Held,
}

impl Outbox {
    /// Queues a message; returns how many messages were dropped, which may include this one.
    pub(crate) fn push(&mut self, limits: &Limits, transmit: Transmit, priority: Priority) -> usize {
        let queued = Queued { transmit, priority };
        if self.only.is_none() && self.queue.as_ref().is_none_or(|queue| queue.is_unused()) {
            self.only = Some(queued);
            return 0;
        }
        self.queue().push(limits, queued)
    }

    /// The queue, with all messages in it.
    fn queue(&mut self) -> &mut Queue {
        let queue = self.queue.get_or_insert_default();
        if let Some(only) = self.only.take() {
            queue.add(only);
        }
        queue
    }

    pub(crate) fn pop(&mut self) -> Option<Transmit> {
        let queued = self.only.take().or_else(|| self.queue.as_mut()?.pop())?;
        Some(queued.transmit)
    }

    pub(crate) fn has_open(&self) -> bool {
        self.only.is_some() || self.queue.as_ref().is_some_and(|queue| !queue.open.is_empty())
    }

    /// Returns whether the limits are reached: the driver has to send some messages before more input is accepted.
    pub(crate) fn is_saturated(&self, limits: &Limits) -> bool {
        let (messages, bytes) = match (&self.only, &self.queue) {
            (Some(only), _) => (1, only.size()),
            (None, Some(queue)) => (queue.open.len(), queue.open_bytes),
            (None, None) => (0, 0),
        };
        messages >= limits.max_outbox_messages || bytes >= limits.max_outbox_bytes
    }

    /// Keeps the messages of a route's stream back until it is unblocked. Returns how many were dropped to stay within
    /// the limits.
    pub(crate) fn block(&mut self, limits: &Limits, route: Route) -> usize {
        self.queue().block(limits, route.stream())
    }

    /// Returns whether there are messages of a route's stream, or it is blocked.
    pub(crate) fn holds(&self, route: Route) -> bool {
        let stream = route.stream();
        let is_queued =
            |queue: &Queue| queue.blocked.contains_key(&stream) || queue.open.iter().any(|queued| queued.is_on(stream));
        self.only.as_ref().is_some_and(|only| only.is_on(stream)) || self.queue.as_deref().is_some_and(is_queued)
    }

    /// Releases the messages of a route's stream.
    pub(crate) fn unblock(&mut self, route: Route) {
        let Some(backlog) = self.queue.as_mut().and_then(|queue| queue.blocked.remove(&route.stream())) else { return };
        for queued in backlog.queue {
            self.queue().add(queued);
        }
    }

    /// Removes the messages of a request that was cancelled.
    pub(crate) fn forget(&mut self, key: RequestKey) {
        self.only.take_if(|only| only.is_on(Some(key)) && !only.is_response());
        if let Some(queue) = &mut self.queue {
            queue.forget(key);
        }
    }

    /// Returns whether a route's stream has reached its limits, so that no message that must arrive may be added.
    pub(crate) fn is_full(&self, limits: &Limits, route: Route) -> bool {
        let stream = route.stream();
        let only = self.only.as_ref().filter(|only| only.is_on(stream) && !only.is_response());
        let held = match only {
            Some(only) => Some(Held { messages: 1, bytes: only.size() }),
            None => self.queue.as_ref().and_then(|queue| queue.held(stream)),
        };
        held.is_some_and(|held| held.is_full(limits))
    }

    /// Removes all messages.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn is_empty(&self) -> bool {
        let has_blocked = |queue: &Queue| queue.blocked.values().any(|backlog| !backlog.queue.is_empty());
        !self.has_open() && !self.queue.as_deref().is_some_and(has_blocked)
    }
}

impl Queue {
    /// Whether no message is queued, and none would be blocked.
    fn is_unused(&self) -> bool {
        self.open.is_empty() && self.blocked.is_empty()
    }

    fn push(&mut self, limits: &Limits, queued: Queued) -> usize {
        let stream = queued.transmit.route.stream();
        if let Some(backlog) = self.blocked.get_mut(&stream) {
            return backlog.push(limits, queued);
        }
        let Some(held) = self.held.get_mut(&stream).filter(|_| !queued.is_response()) else {
            self.add(queued);
            return 0;
        };
        let before = held.bytes;
        let dropped = enqueue(&mut self.open, held, stream, limits, queued);
        self.open_bytes = self.open_bytes - before + held.bytes;
        if held.messages == 0 {
            self.held.remove(&stream);
        }
        dropped
    }

    /// Adds a message regardless of the limits.
    fn add(&mut self, queued: Queued) {
        if !queued.is_response() {
            self.held.entry(queued.transmit.route.stream()).or_default().add(&queued);
        }
        self.open_bytes += queued.size();
        push(&mut self.open, queued);
    }

    fn pop(&mut self) -> Option<Queued> {
        let queued = pop(&mut self.open)?;
        self.open_bytes -= queued.size();
        if !queued.is_response()
            && let Entry::Occupied(mut held) = self.held.entry(queued.transmit.route.stream())
        {
            held.get_mut().remove(&queued);
            if held.get().messages == 0 {
                held.remove();
            }
        }
        Some(queued)
    }

    fn block(&mut self, limits: &Limits, stream: Option<RequestKey>) -> usize {
        let (mine, others): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.open).into_iter().partition(|queued| queued.is_on(stream));
        self.open = others;
        self.open_bytes = self.open.iter().map(Queued::size).sum();
        self.held.remove(&stream);
        let backlog = self.blocked.entry(stream).or_default();
        mine.into_iter().map(|queued| backlog.push(limits, queued)).sum()
    }

    fn forget(&mut self, key: RequestKey) {
        if self.held.remove(&Some(key)).is_some() {
            self.open.retain(|queued| !queued.is_on(Some(key)));
            self.open_bytes = self.open.iter().map(Queued::size).sum();
        }
        self.blocked.remove(&Some(key));
    }

    /// What a stream holds, blocked or not.
    fn held(&self, stream: Option<RequestKey>) -> Option<Held> {
        self.blocked.get(&stream).map(|backlog| backlog.held).or_else(|| self.held.get(&stream).copied())
    }
}

impl Backlog {
    fn push(&mut self, limits: &Limits, mut queued: Queued) -> usize {
        // The memory that is counted is the memory that is used.
        queued.transmit.message.shrink_to_fit();
        let stream = queued.transmit.route.stream();
        enqueue(&mut self.queue, &mut self.held, stream, limits, queued)
    }
}

/// Queues a message of a stream that has others; returns how many were dropped to stay within the limits.
fn enqueue(
    queue: &mut VecDeque<Queued>,
    held: &mut Held,
    stream: Option<RequestKey>,
    limits: &Limits,
    queued: Queued,
) -> usize {
    // An equal notification of a change is queued already.
    let same = |other: &Queued| other.is_on(stream) && other.transmit.message == queued.transmit.message;
    if queued.priority == Priority::Change && queue.iter().any(same) {
        return 0;
    }
    held.add(&queued);
    queue.push_back(queued);
    let mut dropped = 0;
    for priority in [Priority::Progress, Priority::Log, Priority::Change] {
        while held.is_over(limits) {
            let Some(index) = queue.iter().position(|queued| queued.priority == priority && queued.is_on(stream))
            else {
                break;
            };
            if let Some(queued) = queue.remove(index) {
                held.remove(&queued);
                dropped += 1;
            }
        }
    }
    dropped
}

#[cfg(test)]
mod tests {
    use mcp_types::jsonrpc::EncodedMessage;

    use super::*;

    fn message(route: Route, text: &str) -> Transmit {
        Transmit { route, message: EncodedMessage::from_bytes(text.into()), failure: None }
    }

    fn is_drained(outbox: &Outbox) -> bool {
        outbox.queue.as_ref().is_none_or(|queue| queue.held.is_empty() && queue.open_bytes == 0)
    }

    /// Every connection has an outbox, and nearly all are empty.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn an_outbox_is_small() {
        assert!(size_of::<Outbox>() <= 72, "{}", size_of::<Outbox>());
    }

    /// A message that is alone needs no queue, and neither does the next one after it was sent.
    #[test]
    fn a_message_at_a_time_needs_no_queue() {
        let limits = Limits { max_route_messages: 1, ..Limits::default() };
        let (mut outbox, request) = (Outbox::default(), RequestKey::new(1));
        for text in ["a", "b"] {
            let _ = outbox.push(&limits, message(Route::Standalone, text), Priority::Change);
            assert!(outbox.has_open() && outbox.holds(Route::Standalone) && outbox.is_full(&limits, Route::Standalone));
            assert!(!outbox.holds(Route::Reply(request)) && outbox.queue.is_none());
            assert_eq!(drain(&mut outbox), [text]);
        }
        let _ = outbox.push(&limits, message(Route::Related(request), "progress"), Priority::Progress);
        outbox.forget(request);
        let _ = outbox.push(&limits, message(Route::Reply(request), "answer"), Priority::Required);
        outbox.forget(request);
        assert_eq!(drain(&mut outbox), ["answer"]);
        let _ = outbox.push(&limits, message(Route::Standalone, "c"), Priority::Required);
        let _ = outbox.block(&limits, Route::Standalone);
        assert!(!outbox.has_open() && !outbox.is_empty() && outbox.is_full(&limits, Route::Standalone));
        outbox.unblock(Route::Standalone);
        assert_eq!(drain(&mut outbox), ["c"]);
        let _ = outbox.push(&limits, message(Route::Standalone, "d"), Priority::Required);
        assert!(outbox.only.is_some() && is_drained(&outbox));
    }

    fn drain(outbox: &mut Outbox) -> Vec<String> {
        std::iter::from_fn(|| outbox.pop())
            .map(|transmit| String::from_utf8(transmit.message.into_bytes()).unwrap())
            .collect()
    }

    #[test]
    fn a_slow_route_does_not_hold_up_others() {
        let limits = Limits::default();
        let (mut outbox, slow, fast) = (Outbox::default(), Route::Related(RequestKey::new(1)), Route::Standalone);
        let _ = outbox.push(&limits, message(slow, "a"), Priority::Required);
        let _ = outbox.block(&limits, slow);
        let _ = outbox.push(&limits, message(fast, "b"), Priority::Required);
        let _ = outbox.push(&limits, message(slow, "c"), Priority::Required);
        assert_eq!(drain(&mut outbox), ["b"]);
        outbox.unblock(slow);
        assert_eq!(drain(&mut outbox), ["a", "c"]);
        assert!(outbox.is_empty());
    }

    // covers: P-7
    #[test]
    fn progress_goes_first_and_changes_coalesce() {
        let limits = Limits { max_route_messages: 2, ..Limits::default() };
        let (mut outbox, route) = (Outbox::default(), Route::Standalone);
        let _ = outbox.block(&limits, route);
        for (text, priority) in [
            ("progress", Priority::Progress),
            ("changed", Priority::Change),
            ("changed", Priority::Change),
            ("log", Priority::Log),
            ("answer", Priority::Required),
        ] {
            let _ = outbox.push(&limits, message(route, text), priority);
        }
        outbox.unblock(route);
        assert_eq!(drain(&mut outbox), ["changed", "answer"]);
    }

    #[test]
    fn bytes_count_too() {
        let limits = Limits { max_route_bytes: 10, ..Limits::default() };
        let (mut outbox, route) = (Outbox::default(), Route::Standalone);
        let _ = outbox.block(&limits, route);
        assert_eq!(outbox.push(&limits, message(route, "12345678"), Priority::Progress), 0);
        assert_eq!(outbox.push(&limits, message(route, "12345678"), Priority::Progress), 1);
    }

    /// The limits apply to each stream, whether blocked or not.
    #[test]
    fn a_stream_that_is_not_blocked_is_bounded_too() {
        let limits = Limits { max_route_messages: 2, ..Limits::default() };
        let (mut outbox, one, other) = (Outbox::default(), Route::Related(RequestKey::new(1)), Route::Standalone);
        for round in 0..4 {
            let _ = outbox.push(&limits, message(one, &format!("progress {round}")), Priority::Progress);
            let _ = outbox.push(&limits, message(other, "changed"), Priority::Change);
        }
        let _ = outbox.push(&limits, message(Route::Reply(RequestKey::new(1)), "answer"), Priority::Required);
        assert_eq!(drain(&mut outbox), ["changed", "progress 2", "progress 3", "answer"]);
        assert!(outbox.is_empty() && is_drained(&outbox));
    }

    #[test]
    fn bytes_are_counted_until_they_leave() {
        let limits = Limits { max_outbox_bytes: 100, max_outbox_messages: 50, ..Limits::default() };
        let mut outbox = Outbox::default();
        for number in 0..50 {
            assert!(!outbox.is_saturated(&limits), "{number}");
            let _ = outbox.push(&limits, message(Route::Reply(RequestKey::new(number)), "a"), Priority::Required);
        }
        assert!(outbox.is_saturated(&limits));
        assert_eq!(drain(&mut outbox).len(), 50);
        assert!(!outbox.is_saturated(&limits));
        let _ = outbox.push(&limits, message(Route::Standalone, &"a".repeat(100)), Priority::Required);
        assert!(outbox.is_saturated(&limits));
        outbox.clear();
        assert!(!outbox.is_saturated(&limits) && outbox.queue.is_none());
    }
}
