//! What the strict servers over HTTP and over standard streams have in common.

pub(crate) mod message;
pub(crate) mod reply;
pub(crate) mod tools;
