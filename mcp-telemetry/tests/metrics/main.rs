//! The metrics that are recorded, read back from the SDK.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]
#![expect(clippy::wildcard_enum_match_arm, reason = "what a test does not expect fails it")]

mod cardinality;
mod collected;
mod conventions;
mod operators;
#[cfg(feature = "prometheus")]
mod prometheus;
mod server;
