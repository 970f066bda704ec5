//! Sessions, as few as can be: names in a table.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyper::HeaderMap;
use tokio::sync::mpsc::UnboundedSender;

use crate::body::Body;

/// The streams of all sessions, by name.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Option<UnboundedSender<Bytes>>>>);

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Option<UnboundedSender<Bytes>>>> {
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
