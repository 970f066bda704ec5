//! Those who listen to changes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::body::Body;
use crate::tools::event;

#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<Listener>>);

struct Listener {
    /// The id of the subscription, as it is written in JSON.
    id: String,
    events: UnboundedSender<Bytes>,
}

impl Listeners {
    fn lock(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a listener; returns its stream, which begins with the acknowledgement.
    pub(crate) fn add(&self, id: Value, filter: &Value) -> Body {
        let (events, body) = Body::events();
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
        // Whoever has hung up already is found out at the next change.
        let _ = events.send(event(&json!({
            "jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": { "_meta": meta, "notifications": filter },
        })));
        self.lock().push(Listener { id: id.to_string(), events });
        body
    }

    /// Tells all listeners that the list of tools has changed: the text is made once, the ids are put in.
    pub(crate) fn publish(&self) {
        self.lock().retain(|Listener { id, events }| events.send([BEFORE_ID, id, AFTER_ID].concat().into()).is_ok());
    }
}

const BEFORE_ID: &str = r#"data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"#;

const AFTER_ID: &str = "}}}\n\n";
