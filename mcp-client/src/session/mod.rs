//! Sessions with legacy servers over HTTP.

mod loss;
mod restart;
mod saved;

pub(crate) use loss::EventHandler;
pub use loss::{ClientEvent, SessionLoss, SessionLossAction, SessionLossPolicy, SessionLossReason};
pub(crate) use restart::RestartHandler;
pub use restart::{Restart, RestartCause};
pub use saved::SavedSession;
