//! Lines of text between a client and its server.

mod alarm;
mod child;
mod restart;
mod stream;
mod wire;

pub use child::ChildTransport;
pub use restart::Restart;
pub use stream::StreamTransport;
