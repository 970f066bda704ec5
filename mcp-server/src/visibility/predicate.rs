//! Predicates of viewers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::visibility::viewer::Viewer;

/// A function of the application that decides for each viewer.
#[derive(Clone)]
pub(crate) struct Predicate(Arc<dyn Fn(&Viewer<'_>) -> bool + Send + Sync>);

impl Predicate {
    pub(crate) fn new(decide: impl Fn(&Viewer<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    /// Calls the function, without any lock. What it cannot decide because it panics is not visible.
    pub(crate) fn admits(&self, viewer: &Viewer<'_>) -> bool {
        catch_unwind(AssertUnwindSafe(|| (self.0)(viewer))).unwrap_or_else(|_| {
            tracing::error!(target: "mcp", "a predicate of visibility or of an audience panicked");
            false
        })
    }
}

/// Something that may be visible to some viewers only.
pub(crate) trait Visible {
    /// The predicate, if it is not visible to all.
    fn predicate(&self) -> Option<&Predicate>;
}

/// Adds the setter of the predicate.
macro_rules! visibility_setters {
    ($($kind:ident),* $(,)?) => {$(
        impl $kind {
            /// Restricts this to the viewers for which `predicate` returns `true`. For others it does not exist: not in lists,
            /// not by its name or URI, not for completion, and no notification reveals it. Defaults to all viewers.
            ///
            /// The predicate runs for each request and notification that concerns this, and should be fast. It can rely on the
            /// properties that a [`Viewer`](crate::Viewer) has in each place. If it panics, this is not visible. When its
            /// outcome changes for a user, notify their clients with [`Server::publish_to`](crate::Server::publish_to).
            ///
            /// A list with restricted items and the contents of restricted resources are never cached for several users.
            pub fn visible(
                mut self,
                predicate: impl Fn(&crate::visibility::viewer::Viewer<'_>) -> bool + Send + Sync + 'static,
            ) -> Self {
                self.visible = Some(crate::visibility::predicate::Predicate::new(predicate));
                self
            }
        }

        impl crate::visibility::predicate::Visible for $kind {
            fn predicate(&self) -> Option<&crate::visibility::predicate::Predicate> {
                self.visible.as_ref()
            }
        }
    )*};
}

pub(crate) use visibility_setters;
