//! Requests to the peer that are open.
//!
//! ```text
//!            start
//!              |
//!            open ---- progress: the idle deadline starts anew
//!     ________/|\________________
//!    |      |      |      |      |
//!  result error cancel timeout disconnect      exactly one of them
//! ```

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mcp_types::{ProgressToken, RequestId};

use crate::deadlines::{Deadlines, Wake};
use crate::{CallId, RequestKey};

/// How long a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallOptions {
    /// How long the peer may be silent; progress starts it anew (K-12). Default: 60 s.
    pub idle: Option<Duration>,
    /// How long the call may take whatever progress arrives (K-13). Default: 10 min.
    pub limit: Option<Duration>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self { idle: Some(Duration::from_secs(60)), limit: Some(Duration::from_secs(600)) }
    }
}

impl CallOptions {
    /// Replaces [`idle`](Self::idle).
    #[must_use]
    pub fn with_idle(self, idle: Option<Duration>) -> Self {
        Self { idle, ..self }
    }

    /// Replaces [`limit`](Self::limit).
    #[must_use]
    pub fn with_limit(self, limit: Option<Duration>) -> Self {
        Self { limit, ..self }
    }
}

pub(crate) struct OpenCall {
    pub(crate) id: RequestId,
    /// The token that our own application chose. On the wire the id stands for it, so that tokens never collide.
    pub(crate) token: Option<ProgressToken>,
    /// The request of the peer on whose stream the call travels.
    pub(crate) related: Option<RequestKey>,
    idle: Option<Duration>,
    idle_at: Option<Instant>,
    limit_at: Option<Instant>,
}

/// The calls that are open. Ids start at 1 and are never used again.
#[derive(Default)]
pub(crate) struct Calls {
    open: BTreeMap<CallId, OpenCall>,
    started: u64,
}

impl Calls {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn start(
        &mut self,
        now: Instant,
        options: CallOptions,
        deadlines: &mut Deadlines,
    ) -> (CallId, RequestId) {
        self.started += 1;
        let (call, id) = (CallId::new(self.started), RequestId::from(i64::try_from(self.started).unwrap_or(i64::MAX)));
        let idle_at = options.idle.and_then(|idle| now.checked_add(idle));
        let limit_at = options.limit.and_then(|limit| now.checked_add(limit));
        if let Some(at) = idle_at {
            deadlines.arm(at, Wake::CallIdle(call));
        }
        if let Some(at) = limit_at {
            deadlines.arm(at, Wake::CallLimit(call));
        }
        let open = OpenCall { id: id.clone(), token: None, related: None, idle: options.idle, idle_at, limit_at };
        self.open.insert(call, open);
        (call, id)
    }

    /// Ends a call; its deadlines go with it.
    pub(crate) fn end(&mut self, call: CallId, deadlines: &mut Deadlines) -> Option<OpenCall> {
        let ended = self.open.remove(&call)?;
        if let Some(at) = ended.idle_at {
            deadlines.disarm(at, Wake::CallIdle(call));
        }
        if let Some(at) = ended.limit_at {
            deadlines.disarm(at, Wake::CallLimit(call));
        }
        Some(ended)
    }

    pub(crate) fn get_mut(&mut self, call: CallId) -> Option<&mut OpenCall> {
        self.open.get_mut(&call)
    }

    /// The id of a call is its number.
    fn by_number(&self, number: i64) -> Option<CallId> {
        let call = CallId::new(u64::try_from(number).ok()?);
        self.open.contains_key(&call).then_some(call)
    }

    pub(crate) fn by_id(&self, id: &RequestId) -> Option<CallId> {
        self.by_number(id.as_i64()?)
    }

    /// Starts the idle deadline anew; the token of a call is its id.
    pub(crate) fn progress(
        &mut self,
        now: Instant,
        token: &ProgressToken,
        deadlines: &mut Deadlines,
    ) -> Option<CallId> {
        let call = self.by_number(token.as_i64()?)?;
        let open = self.open.get_mut(&call)?;
        if let (Some(idle), Some(old)) = (open.idle, open.idle_at) {
            deadlines.disarm(old, Wake::CallIdle(call));
            open.idle_at = now.checked_add(idle);
            if let Some(at) = open.idle_at {
                deadlines.arm(at, Wake::CallIdle(call));
            }
        }
        Some(call)
    }

    /// The calls that came up during a request.
    pub(crate) fn related_to(&self, request: RequestKey) -> Vec<CallId> {
        self.open.iter().filter(|(_, open)| open.related == Some(request)).map(|(call, _)| *call).collect()
    }

    pub(crate) fn all(&self) -> Vec<CallId> {
        self.open.keys().copied().collect()
    }
}
