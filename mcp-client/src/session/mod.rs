//! Sessions with legacy servers over HTTP.

mod loss;
mod saved;

pub(crate) use loss::EventHandler;
pub use loss::{ClientEvent, SessionLoss, SessionLossAction, SessionLossPolicy, SessionLossReason};
pub use saved::SavedSession;
