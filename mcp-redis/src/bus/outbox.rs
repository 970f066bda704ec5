//! The messages that are not published yet.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The queue between callers, which never wait, and the task that publishes.
pub(crate) struct Outbox {
    state: Mutex<State>,
    wake: Notify,
    max_messages: usize,
    max_bytes: usize,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Arc<[u8]>>,
    /// Those that are queued, and not being sent: an equal message is as good as these. One that is being sent may have
    /// arrived before the change that is published now.
    waiting: HashSet<Arc<[u8]>>,
    in_flight: usize,
    bytes: usize,
    /// Whether messages were lost, which the other instances have to know.
    has_lost: bool,
    is_closed: bool,
}

/// Messages to be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) messages: Vec<Arc<[u8]>>,
    /// Whether others have to be told that messages were lost.
    pub(crate) has_lost: bool,
}

impl Outbox {
    pub(crate) fn new(max_messages: usize, max_bytes: usize) -> Self {
        Self { state: Mutex::default(), wake: Notify::new(), max_messages, max_bytes }
    }

    pub(crate) fn push(&self, message: &[u8]) {
        let mut state = self.lock();
        if state.is_closed || state.waiting.contains(message) {
            return;
        }
        if state.messages.len() >= self.max_messages || state.bytes.saturating_add(message.len()) > self.max_bytes {
            // Others are told that everything may have changed, which the queued messages do not add to.
            state.lose_all();
        } else {
            let message: Arc<[u8]> = message.into();
            state.bytes += message.len();
            state.waiting.insert(message.clone());
            state.messages.push_back(message);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Waits for messages; `None` if the queue was closed, and all were sent.
    pub(crate) async fn next(&self) -> Option<Batch> {
        loop {
            {
                let mut state = self.lock();
                if state.has_lost || !state.messages.is_empty() {
                    return Some(state.take());
                }
                if state.is_closed {
                    return None;
                }
            }
            self.wake.notified().await;
        }
    }

    /// Removes the messages of the last batch, which was sent. Some of them may have been refused, and are lost.
    pub(crate) fn finish(&self, has_refused: bool) {
        let mut state = self.lock();
        for _ in 0..std::mem::take(&mut state.in_flight) {
            if let Some(sent) = state.messages.pop_front() {
                state.bytes -= sent.len();
            }
        }
        state.has_lost |= has_refused;
    }

    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Batch {
        let messages: Vec<Arc<[u8]>> = self.messages.iter().take(BATCH).cloned().collect();
        for message in &messages {
            self.waiting.remove(message);
        }
        self.in_flight = messages.len();
        Batch { messages, has_lost: std::mem::take(&mut self.has_lost) }
    }

    /// Drops all messages that are not being sent.
    fn lose_all(&mut self) {
        self.has_lost = true;
        self.waiting.clear();
        for lost in self.messages.split_off(self.in_flight.min(self.messages.len())) {
            self.bytes -= lost.len();
        }
    }
}

/// How many messages are sent at once.
const BATCH: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(outbox: &Outbox) -> (Vec<String>, bool) {
        let batch = outbox.next().await.unwrap();
        let texts = batch.messages.iter().map(|message| String::from_utf8(message.to_vec()).unwrap()).collect();
        (texts, batch.has_lost)
    }

    #[tokio::test]
    async fn equal_messages_are_sent_once_unless_one_is_on_its_way() {
        let outbox = Outbox::new(10, 1000);
        for text in ["a", "b", "a", "b"] {
            outbox.push(text.as_bytes());
        }
        assert_eq!(next(&outbox).await, (vec!["a".to_owned(), "b".to_owned()], false));
        outbox.push(b"a");
        outbox.push(b"a");
        outbox.finish(false);
        assert_eq!(next(&outbox).await, (vec!["a".to_owned()], false));
        outbox.finish(false);
        assert_eq!(outbox.lock().bytes, 0);
    }

    /// Whatever is lost is told, and what does not fit takes the rest along.
    #[tokio::test]
    async fn losses_are_told() {
        for outbox in [Outbox::new(2, 1000), Outbox::new(10, 2)] {
            let fill = || ["a", "b", "c"].iter().for_each(|text| outbox.push(text.as_bytes()));
            fill();
            assert_eq!(next(&outbox).await, (Vec::new(), true));
            fill();
            outbox.finish(false);
            assert_eq!(next(&outbox).await, (Vec::new(), true), "more was lost while the others were told");
            outbox.finish(true);
            assert_eq!(next(&outbox).await, (Vec::new(), true), "it was refused");
            outbox.finish(false);
            outbox.push(b"d");
            assert_eq!(next(&outbox).await, (vec!["d".to_owned()], false));
        }
    }

    #[tokio::test]
    async fn what_is_queued_at_the_end_is_sent() {
        let outbox = Outbox::new(10, 1000);
        outbox.push(b"a");
        outbox.close();
        outbox.push(b"b");
        assert_eq!(next(&outbox).await, (vec!["a".to_owned()], false));
        outbox.finish(false);
        assert_eq!(outbox.next().await, None);
    }
}
