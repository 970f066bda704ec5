//! The messages that are queued for the server.

use std::collections::VecDeque;

use super::event::Transmit;
use crate::limits::Limits;
use crate::queue::{pop, push};

/// A queue that counts its messages.
#[derive(Default)]
pub(super) struct Outbox {
    queue: VecDeque<Transmit>,
    /// The size of all messages.
    bytes: usize,
    /// The number and the size of responses.
    responses: usize,
    response_bytes: usize,
}

impl Outbox {
    pub(super) fn push(&mut self, transmit: Transmit) {
        self.bytes += transmit.size();
        if transmit.is_response() {
            self.responses += 1;
            self.response_bytes += transmit.size();
        }
        push(&mut self.queue, transmit);
    }

    pub(super) fn pop(&mut self) -> Option<Transmit> {
        let transmit = pop(&mut self.queue)?;
        self.bytes -= transmit.size();
        if transmit.is_response() {
            self.responses -= 1;
            self.response_bytes -= transmit.size();
        }
        Some(transmit)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns whether no request or notification may be added.
    pub(super) fn is_full(&self, limits: &Limits) -> bool {
        self.queue.len() >= limits.max_outbox_messages || self.bytes >= limits.max_outbox_bytes
    }

    /// Returns whether too many responses are queued. Other messages do not count: a server may have to send results
    /// before it reads on.
    pub(super) fn is_full_of_responses(&self, limits: &Limits) -> bool {
        self.responses >= limits.max_outbox_messages || self.response_bytes >= limits.max_outbox_bytes
    }
}
