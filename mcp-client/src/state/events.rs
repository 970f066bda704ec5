//! Events of the kernel.

use mcp_kernel::client::{ConnectError, Event, ServerFacts};
use mcp_kernel::observe::OperationOutcome;
use mcp_kernel::{CallError, CallId, CallOptions, Change, PeerMisbehaved, Time};
use mcp_types::{Era, Method, RawObject, Revision, SetLevelRequestParams};

use crate::close_reason::CloseReason;
use crate::context::MessageContext;
use crate::state::inbox::Inbound;
use crate::state::{Core, Phase};
use crate::tasks::followed::related_task;
use crate::transport::TransportCommand;

impl Core {
    /// Processes the events of the kernel.
    pub(super) fn process_events(&mut self, now: Time) {
        while let Some(event) = self.kernel.poll_event() {
            self.handle_event(now, event);
        }
        match (&self.phase, self.kernel.detected_revision()) {
            // The kernel repeats the handshake, or has switched to another version.
            (Phase::Ready(_), None) => self.phase = Phase::Connecting,
            (Phase::Ready(known), Some(detected)) if *known != detected.revision => {
                self.phase = Phase::Ready(detected.revision);
            }
            (Phase::Ready(_) | Phase::Connecting | Phase::Closing | Phase::Closed(_), _) => {}
        }
    }

