//! All open HTTP+SSE sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use mcp_server::Principal;
use mcp_session::{SessionError, SessionId, SessionOptions};

use super::session::SseSession;
use crate::server::refusal::Refusal;

/// The open sessions by id. Their number is limited by the listen streams that are admitted.
#[derive(Default)]
pub(crate) struct SseSessions(Mutex<HashMap<SessionId, Arc<SseSession>>>);

impl SseSessions {
    pub(crate) fn insert(&self, session: &Arc<SseSession>) {
        self.lock().insert(session.id, Arc::clone(session));
    }

    pub(crate) fn remove(&self, id: &SessionId) {
        self.lock().remove(id);
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Finds the session of a POST, and checks its principal.
    pub(crate) fn find(
        &self,
        query: Option<&str>,
        principal: Option<&Principal>,
        options: &SessionOptions,
    ) -> Result<Arc<SseSession>, Refusal> {
        let Some(id) = session_id(query)? else {
            let text = "`sessionId` is missing: GET the event stream first and POST to the endpoint that its first event \
                        names, or use the Streamable HTTP endpoint";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
        };
        let session = SessionId::parse(id).ok().and_then(|id| self.lock().get(&id).map(Arc::clone));
        let session = session.ok_or_else(unknown_session)?;
        if session.principal.as_ref() != principal {
            tracing::debug!(target: "mcp", session = ?session.id, "request refused: the session belongs to another principal");
            let error = options.wrong_owner_error();
            return Err(match error == SessionError::Unknown {
                true => unknown_session(),
                false => Refusal::new(StatusCode::FORBIDDEN, error.to_string()),
            });
        }
        Ok(session)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<SseSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses an unknown session id.
pub(crate) fn unknown_session() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "unknown session: it ended with its event stream, so GET a new one")
}

/// Reads the session id from a query. A repeated id is treated as unknown.
// S4.112
fn session_id(query: Option<&str>) -> Result<Option<&str>, Refusal> {
    let mut ids = query.unwrap_or_default().split('&').filter_map(|pair| pair.strip_prefix("sessionId="));
    match (ids.next(), ids.next()) {
        (id, None) => Ok(id),
        (_, Some(_)) => Err(unknown_session()),
    }
}
