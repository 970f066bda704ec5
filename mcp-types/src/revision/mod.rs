//! The revisions of the protocol and their differences.

pub mod gate;
mod raw;
mod restrict;
mod version;

pub use self::raw::restrict_raw;
pub use self::restrict::{Restrict, Restriction, restrict_to};
pub use self::version::{Era, ProtocolVersion, Revision, UnknownRevision};
