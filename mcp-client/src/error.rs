//! How a call ends without a result.

use mcp_kernel::{CallError, Misuse};
use mcp_mrtr::RetryError;
use mcp_types::ErrorObject;

use crate::{Closed, ListLimit};

/// Why there is no result.
///
/// [`is_remote`](Self::is_remote) tells what the server said from what happened on this side.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server answered with an error.
    #[error("the server refused: {0}")]
    Rejected(ErrorObject),
    /// The server answered with an HTTP status instead of a result: 401 and 403 ask for other credentials, 429 and those
    /// of 500 and above for patience.
    #[error("the server answered with HTTP status {status}{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Status {
        /// The status.
        status: u16,
        /// An excerpt of what the server said with it, in one line. It is the server's, and may say anything.
        reason: Option<String>,
    },
    /// The server's answer is not what the protocol says.
    #[error("the server's answer is invalid: {0}")]
    InvalidAnswer(String),
    /// The server's answer is longer than the transport reads; its `line_limit` sets how much that is.
    #[error("the server's answer has more than {limit} bytes; raise `line_limit` of the transport to receive it")]
    TooLong {
        /// The limit that was hit.
        limit: usize,
    },
    /// The server did not answer in time; the call was cancelled. Progress gives it more time, up to a limit.
    #[error("the server did not answer in time")]
    TimedOut,
    /// The call was cancelled on this side.
    #[error("the call was cancelled")]
    Cancelled,
    /// The connection broke while the call was open. What became of it is not known; calls without effects can be made
    /// again.
    #[error("the connection broke during the call: {0}")]
    Interrupted(String),
    /// There is no connection any more: connect again.
    #[error("{0}")]
    Closed(#[from] Closed),
    /// The call cannot be made like this; nothing was sent.
    #[error("{0}")]
    Misuse(#[from] Misuse),
    /// The parameters cannot be written as JSON; nothing was sent.
    #[error("the parameters cannot be written: {0}")]
    InvalidParams(String),
    /// The server asked for something that this client does not answer, or did not want to.
    #[error("the server's question `{key}` was not answered: {error}")]
    Unanswered {
        /// The question.
        key: String,
        /// What the one who was asked said.
        error: ErrorObject,
    },
    /// The server asks without end, or nothing.
    #[error("{0}")]
    Rounds(#[from] RetryError),
    /// The tool says that it failed; the text is its own.
    #[error("the tool failed: {0}")]
    ToolFailed(String),
    /// A list does not end: one of its pages leads back to an earlier one.
    #[error("the list does not end: a page leads back to an earlier one")]
    EndlessList,
    /// A list exceeds a limit of this client.
    #[error("{0}")]
    ListTooLong(#[from] ListLimit),
}

impl Error {
    /// Whether the server said this; the rest happened on this side.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Rejected(_) | Self::Status { .. } | Self::InvalidAnswer(_) | Self::ToolFailed(_))
    }

    /// The error that the server answered with.
    #[must_use]
    pub fn as_rejection(&self) -> Option<&ErrorObject> {
        if let Self::Rejected(error) = self { Some(error) } else { None }
    }

    /// What the end of a call means to the one who made it; `lost` says why the connection broke, if it did.
    pub(crate) fn of_call(error: CallError, lost: Option<&str>) -> Self {
        match error {
            CallError::Rejected(error) => Self::Rejected(error),
            CallError::Cancelled => Self::Cancelled,
            CallError::TimedOut => Self::TimedOut,
            CallError::InvalidAnswer => {
                Self::InvalidAnswer("it is no response, or of a kind that this client does not know".to_owned())
            }
            CallError::TooLong { limit } => Self::TooLong { limit },
            CallError::Status { status, reason } => Self::Status { status, reason },
            CallError::SessionLost => Self::Interrupted("the server does not know the session any more".to_owned()),
            CallError::Disconnected | _ => {
                Self::Interrupted(lost.unwrap_or("the stream of the call ended without an answer").to_owned())
            }
        }
    }
}
