//! The requests to the peer that are in flight, called calls.
//!
//! ```text
//!            start
//!              |
//!          in flight ---- progress: restarts the idle timeout
//!              |     |--- request of the peer: stops the idle timeout until it has a response
//!              |     \--- pause: stops both timeouts, which continue afterwards with what was left
//!     ________/|\________________
//!    |      |      |      |      |
//!  result error cancel timeout disconnect      exactly one of them
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mcp_types::jsonrpc::{EnvelopeKind, EnvelopeSummary};
use mcp_types::{ProgressNotificationParams, ProgressToken, RequestId};

use crate::deadlines::{DeadlineKind, Deadlines};
use crate::errors::PeerMisbehaved;
use crate::{CallId, RequestKey, Time};

/// The timeouts of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallOptions {
    /// How long the call may go without progress. Progress restarts it. It stops while the peer waits for the response to
    /// a request of its own, and restarts with that response. Defaults to 60 seconds.
    pub idle_timeout: Option<Duration>,
    /// How long the call may take in all. Defaults to 10 minutes.
    pub total_timeout: Option<Duration>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self { idle_timeout: Some(Duration::from_secs(60)), total_timeout: Some(Duration::from_secs(600)) }
    }
}

impl CallOptions {
    /// Sets [`idle_timeout`](Self::idle_timeout).
    #[must_use]
    pub fn idle_timeout(self, idle_timeout: Option<Duration>) -> Self {
        Self { idle_timeout, ..self }
    }

    /// Sets [`total_timeout`](Self::total_timeout).
    #[must_use]
    pub fn total_timeout(self, total_timeout: Option<Duration>) -> Self {
        Self { total_timeout, ..self }
    }
}

pub(crate) struct OpenCall {
    pub(crate) id: RequestId,
    /// The progress token of the application. The call's id is sent in its place, so that tokens never collide.
    pub(crate) token: Option<ProgressToken>,
    /// The request of the peer on whose stream the call is sent.
    pub(crate) related: Option<RequestKey>,
    idle: Option<Duration>,
    /// When the idle timeout expires; `None` while it is stopped.
    idle_at: Option<Time>,
    limit_at: Option<Time>,
    peer_requests: PeerRequests,
    /// How many pauses the call is in, also those of all calls.
    pauses: usize,
    /// Since when it is paused: no deadline of the call is armed, and the times above are what they were then.
    paused_at: Option<Time>,
}

impl OpenCall {
    /// Restarts the idle timeout.
    fn restart_idle(&mut self, now: Time, call: CallId, deadlines: &mut Deadlines) {
        let Some(idle) = self.idle else { return };
        let at = self.paused_at.unwrap_or(now) + idle;
        self.idle_at = Some(at);
        if self.paused_at.is_none() {
            deadlines.arm(at, DeadlineKind::IdleTimeout(call));
        }
    }

    fn arm(&self, call: CallId, deadlines: &mut Deadlines) {
        if let Some(at) = self.idle_at {
            deadlines.arm(at, DeadlineKind::IdleTimeout(call));
        }
        if let Some(at) = self.limit_at {
            deadlines.arm(at, DeadlineKind::TotalTimeout(call));
        }
    }

    fn disarm(&self, call: CallId, deadlines: &mut Deadlines) {
        if let Some(at) = self.idle_at {
            deadlines.disarm(at, DeadlineKind::IdleTimeout(call));
        }
        if let Some(at) = self.limit_at {
            deadlines.disarm(at, DeadlineKind::TotalTimeout(call));
        }
    }

    /// Stops the timeouts. `closed_at` is when a request of the peer was last closed.
    fn pause(&mut self, now: Time, call: CallId, closed_at: Option<Time>, deadlines: &mut Deadlines) {
        self.pauses += 1;
        if self.paused_at.is_some() {
            return;
        }
        self.disarm(call, deadlines);
        self.paused_at = Some(now);
        // What a request of the peer has added to the idle timeout would be known only when the deadline has come.
        let due = closed_at.and_then(|at| Some(at + self.idle?));
        self.idle_at = self.idle_at.map(|at| due.map_or(at, |due| at.max(due)));
    }

    /// Continues the timeouts, unless the call is in another pause.
    fn resume(&mut self, now: Time, call: CallId, closed_at: Option<Time>, deadlines: &mut Deadlines) {
        self.pauses = self.pauses.saturating_sub(1);
        if self.pauses > 0 {
            return;
        }
        let Some(paused_at) = self.paused_at.take() else { return };
        let paused = now.duration_since(paused_at);
        self.limit_at = self.limit_at.map(|at| at + paused);
        self.idle_at = match self.idle {
            Some(idle) if self.idle_at.is_some() && closed_at > Some(paused_at) => Some(now + idle),
            _ => self.idle_at.map(|at| at + paused),
        };
        self.arm(call, deadlines);
    }
}

