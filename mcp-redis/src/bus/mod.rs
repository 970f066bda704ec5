//! The change bus.

mod inbox;
mod outbox;
mod sender;
mod subscription;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_server::bus::{BusEvent, BusMember, BusReceiver, ChangeBus};
use mcp_session::StoreError;

use crate::Shared;
use crate::keys::hex;

use inbox::Inbox;
use outbox::Outbox;
use sender::Sender;
use subscription::Subscription;

/// A [`ChangeBus`] over Redis, for the instances with the same Redis server and prefix; created by
/// [`Redis::change_bus`](crate::Redis::change_bus). Clones share one connection.
///
/// Messages are published in a channel and are not stored. Publishing never waits and never fails: while Redis is unavailable,
/// messages are queued, equal ones once, up to [`RedisOptions::max_queued_changes`](crate::RedisOptions::max_queued_changes)
/// and [`max_queued_bytes`](crate::RedisOptions::max_queued_bytes).
///
/// # When messages may be lost
///
/// Messages have numbers, and the connection is checked every five seconds. A member gets a [gap](BusEvent::Gap) when
///
/// - its connection to Redis was lost, once there is a new one,
/// - a number is missing, or it was too slow to read all messages,
/// - another instance has lost a message, because its queue was full or Redis refused it.
///
/// What an instance has not sent when its process ends is lost.
#[derive(Clone)]
pub struct RedisChangeBus(Arc<Bus>);

/// The members of this process, and their connection.
struct Bus {
    members: Mutex<Members>,
    outbox: Arc<Outbox>,
    inbox: Arc<Inbox>,
}

#[derive(Default)]
struct Members {
    by_number: BTreeMap<u64, BusReceiver>,
    last: u64,
}

impl RedisChangeBus {
    /// Subscribes, and spawns the tasks that send and receive.
    pub(crate) async fn connect(shared: &Shared) -> Result<Self, StoreError> {
        let mut origin = [0; 16];
        getrandom::fill(&mut origin).map_err(|error| StoreError(format!("the random source failed: {error}")))?;
        let origin = hex(&origin);
        let options = &shared.options;
        let outbox = Arc::new(Outbox::new(options.max_queued_changes, options.max_queued_bytes));
        let inbox = Arc::new(Inbox::new(options.max_queued_changes, options.max_queued_bytes));
        let bus = Arc::new(Bus { members: Mutex::default(), outbox: outbox.clone(), inbox: inbox.clone() });
        let subscription = Subscription::new(shared, origin.clone(), inbox, Arc::downgrade(&bus)).await?;
        tokio::spawn(subscription.run());
        tokio::spawn(Sender { connection: shared.connect(), keys: shared.keys.clone(), outbox, origin }.run());
        Ok(Self(bus))
    }
}

impl Bus {
    /// Calls all members of this process but one, without the lock.
    fn deliver(&self, except: Option<u64>, event: BusEvent<'_>) {
        let others: Vec<BusReceiver> = {
            let members = self.lock();
            let others = members.by_number.iter().filter(|(number, _)| Some(**number) != except);
            others.map(|(_, receiver)| receiver.clone()).collect()
        };
        others.iter().for_each(|receiver| receiver.receive(event));
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.outbox.close();
        self.inbox.close();
    }
}

impl ChangeBus for RedisChangeBus {
    fn join(&self, receiver: BusReceiver) -> Box<dyn BusMember> {
        let mut members = self.0.lock();
        members.last += 1;
        let number = members.last;
        members.by_number.insert(number, receiver);
        drop(members);
        Box::new(Member { bus: Arc::clone(&self.0), number })
    }
}

impl fmt::Debug for RedisChangeBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.0.lock().by_number.len();
        f.debug_struct("RedisChangeBus").field("members", &members).finish_non_exhaustive()
    }
}

struct Member {
    bus: Arc<Bus>,
    number: u64,
}

impl BusMember for Member {
    fn publish(&self, message: &[u8]) {
        self.bus.outbox.push(message);
        // Redis sends it to other processes only.
        self.bus.deliver(Some(self.number), BusEvent::Message(message));
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let left = self.bus.lock().by_number.remove(&self.number);
        // Dropped without the lock, as it is code of the application.
        drop(left);
    }
}
