//! Client transports.

mod child;
mod config;
mod lines;
mod restart;
mod stream;
mod wake_timer;

pub use child::ChildTransport;
pub use restart::RestartPolicy;
pub use stream::StreamTransport;