/// The requests of the peer that are in flight: as long as there are any, the peer waits for us.
#[derive(Clone, Copy, Default)]
struct PeerRequests {
    /// How many are in flight.
    open: usize,
    /// When the latest of them was closed.
    closed_at: Option<Time>,
}

/// All calls in flight. Ids start at 1 and are never reused.
#[derive(Default)]
pub(crate) struct Calls {
    open: BTreeMap<CallId, OpenCall>,
    started: u64,
    /// The requests of the peer that belong to no call.
    peer_requests: PeerRequests,
    /// The calls whose idle timeout expired while it was stopped.
    parked: BTreeSet<CallId>,
    /// Whether the peer returned an id as text.
    returns_text_ids: bool,
    /// How many pauses of all calls there are.
    pauses: usize,
}

impl Calls {
    pub(crate) const fn new() -> Self {
        Self {
            open: BTreeMap::new(),
            started: 0,
            peer_requests: PeerRequests { open: 0, closed_at: None },
            parked: BTreeSet::new(),
            returns_text_ids: false,
            pauses: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn start(&mut self, now: Time, options: CallOptions, deadlines: &mut Deadlines) -> (CallId, RequestId) {
        self.started += 1;
        let (call, id) = (CallId::new(self.started), RequestId::from(i64::try_from(self.started).unwrap_or(i64::MAX)));
        let idle_at = options.idle_timeout.map(|idle| now + idle);
        let limit_at = options.total_timeout.map(|limit| now + limit);
        let open = OpenCall {
            id: id.clone(),
            token: None,
            related: None,
            idle: options.idle_timeout,
            idle_at,
            limit_at,
            peer_requests: PeerRequests::default(),
            pauses: self.pauses,
            paused_at: (self.pauses > 0).then_some(now),
        };
        if self.pauses == 0 {
            open.arm(call, deadlines);
        }
        self.open.insert(call, open);
        (call, id)
    }

    /// Removes a call and its deadlines.
    pub(crate) fn end(&mut self, call: CallId, deadlines: &mut Deadlines) -> Option<OpenCall> {
        let ended = self.open.remove(&call)?;
        self.parked.remove(&call);
        ended.disarm(call, deadlines);
        Some(ended)
    }

    /// Stops the timeouts of a call, or of all calls, also of those that are made before they continue.
    pub(crate) fn pause(&mut self, now: Time, call: Option<CallId>, deadlines: &mut Deadlines) {
        if call.is_none() {
            self.pauses += 1;
        }
        let of_no_call = self.peer_requests.closed_at;
        for (call, open) in self.selected(call) {
            open.pause(now, *call, of_no_call.max(open.peer_requests.closed_at), deadlines);
        }
    }

    /// Continues what [`pause`](Self::pause) has stopped.
    pub(crate) fn resume(&mut self, now: Time, call: Option<CallId>, deadlines: &mut Deadlines) {
        if call.is_none() {
            self.pauses = self.pauses.saturating_sub(1);
        }
        let of_no_call = self.peer_requests.closed_at;
        for (call, open) in self.selected(call) {
            open.resume(now, *call, of_no_call.max(open.peer_requests.closed_at), deadlines);
        }
    }

    /// Returns a call, or all calls.
    fn selected(&mut self, call: Option<CallId>) -> impl Iterator<Item = (&CallId, &mut OpenCall)> {
        let range = match call {
            Some(call) => self.open.range_mut(call..=call),
            None => self.open.range_mut(..),
        };
        range.into_iter()
    }

    /// Removes the total timeout of a call.
    pub(crate) fn clear_total_timeout(&mut self, call: CallId, deadlines: &mut Deadlines) {
        if let Some(at) = self.open.get_mut(&call).and_then(|open| open.limit_at.take()) {
            deadlines.disarm(at, DeadlineKind::TotalTimeout(call));
        }
    }

    pub(crate) fn get_mut(&mut self, call: CallId) -> Option<&mut OpenCall> {
        self.open.get_mut(&call)
    }

    /// Returns the call with this number, which is also its id.
    fn by_number(&self, number: i64) -> Option<CallId> {
        let call = CallId::new(u64::try_from(number).ok()?);
        self.open.contains_key(&call).then_some(call)
    }

    /// Returns the id of a call that is open.
    pub(crate) fn id_of(&self, call: CallId) -> Option<&RequestId> {
        self.open.get(&call).map(|call| &call.id)
    }

    pub(crate) fn by_id(&self, id: &RequestId) -> Option<CallId> {
        self.by_number(id.as_i64()?)
    }

    /// Returns the call that a response is for.
    ///
    /// Some peers return the id as text, `"1"` for `1`. It is accepted, because no call has a text for an id, and reported
    /// once.
    pub(crate) fn of_response(&mut self, id: &RequestId, report: impl FnOnce(PeerMisbehaved)) -> Option<CallId> {
        let Some(text) = id.as_str() else { return self.by_id(id) };
        let number: i64 = text.parse().ok()?;
        // `+1` and `01` are not what was sent.
        let call = self.by_number(number).filter(|_| number.to_string() == text)?;
        if !std::mem::replace(&mut self.returns_text_ids, true) {
            report(PeerMisbehaved::IdAsText(id.clone()));
        }
        Some(call)
    }

    /// Returns the calls that a message which is too long to be read may be the response to.
    pub(crate) fn of_oversized(
        &mut self,
        summary: &EnvelopeSummary,
        has_batches: bool,
        report: impl FnOnce(PeerMisbehaved),
    ) -> Vec<CallId> {
        match (summary.kind, &summary.id) {
            (EnvelopeKind::Response, Some(id)) => self.of_response(id, report).into_iter().collect(),
            (EnvelopeKind::Response, None) => self.all(),
            (EnvelopeKind::Batch, _) if has_batches => self.all(),
            _ => Vec::new(),
        }
    }

    /// Restarts the idle timeout of the call that made progress, and puts the application's own token in the place of the
    /// one that was sent, which is the id of the call.
    pub(crate) fn progress(
        &mut self,
        now: Time,
        progress: &mut ProgressNotificationParams,
        deadlines: &mut Deadlines,
    ) -> Option<CallId> {
        let call = self.by_number(progress.progress_token.as_i64()?)?;
        let open = self.open.get_mut(&call)?;
        if let Some(old) = open.idle_at {
            deadlines.disarm(old, DeadlineKind::IdleTimeout(call));
            open.restart_idle(now, call, deadlines);
        }
        if let Some(token) = &open.token {
            progress.progress_token = token.clone();
        }
        Some(call)
    }

    /// Counts a request of the peer, which belongs to a call if that is known.
    pub(crate) fn open_peer_request(&mut self, stream: Option<CallId>) {
        if let Some(pending) = self.peer_requests_of(stream) {
            pending.open += 1;
        }
    }

    /// Counts a request of the peer as responded to or cancelled, and restarts the idle timeouts that it stopped.
    pub(crate) fn close_peer_request(&mut self, now: Time, stream: Option<CallId>, deadlines: &mut Deadlines) {
        let Some(pending) = self.peer_requests_of(stream) else { return };
        *pending = PeerRequests { open: pending.open.saturating_sub(1), closed_at: Some(now) };
        if self.peer_requests.open > 0 {
            return;
        }
        let waiting = stream.map_or_else(|| std::mem::take(&mut self.parked), |call| BTreeSet::from([call]));
        for call in waiting {
            let Some(open) = self.open.get_mut(&call) else { continue };
            if open.peer_requests.open > 0 {
                self.parked.insert(call);
            } else if open.idle_at.is_none() && open.idle.is_some() {
                self.parked.remove(&call);
                open.restart_idle(now, call, deadlines);
            }
        }
    }

    /// Forgets the requests of the peer after a disconnect, when no call is in flight.
    pub(crate) fn forget_peer_requests(&mut self) {
        self.peer_requests = PeerRequests::default();
    }

    pub(crate) fn is_open(&self, call: CallId) -> bool {
        self.open.contains_key(&call)
    }

    fn peer_requests_of(&mut self, stream: Option<CallId>) -> Option<&mut PeerRequests> {
        match stream {
            Some(call) => Some(&mut self.open.get_mut(&call)?.peer_requests),
            None => Some(&mut self.peer_requests),
        }
    }

    /// Returns whether the idle timeout of a call, whose deadline has come, has expired. It has not while the peer
    /// waits for a response, and starts over with that response.
    pub(crate) fn is_idle(&mut self, now: Time, call: CallId, deadlines: &mut Deadlines) -> bool {
        let Some(open) = self.open.get_mut(&call) else { return false };
        if self.peer_requests.open > 0 || open.peer_requests.open > 0 {
            open.idle_at = None;
            self.parked.insert(call);
            return false;
        }
        let closed_at = self.peer_requests.closed_at.max(open.peer_requests.closed_at);
        let due = closed_at.and_then(|at| Some(at + open.idle?)).filter(|due| *due > now);
        if let Some(due) = due {
            open.idle_at = Some(due);
            deadlines.arm(due, DeadlineKind::IdleTimeout(call));
        }
        due.is_none()
    }

    /// The calls that were made during a request.
    pub(crate) fn related_to(&self, request: RequestKey) -> Vec<CallId> {
        self.open.iter().filter(|(_, open)| open.related == Some(request)).map(|(call, _)| *call).collect()
    }

    /// The call in flight, if there is exactly one.
    pub(crate) fn only(&self) -> Option<CallId> {
        if self.open.len() == 1 { self.open.keys().next().copied() } else { None }
    }

    pub(crate) fn all(&self) -> Vec<CallId> {
        self.open.keys().copied().collect()
    }
}
