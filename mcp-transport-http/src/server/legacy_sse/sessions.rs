//! All clients whose streams are open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use mcp_server::Principal;
use mcp_session::{Refused, SessionId, SessionOptions};

use super::session::SseSession;
use crate::server::refusal::Refusal;

/// Who is found by the id in the query of a POST. There are as many as there are streams, which are counted elsewhere.
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

    /// Finds whom a POST is from, if whoever sends it may say so.
    pub(crate) fn find(
        &self,
        query: Option<&str>,
        principal: Option<&Principal>,
        options: &SessionOptions,
    ) -> Result<Arc<SseSession>, Refusal> {
        let Some(id) = session_id(query)? else {
            let text = "messages go to the address that the first event of the stream names, with its `sessionId`: \
                        GET the stream first, or send this to the endpoint of Streamable HTTP";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, text));
        };
        let session = SessionId::parse(id).ok().and_then(|id| self.lock().get(&id).map(Arc::clone));
        let session = session.ok_or_else(unknown_session)?;
        if session.principal.as_ref() != principal {
            tracing::debug!(target: "mcp", session = ?session.id, "somebody else's session was named");
            let answer = options.answer_to_stranger();
            return Err(match answer == Refused::Unknown {
                true => unknown_session(),
                false => Refusal::new(StatusCode::FORBIDDEN, answer.to_string()),
            });
        }
        Ok(session)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<SseSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that is over, or never was.
pub(crate) fn unknown_session() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "there is no such session: it ends with its stream, so GET a new one")
}

/// The id that a query names; twice is as good as one that nobody has.
// S4.112
fn session_id(query: Option<&str>) -> Result<Option<&str>, Refusal> {
    let mut ids = query.unwrap_or_default().split('&').filter_map(|pair| pair.strip_prefix("sessionId="));
    match (ids.next(), ids.next()) {
        (id, None) => Ok(id),
        (_, Some(_)) => Err(unknown_session()),
    }
}
