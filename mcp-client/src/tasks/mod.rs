//! Tasks: tool calls whose result is fetched later.
//!
//! There are two models: the extension `io.modelcontextprotocol/tasks`, in which the server decides whether a call becomes a
//! task, and the tasks of 2025-11-25, which a client asks for. A [`Follower`](follower::Follower) follows either to its end,
//! for [`Call`](crate::Call) and for [`TaskHandle`].

mod budget;
mod error;
pub(crate) mod followed;
mod follower;
mod handle;
mod limits;
mod reference;
mod requests;
mod state;
pub(crate) mod support;
mod watch;

pub use self::error::TaskError;
pub(crate) use self::follower::follow;
pub use self::handle::{Started, TaskHandle};
pub use self::limits::FollowLimits;
pub use self::reference::TaskReference;
pub use self::state::TaskState;
pub(crate) use self::state::{CreatedTask, TaskModel};
