//! From an admitted request to its response.

pub(crate) mod context;
pub(crate) mod dispatch;
pub(crate) mod end;
pub(crate) mod endpoint;
#[cfg(feature = "tower")]
pub(crate) mod layers;
pub(crate) mod observed;
pub(crate) mod page;
pub(crate) mod param_claims;
pub(crate) mod progress;
pub(crate) mod response;
pub(crate) mod sent_notification;
#[cfg(feature = "tower")]
pub(crate) mod shared_service;
pub(crate) mod target;
pub(crate) mod telemetry;