    pub(super) fn handle_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Ready { revision, server } => self.ready(now, revision, *server),
            Event::RestartNeeded { detected } => {
                (self.detected, self.exited_on_probe, self.exits_on_probe) = (Some(detected), true, true);
            }
            Event::Failed(why) => {
                // The reasons of the transport and of the lost session are more specific than those of the kernel.
                let lost = if why == ConnectError::Disconnected {
                    self.connect_error.take().or_else(|| self.disconnect_reason.take().map(CloseReason::Disconnected))
                } else {
                    self.last_session_loss
                        .take()
                        .filter(|_| why == ConnectError::SessionLost)
                        .map(CloseReason::SessionLost)
                };
                self.set_closed(lost.unwrap_or_else(|| why.into()));
            }
            Event::CallFinished { call, outcome } => {
                self.to_wake.extend(self.ready_waiters.all());
                if self.pending_calls.get(&call).is_some_and(|pending| pending.is_forgotten) {
                    self.to_drop.extend(self.pending_calls.remove(&call));
                } else if let Some(pending) = self.pending_calls.get_mut(&call) {
                    pending.outcome = Some(outcome);
                    let waker = pending.waker.take();
                    self.wake(waker);
                } else {
                    self.own_calls.end(call, outcome_of(outcome.err().as_ref()));
                }
            }
            Event::OwnCallFinished { call, error } => self.own_calls.end(call, outcome_of(error.as_ref())),
            Event::Handled(message) => self.handled.push(*message),
            Event::CallProgress { call, progress } => {
                let waker = self.pending_calls.get_mut(&call).and_then(|pending| pending.push_progress(progress));
                self.wake(waker);
            }
            Event::Listening { call, filter } => {
                let waker = self.pending_calls.get_mut(&call).and_then(|pending| pending.acknowledge(filter));
                self.wake(waker);
            }
            Event::Changed { call, change } => {
                self.cache.invalidate(&change);
                if change == Change::Tools {
                    self.tool_tasks.clear();
                }
                let waker = match call {
                    Some(call) => self.pending_calls.get_mut(&call).and_then(|pending| pending.push_change(change)),
                    None => {
                        let wakes = self.legacy_subscriptions.push_change(&change);
                        self.to_wake.extend(wakes);
                        None
                    }
                };
                self.wake(waker);
            }
            Event::Request { method, params, responder, related } => {
                let context = match related_task(&params) {
                    Some(task) => self.context_of_task(&task, related),
                    None => self.context_of(related),
                };
                self.receive(Inbound::Request { method, params, responder, context });
            }
            Event::RequestCancelled { id } => self.receive(Inbound::Cancelled { id }),
            Event::Log { log, related } => {
                let context = self.context_of(related);
                self.receive(Inbound::Log { log, context });
            }
            Event::Notification { method, params, related } => {
                let is_of_task = [Method::NOTIFICATIONS_TASKS, Method::NOTIFICATIONS_TASKS_STATUS].contains(&method);
                if is_of_task && let Some(wakers) = self.followed_tasks.notify(&params) {
                    return self.wake_each(wakers.into_iter());
                }
                let context = self.context_of(related);
                self.receive(Inbound::Notification { method, params, context });
            }
            Event::PeerMisbehaved(what @ PeerMisbehaved::IdAsText(_)) => {
                tracing::warn!(target: "mcp", %what, "the server returns ids as strings, which is tolerated");
            }
            Event::PeerMisbehaved(what) => tracing::debug!(target: "mcp", %what, "the server violated the protocol"),
            // The kernel closed the connection, because the server sends requests without reading the responses.
            Event::Closed => {
                if let Phase::Connecting | Phase::Ready(_) = self.phase {
                    self.set_closed(CloseReason::Disconnected(
                        "the server does not read the responses to its requests".to_owned(),
                    ));
                }
            }
            _ => {}
        }
    }

    fn ready(&mut self, now: Time, revision: Revision, server: ServerFacts) {
        if let Phase::Closing | Phase::Closed(_) = self.phase {
            return;
        }
        self.phase = Phase::Ready(revision);
        self.last_revision = Some(revision);
        let was_probed_again = self.detected.is_some_and(|detected| detected.probe_again);
        self.detected = self.kernel.detected_revision();
        self.newly_detected = self.detected.map(|detected| (detected, was_probed_again));
        // Without a new handshake or probe they are still those of the previous connection.
        if server.capabilities.is_some() {
            (self.server, self.has_current_facts) = (server, true);
        }
        self.tool_tasks.set_server(revision, self.server.capabilities.as_ref());
        self.followed_tasks.connected();
        if self.epoch > 0 && revision.era() == Era::Legacy {
            self.set_log_level_again(now);
        }
        if let Some(restart) = self.restart.take() {
            self.receive(Inbound::Restarted(restart));
        }
        self.epoch += 1;
        self.commands.push_back(TransportCommand::Ready { revision });
        self.to_wake.extend(self.ready_waiters.all());
        self.to_wake.extend(self.state_waiters.all());
        self.wake_transport();
    }

    /// Sets the log level in a new session.
    fn set_log_level_again(&mut self, now: Time) {
        let has_logging = self.server.capabilities.as_ref().is_some_and(|offered| offered.logging.is_some());
        if let Some(level) = self.log_level.filter(|_| has_logging)
            && let Ok(params) = RawObject::new(&SetLevelRequestParams::new(level))
        {
            // There is no caller: if the server refuses the level, it keeps its own.
            let _ = self.kernel.call(now, &Method::LOGGING_SET_LEVEL, &params, CallOptions::default());
        }
    }

    fn context_of(&self, call: Option<CallId>) -> MessageContext {
        let pending = call.and_then(|call| self.pending_calls.get(&call));
        MessageContext::new(pending.map(|pending| pending.context.clone()))
    }

    /// Returns the context of a request that belongs to a task, which arrived on the stream of a call or on a pipe.
    // B-86
    fn context_of_task(&self, task: &str, call: Option<CallId>) -> MessageContext {
        match self.followed_tasks.context_of(task) {
            Some(context) => MessageContext::new(Some(context)),
            // On a pipe, the call is the only one in flight, and may have nothing to do with the task.
            None => self.context_of(call.filter(|_| self.has_streams)),
        }
    }

    fn receive(&mut self, inbound: Inbound) {
        self.inbox.push(inbound);
        self.wake_transport();
    }
}

fn outcome_of(error: Option<&CallError>) -> OperationOutcome {
    error.map_or(OperationOutcome::Completed, OperationOutcome::of_call_error)
}
