//! The actions of a flow, in order.

use std::collections::VecDeque;

use super::{Action, LoginError, Save};

/// The actions that a flow wants done and that were not returned yet.
///
/// Nothing follows a change of the store before it was done.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    actions: VecDeque<Action>,
    is_saving: bool,
}

impl Outbox {
    pub(super) fn push(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    pub(super) fn save(&mut self, change: Save) {
        self.push(Action::Save(change));
    }

    pub(super) fn fail(&mut self, error: LoginError) {
        self.push(Action::Failed(error));
    }

    /// Drops the actions that were not returned.
    pub(super) fn clear(&mut self) {
        self.actions.clear();
    }

    /// Returns the next action, or `None` if there is none at this time.
    pub(super) fn poll(&mut self) -> Option<Action> {
        if self.is_saving {
            return None;
        }
        let action = self.actions.pop_front();
        self.is_saving = matches!(action, Some(Action::Save(_)));
        action
    }

    /// Whether all actions were returned and done, so that an input can be the result of the last one.
    pub(super) fn is_empty(&self) -> bool {
        !self.is_saving && self.actions.is_empty()
    }

    pub(super) const fn handle_saved(&mut self) {
        self.is_saving = false;
    }
}
