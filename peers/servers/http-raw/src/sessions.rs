//! Sessions, as few as can be: names in a table.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyper::HeaderMap;
use serde_json::json;
use tokio::sync::mpsc::UnboundedSender;

use crate::body::Body;
use crate::tools::event;

/// The streams of all sessions, by name.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<String, Option<UnboundedSender<Bytes>>>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Option<UnboundedSender<Bytes>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session; returns its name, which anybody could guess.
    pub(crate) fn begin(&self) -> String {
        let mut sessions = self.lock();
        let name = format!("{:032x}", sessions.len());
        sessions.insert(name.clone(), None);
        name
    }

    /// Whether a request names a session.
    pub(crate) fn has(&self, headers: &HeaderMap) -> bool {
        name(headers).is_some_and(|name| self.lock().contains_key(name))
    }

    /// Sends to all sessions with a stream that the list of tools has changed.
    pub(crate) fn publish(&self) {
        let event = event(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
        for stream in self.lock().values_mut().flatten() {
            // A client that has disconnected does not want to know.
            let _ = stream.send(event.clone());
        }
    }

    /// Opens the stream of a session, if there is one.
    pub(crate) fn listen(&self, headers: &HeaderMap) -> Option<Body> {
        let mut sessions = self.lock();
        let session = sessions.get_mut(name(headers)?)?;
        let (events, body) = Body::events();
        *session = Some(events);
        Some(body)
    }
}

fn name(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

pub(crate) const SESSION: &str = "mcp-session-id";
