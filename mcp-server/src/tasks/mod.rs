//! Tools whose calls run as tasks: what the crate `mcp-tasks`, or another runtime of tasks, needs from a server.
//!
//! A server has a [`TaskRuntime`] ([`ServerBuilder::tasks`](crate::ServerBuilder::tasks)), which decides about each call of a
//! tool. It runs the handler with a [`TaskRun`], whose context sends requests and results of steps to a [`TaskPort`] instead of
//! a client.

mod forward;
pub(crate) mod listener;
pub(crate) mod methods;
pub(crate) mod options;
pub(crate) mod port;
pub(crate) mod run;
pub(crate) mod runtime;

pub use listener::TaskListener;
pub use mcp_kernel::server::DetachedRequest;
pub use options::{TaskOptions, TaskSupport};
pub use port::TaskPort;
pub use run::{RoundJournal, TaskRun};
pub use runtime::TaskRuntime;
