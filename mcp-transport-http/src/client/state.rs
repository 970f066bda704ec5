//! What the driver shares with the requests that it has started.

use std::collections::BTreeMap;
use std::task::Waker;

use mcp_client::{CallId, CredentialFingerprint};

use super::request::headers::{Session, ToolNames};

/// The session, the credentials and the calls in flight.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) session: Session,
    /// The credentials of the latest request, if there is an authorizer.
    pub(crate) credentials: Option<CredentialFingerprint>,
    calls: BTreeMap<CallId, CallInFlight>,
    /// How many of the calls wait for a login.
    pub(crate) waiting_calls: usize,
    /// How many times an authorizer has replaced a credential that was refused.
    pub(crate) logins: u64,
    pub(crate) tools: ToolNames,
}

#[derive(Default)]
struct CallInFlight {
    /// Wakes its request, once that was polled.
    waker: Option<Waker>,
    /// The credentials that it was opened with, if it is a subscription with those of the client.
    subscribed_with: Option<CredentialFingerprint>,
}

impl State {
    /// Returns how many calls may need a connection.
    pub(crate) fn connected_calls(&self) -> usize {
        self.calls.len().saturating_sub(self.waiting_calls)
    }

    pub(crate) fn insert(&mut self, call: CallId) {
        self.calls.insert(call, CallInFlight::default());
    }

    /// Returns whether a call was neither removed nor aborted; `waker` is woken if it is aborted later.
    pub(crate) fn is_open(&mut self, call: CallId, waker: &Waker) -> bool {
        let Some(open) = self.calls.get_mut(&call) else { return false };
        match &mut open.waker {
            Some(known) => known.clone_from(waker),
            None => open.waker = Some(waker.clone()),
        }
        true
    }

    pub(crate) fn remove(&mut self, call: CallId) {
        self.calls.remove(&call);
    }

    /// Aborts a call; returns the waker of its request, which the caller wakes without the lock.
    #[must_use]
    pub(crate) fn abort(&mut self, call: CallId) -> Option<Waker> {
        self.calls.remove(&call)?.waker
    }

    /// Records the credentials of a request. Aborts and returns the subscriptions with others, which are opened again.
    pub(crate) fn set_credentials(&mut self, by: CredentialFingerprint) -> Vec<(CallId, Option<Waker>)> {
        self.credentials = Some(by);
        self.abort_outdated_subscriptions()
    }

    /// Records the credentials that a subscription was opened with. Aborts and returns it if they have changed since.
    pub(crate) fn set_subscribed(&mut self, call: CallId, by: CredentialFingerprint) -> Vec<(CallId, Option<Waker>)> {
        if let Some(subscription) = self.calls.get_mut(&call) {
            subscription.subscribed_with = Some(by);
        }
        self.abort_outdated_subscriptions()
    }

    fn abort_outdated_subscriptions(&mut self) -> Vec<(CallId, Option<Waker>)> {
        let Some(credentials) = self.credentials else { return Vec::new() };
        let is_outdated = |call: &CallInFlight| call.subscribed_with.is_some_and(|by| by != credentials);
        let outdated: Vec<_> = self.calls.iter().filter(|(_, call)| is_outdated(call)).map(|(id, _)| *id).collect();
        outdated.into_iter().map(|call| (call, self.abort(call))).collect()
    }
}
