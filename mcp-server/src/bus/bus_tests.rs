//! Tests for implementations of [`ChangeBus`].
//!
//! # Examples
//!
//! ```
//! use mcp_server::bus::{MemoryChangeBus, bus_tests};
//!
//! # async fn test() {
//! let make = async || {
//!     let bus = MemoryChangeBus::default();
//!     (bus.clone(), bus)
//! };
//! bus_tests::check_change_bus(make, async |bus: &MemoryChangeBus| bus.report_gap(), async || ()).await;
//! # }
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use crate::bus::{BusEvent, BusMember, BusReceiver, ChangeBus};

/// Tests an implementation of [`ChangeBus`]. `make` creates a new bus and returns it as two processes have it; it is connected
/// at both. `interrupt` breaks the connections of both, which then get new ones, and `sleep` waits for a moment.
///
/// # Panics
///
/// Panics if the bus does not behave as the trait requires. Does not end if something does not arrive.
pub async fn check_change_bus<B: ChangeBus>(
    make: impl AsyncFn() -> (B, B),
    interrupt: impl AsyncFn(&B),
    sleep: impl AsyncFn(),
) {
    messages_reach_all_others(&make().await, &sleep).await;
    members_may_leave(&make().await, &sleep).await;
    gaps_are_reported(&make().await, &interrupt, &sleep).await;
}

/// A member, and what it has received.
struct Member {
    membership: Box<dyn BusMember>,
    received: Arc<Mutex<Received>>,
}

#[derive(Default)]
struct Received {
    messages: Vec<Vec<u8>>,
    gaps: usize,
}

impl Member {
    fn join(bus: &impl ChangeBus) -> Self {
        let received = Arc::new(Mutex::new(Received::default()));
        let log = Arc::clone(&received);
        let receiver = BusReceiver::new(move |event| {
            let mut received = log.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                BusEvent::Message(message) => received.messages.push(message.to_vec()),
                BusEvent::Gap => received.gaps += 1,
            }
        });
        Self { membership: bus.join(receiver), received }
    }

    fn publish(&self, message: impl AsRef<[u8]>) {
        self.membership.publish(message.as_ref());
    }

    /// Has it received this message, and has it seen a gap?
    fn has(&self, message: &[u8]) -> bool {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).messages.iter().any(|found| found == message)
    }

    fn gaps(&self) -> usize {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).gaps
    }

    async fn waits_for(&self, message: impl AsRef<[u8]>, sleep: &impl AsyncFn()) {
        while !self.has(message.as_ref()) {
            sleep().await;
        }
    }
}

async fn messages_reach_all_others<B: ChangeBus>(bus: &(B, B), sleep: &impl AsyncFn()) {
    let [one, neighbour, far] = [Member::join(&bus.0), Member::join(&bus.0), Member::join(&bus.1)];
    let all_bytes: Vec<u8> = (0..=255).collect();
    let messages = [Vec::new(), all_bytes, vec![b'a'; 50_000]];
    for message in &messages {
        one.publish(message);
    }
    for message in &messages {
        far.waits_for(message, sleep).await;
        neighbour.waits_for(message, sleep).await;
    }
    far.publish("back");
    one.waits_for("back", sleep).await;
    neighbour.waits_for("back", sleep).await;
    for message in &messages {
        assert!(!one.has(message), "a member does not get its own messages");
    }
    assert!(!far.has(b"back"), "a member does not get its own messages");
    for number in 0..1000 {
        one.publish(format!("message {number}"));
    }
    for number in 0..1000 {
        far.waits_for(format!("message {number}"), sleep).await;
    }
    assert_eq!(far.gaps() + one.gaps() + neighbour.gaps(), 0, "nothing was lost");
}

async fn members_may_leave<B: ChangeBus>(bus: &(B, B), sleep: &impl AsyncFn()) {
    let [one, other, left] = [Member::join(&bus.0), Member::join(&bus.1), Member::join(&bus.1)];
    let received = Arc::clone(&left.received);
    drop(left);
    one.publish("after the end");
    other.waits_for("after the end", sleep).await;
    assert!(received.lock().unwrap_or_else(PoisonError::into_inner).messages.is_empty(), "it has left");
    let late = Member::join(&bus.1);
    one.publish("for all");
    late.waits_for("for all", sleep).await;
    assert!(!late.has(b"after the end"), "a member gets what is published after it has joined");
}

async fn gaps_are_reported<B: ChangeBus>(bus: &(B, B), interrupt: &impl AsyncFn(&B), sleep: &impl AsyncFn()) {
    let [one, other] = [Member::join(&bus.0), Member::join(&bus.1)];
    for round in 1..=3 {
        let before = [one.gaps(), other.gaps()];
        interrupt(&bus.1).await;
        one.publish(format!("in the dark {round}"));
        while one.gaps() == before[0] || other.gaps() == before[1] {
            sleep().await;
        }
        // Whatever is published after the gap was reported arrives.
        one.publish(format!("after gap {round}"));
        other.waits_for(format!("after gap {round}"), sleep).await;
        other.publish(format!("back {round}"));
        one.waits_for(format!("back {round}"), sleep).await;
    }
}
