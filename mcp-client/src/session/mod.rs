//! Sessions with legacy servers over HTTP.

mod loss;
mod saved;

pub(crate) use loss::EventListener;
pub use loss::{ClientEvent, DecideSessionLost, SessionLoss, SessionLossReason, SessionLost};
pub use saved::SavedSession;
