//! A bus in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::bus::change_bus::{BusEvent, BusMember, BusReceiver, ChangeBus};

/// A [`ChangeBus`] in memory, for several servers in one process, and for tests. Clones are the same bus.
///
/// Messages are delivered before `publish` returns. Nothing is queued and nothing is lost.
#[derive(Clone, Default)]
pub struct MemoryChangeBus(Arc<Mutex<Members>>);

#[derive(Default)]
struct Members {
    by_number: BTreeMap<u64, BusReceiver>,
    last: u64,
}

impl MemoryChangeBus {
    /// Reports a gap to all members, as a bus does after its connection was lost; for tests.
    pub fn report_gap(&self) {
        self.send(None, BusEvent::Gap);
    }

    /// Calls all members but one, without the lock.
    fn send(&self, except: Option<u64>, event: BusEvent<'_>) {
        let others: Vec<BusReceiver> = {
            let members = self.lock();
            let others = members.by_number.iter().filter(|(number, _)| Some(**number) != except);
            others.map(|(_, receiver)| receiver.clone()).collect()
        };
        others.iter().for_each(|receiver| receiver.receive(event));
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeBus for MemoryChangeBus {
    fn join(&self, receiver: BusReceiver) -> Box<dyn BusMember> {
        let mut members = self.lock();
        members.last += 1;
        let number = members.last;
        members.by_number.insert(number, receiver);
        drop(members);
        Box::new(Member { bus: self.clone(), number })
    }
}

impl fmt::Debug for MemoryChangeBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.lock().by_number.len();
        f.debug_struct("MemoryChangeBus").field("members", &members).finish()
    }
}

struct Member {
    bus: MemoryChangeBus,
    number: u64,
}

impl BusMember for Member {
    fn publish(&self, message: &[u8]) {
        self.bus.send(Some(self.number), BusEvent::Message(message));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let left = self.bus.lock().by_number.remove(&self.number);
        // Dropped without the lock, as it is code of the application.
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::bus::bus_tests::check_change_bus;

    #[test]
    fn memory_does_what_buses_do() {
        let make = async || {
            let bus = MemoryChangeBus::default();
            (bus.clone(), bus)
        };
        let check = pin!(check_change_bus(make, async |bus: &MemoryChangeBus| bus.report_gap(), async || ()));
        assert!(matches!(check.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(())));
    }

    #[test]
    fn nothing_stays_of_members_that_left() {
        let bus = MemoryChangeBus::default();
        let member = bus.join(BusReceiver::new(|_| ()));
        assert_eq!(format!("{bus:?}"), "MemoryChangeBus { members: 1 }");
        drop(member);
        assert_eq!(format!("{bus:?}"), "MemoryChangeBus { members: 0 }");
    }
}
