//! What the driver shares with the requests that it has started.

use std::collections::BTreeMap;

use futures_util::future::AbortHandle;
use mcp_client::{CallId, CredentialFingerprint};

use super::request::headers::{Session, ToolNames};

/// The session, the credentials and the calls in flight.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) session: Session,
    /// The credentials of the latest request, if there is an authorizer.
    pub(crate) credentials: Option<CredentialFingerprint>,
    calls: BTreeMap<CallId, CallInFlight>,
    pub(crate) tools: ToolNames,
}

struct CallInFlight {
    abort: AbortHandle,
    /// The credentials that it was opened with, if it is a subscription with those of the client.
    subscribed_with: Option<CredentialFingerprint>,
}

impl State {
    pub(crate) fn calls(&self) -> usize {
        self.calls.len()
    }

    pub(crate) fn insert(&mut self, call: CallId, abort: AbortHandle) {
        self.calls.insert(call, CallInFlight { abort, subscribed_with: None });
    }

    pub(crate) fn remove(&mut self, call: CallId) {
        self.calls.remove(&call);
    }

    pub(crate) fn abort(&mut self, call: CallId) {
        if let Some(aborted) = self.calls.remove(&call) {
            aborted.abort.abort();
        }
    }

    /// Records the credentials of a request. Aborts and returns the subscriptions with others, which are opened again.
    pub(crate) fn set_credentials(&mut self, by: CredentialFingerprint) -> Vec<CallId> {
        self.credentials = Some(by);
        self.abort_outdated_subscriptions()
    }

    /// Records the credentials that a subscription was opened with. Aborts and returns it if they have changed since.
    pub(crate) fn set_subscribed(&mut self, call: CallId, by: CredentialFingerprint) -> Vec<CallId> {
        if let Some(subscription) = self.calls.get_mut(&call) {
            subscription.subscribed_with = Some(by);
        }
        self.abort_outdated_subscriptions()
    }

    fn abort_outdated_subscriptions(&mut self) -> Vec<CallId> {
        let Some(credentials) = self.credentials else { return Vec::new() };
        let is_outdated = |call: &CallInFlight| call.subscribed_with.is_some_and(|by| by != credentials);
        let outdated: Vec<_> = self.calls.iter().filter(|(_, call)| is_outdated(call)).map(|(id, _)| *id).collect();
        outdated.iter().for_each(|call| self.abort(*call));
        outdated
    }
}
