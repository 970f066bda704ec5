//! The membership of a server in its bus.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use mcp_kernel::Change;

use crate::bus::change_bus::{BusEvent, BusMember, BusReceiver, ChangeBus};
use crate::bus::message::Message;
use crate::connection::broadcast::Notice;
use crate::serve::sent_notification::publish_span;
use crate::server::{Server, WeakServer};
use crate::visibility::audience::Audience;
use crate::visibility::guard::Guard;

/// How many changed items with a predicate a server remembers.
const MAX_REMEMBERED: usize = 1024;

/// A server's connection to the other instances.
pub(crate) struct BusLink {
    member: Box<dyn BusMember>,
    /// Items with a predicate that updates of this instance have added or removed. Another instance that removes an item later
    /// names it, and the predicate decides who is notified here, where the item is gone already.
    remembered: Mutex<VecDeque<Remembered>>,
}

struct Remembered {
    list: Change,
    name: String,
    guard: Guard,
}

impl BusLink {
    pub(crate) fn join(bus: &dyn ChangeBus, server: WeakServer) -> Self {
        let receiver = BusReceiver::new(move |event| {
            if let Some(server) = server.upgrade() {
                server.handle_bus(event);
            }
        });
        Self { member: bus.join(receiver), remembered: Mutex::default() }
    }

    /// Tells the other instances of a change. `items` are those that changed in a list, if none of them is visible to all.
    pub(crate) fn publish(&self, server: &Server, change: &Change, audience: &Audience, items: Option<Vec<String>>) {
        for message in Message::of(&server.info().name, change, audience, items) {
            self.member.publish(&message.encode());
        }
    }

    /// Remembers the items of a list that an update has added or removed.
    pub(crate) fn remember(&self, list: &Change, items: &[(String, Guard)]) {
        let mut forgotten = Vec::new();
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, guard) in items {
            let known = remembered.iter().position(|known| known.name == *name && known.list == *list);
            forgotten.extend(known.and_then(|position| remembered.remove(position)));
            if remembered.len() >= MAX_REMEMBERED {
                forgotten.extend(remembered.pop_front());
            }
            remembered.push_back(Remembered { list: list.clone(), name: name.clone(), guard: guard.clone() });
        }
        drop(remembered);
        // Dropped without the lock, as predicates are code of the application.
        drop(forgotten);
    }

    fn recall(&self, list: &Change, name: &str) -> Option<Guard> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.iter().find(|known| known.name == name && known.list == *list).map(|known| known.guard.clone())
    }
}

/// What other instances tell.
impl Server {
    fn handle_bus(&self, event: BusEvent<'_>) {
        let bytes = match event {
            BusEvent::Gap => return self.announce_everything("messages of other instances may have been lost"),
            BusEvent::Message(bytes) => bytes,
        };
        // A newer version may have sent something that it understands.
        let Some(message) = Message::decode(bytes) else {
            return self.announce_everything("a message of another instance was not understood");
        };
        if message.server != self.info().name {
            return;
        }
        let Some(change) = message.change() else {
            return self.announce_everything("a message of another instance was not understood");
        };
        let guards = match &message.items {
            Some(items) => self.guards_of_items(&change, items),
            None => self.guards_of(&change),
        };
        let _span = publish_span(self, &change);
        self.broadcast().publish(&Notice::new(self, &change, &message.audience(), guards));
    }

    /// The predicates of items in a list that changed elsewhere; `None` if one of them is visible to all here. Items that this
    /// instance never had are visible to no client here: if it gets them, its own update notifies its clients.
    fn guards_of_items(&self, list: &Change, names: &[String]) -> Option<Vec<Guard>> {
        let registry = self.registry();
        let mut guards = Vec::new();
        for name in names {
            match registry.list_guard(list, name) {
                Some(guard) if guard.is_open() => return None,
                Some(guard) => guards.push(guard),
                None => guards.extend(self.bus().and_then(|bus| bus.recall(list, name))),
            }
        }
        Some(guards)
    }

    /// Notifies each client of everything that it subscribed to.
    fn announce_everything(&self, reason: &'static str) {
        tracing::warn!(target: "mcp", reason, "clients are notified that everything may have changed");
        self.broadcast().publish_everything(self);
    }
}
