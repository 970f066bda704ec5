//! The streams of `subscriptions/listen`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;

use crate::stream::Stream;

#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<Listener>>);

struct Listener {
    /// The id of the subscription, as it is written in JSON.
    id: Box<str>,
    stream: Arc<Stream>,
}

impl Listeners {
    fn lock(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a subscription; returns its stream, which begins with the acknowledgement.
    pub(crate) fn add(&self, id: &RawValue, filter: &RawValue) -> Arc<Stream> {
        let stream = Arc::new(Stream::default());
        let (id, filter) = (id.get(), filter.get());
        stream.send([ACKNOWLEDGED, id, FILTER, filter, "}}\n\n"].concat().into());
        self.lock().push(Listener { id: id.into(), stream: Arc::clone(&stream) });
        stream
    }

    /// Sends to all that the list of tools has changed: each has its id in it, and is copied once.
    pub(crate) fn publish(&self) {
        self.lock().retain(|Listener { id, stream }| {
            let is_open = stream.is_open();
            if is_open {
                stream.send([CHANGED, id, "}}}\n\n"].concat().into());
            }
            is_open
        });
    }
}

const ACKNOWLEDGED: &str = r#"data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"#;

const FILTER: &str = r#"},"notifications":"#;

const CHANGED: &str = r#"data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"#;
