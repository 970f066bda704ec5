//! What a viewer needs to be notified of a change of an item.

use crate::auth::required_scopes::RequiredScopes;
use crate::visibility::predicate::Predicate;
use crate::visibility::viewer::Viewer;

/// The predicate and the scopes of an item.
#[derive(Clone)]
pub(crate) struct Guard {
    predicate: Option<Predicate>,
    scopes: RequiredScopes,
}

impl Guard {
    pub(crate) fn new(predicate: Option<&Predicate>, scopes: &[Box<str>]) -> Self {
        Self { predicate: predicate.cloned(), scopes: scopes.to_vec() }
    }

    /// Whether all viewers may be notified.
    pub(crate) fn is_open(&self) -> bool {
        self.predicate.is_none() && self.scopes.is_empty()
    }

    pub(crate) fn is_visible(&self, viewer: &Viewer<'_>) -> bool {
        self.predicate.as_ref().is_none_or(|predicate| predicate.admits(viewer))
    }

    pub(crate) fn has_scopes(&self, viewer: &Viewer<'_>) -> bool {
        self.scopes.iter().all(|scope| viewer.has_scope(scope))
    }
}
