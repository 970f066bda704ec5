//! The errors of tasks.

use mcp_types::Revision;

/// Why a task has no result, apart from the [errors](crate::Error) that any call can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The task was cancelled: by the server, or by a client that knows its id.
    #[error("the task was cancelled{}", .message.as_ref().map(|message| format!(": {message}")).unwrap_or_default())]
    Cancelled {
        /// The status message of the task. It is untrusted text of the server.
        message: Option<String>,
    },
    /// The server does not know the task: it has expired, was deleted, or belongs to another user.
    #[error("the server does not know the task; it may have expired")]
    Unknown,
    /// The task was created in another revision of the protocol than that of the connection, whose tasks are different.
    #[error("the task was created with {0}, and the connection has no tasks of that revision")]
    OtherRevision(Revision),
    /// The task exceeds [`FollowLimits::max_input_requests`](crate::FollowLimits::max_input_requests).
    #[error("the task has more than {limit} input requests")]
    TooManyInputRequests {
        /// The limit.
        limit: usize,
    },
    /// The task exceeds [`FollowLimits::max_bytes`](crate::FollowLimits::max_bytes).
    #[error("the task has more than {limit} bytes; raise `FollowLimits::max_bytes` to receive it")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}
