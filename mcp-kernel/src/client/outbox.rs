//! What waits to be sent to a server.

use std::collections::VecDeque;

use super::event::Transmit;
use crate::limits::Limits;
use crate::queue::{pop, push};

/// A queue that knows what it holds.
#[derive(Default)]
pub(super) struct Outbox {
    queue: VecDeque<Transmit>,
    /// What all messages hold.
    bytes: usize,
    /// How many of them are answers, and what those hold.
    answers: usize,
    answer_bytes: usize,
}

impl Outbox {
    pub(super) fn push(&mut self, transmit: Transmit) {
        self.bytes += transmit.size();
        if transmit.is_answer() {
            self.answers += 1;
            self.answer_bytes += transmit.size();
        }
        push(&mut self.queue, transmit);
    }

    pub(super) fn pop(&mut self) -> Option<Transmit> {
        let transmit = pop(&mut self.queue)?;
        self.bytes -= transmit.size();
        if transmit.is_answer() {
            self.answers -= 1;
            self.answer_bytes -= transmit.size();
        }
        Some(transmit)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether there is no room for more of our own.
    pub(super) fn is_full(&self, limits: &Limits) -> bool {
        self.queue.len() >= limits.max_outbox_messages || self.bytes >= limits.max_outbox_bytes
    }

    /// Whether as many answers wait as the limits allow. The rest does not count: a server may have to get rid of its
    /// results before it reads on.
    pub(super) fn is_full_of_answers(&self, limits: &Limits) -> bool {
        self.answers >= limits.max_outbox_messages || self.answer_bytes >= limits.max_outbox_bytes
    }
}
