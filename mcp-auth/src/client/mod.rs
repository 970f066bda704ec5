//! Logging in: the flows of a client.

mod registration;
mod tokens;

pub use registration::{ClientAuthentication, Registration};
pub use tokens::{TokenType, Tokens};
