//! The flows of a client, driven without I/O.

#![expect(clippy::unwrap_used, reason = "what helps a test may fail like one")]
#![expect(clippy::wildcard_enum_match_arm, reason = "what a test does not expect fails it")]

mod attacks;
mod authentication;
mod code;
mod device;
mod discovery;
mod dpop;
mod hostile;
mod machines;
mod migration;
mod refresh;
mod registration;
mod revocation;
mod scopes;
mod script;
mod secrets;
mod tokens;
