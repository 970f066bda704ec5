//! Who sees what: the viewer of a list or a notification, the predicates of items, and audiences of changes.

pub(crate) mod audience;
pub(crate) mod guard;
pub(crate) mod predicate;
pub(crate) mod viewer;
