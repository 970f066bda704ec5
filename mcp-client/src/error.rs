//! The error of a call.

use mcp_kernel::{CallError, CommandError};
use mcp_mrtr::RetryError;
use mcp_types::ErrorObject;

use crate::{AuthorizationError, CloseReason, ListLimitExceeded, TaskError};

/// The error of a call.
///
/// [`is_remote`](Self::is_remote) distinguishes errors that the server reported from those of this client.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server responded with a JSON-RPC error.
    #[error("the server responded with an error: {0}")]
    Rejected(ErrorObject),
    /// The server responded with an HTTP status instead of a JSON-RPC message. 401 and 403 call for other credentials, and
    /// are reported as a status also if the body is a JSON-RPC message; 429 and 5xx can be tried again later.
    #[error("the server responded with HTTP status {status}{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Status {
        /// The HTTP status.
        status: u16,
        /// An excerpt of the body, in one line. It is untrusted text of the server.
        reason: Option<String>,
    },
    /// The response of the server violates the protocol, or its result is not of the expected type.
    #[error("the server's response is invalid: {0}")]
    InvalidResponse(String),
    /// The response is longer than the `line_limit` of the transport.
    #[error("the server's response has more than {limit} bytes; raise `line_limit` of the transport to receive it")]
    ResponseTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The server did not respond within [`Call::idle_timeout`](crate::Call::idle_timeout) or
    /// [`Call::total_timeout`](crate::Call::total_timeout). The call was cancelled.
    #[error("the server did not respond in time")]
    TimedOut,
    /// The call was cancelled with a [`CancelHandle`](crate::CancelHandle).
    #[error("the call was cancelled")]
    Cancelled,
    /// The connection or stream broke while the call was in flight. It is not known whether the server executed the call;
    /// repeat it only if it is idempotent.
    #[error("the connection broke during the call: {0}")]
    Interrupted(String),
    /// The transport could not obtain credentials. The server has not executed the call. The message says what the user can
    /// do; repeating the call without that has no effect.
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
    /// The certificate of the server is not valid: it has expired, or its issuer is not trusted, for example. The call was not
    /// sent.
    #[error("the certificate of the server is not valid: {0}")]
    InvalidCertificate(String),
    /// The client is closed. Connect again to continue.
    #[error(transparent)]
    Closed(#[from] CloseReason),
    /// The call violates the protocol or the state of the client. Nothing was sent.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The capabilities that the client should declare contradict its handlers. Nothing was sent.
    #[error("the capabilities of the client contradict its handlers: {0}")]
    InvalidCapabilities(String),
    /// The parameters cannot be serialized. Nothing was sent.
    #[error("the parameters cannot be serialized: {0}")]
    InvalidParams(String),
    /// An input request of the server failed: the client has no handler for it, or the handler returned an error.
    #[error("the server's input request `{key}` failed: {error}")]
    InputRequestFailed {
        /// The key of the input request.
        key: String,
        /// The error of the handler, or the reason why there is none.
        error: ErrorObject,
    },
    /// The server exceeded a limit of [`RetryLimits`](crate::RetryLimits), or its input requests are invalid.
    #[error(transparent)]
    Retry(#[from] RetryError),
    /// The task that the call has become has no result.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The tool reported a failure (`isError`) where structured content was expected. Contains its text content.
    #[error("the tool failed: {0}")]
    ToolFailed(String),
    /// A cursor of a list was returned twice, so that the list would never end.
    #[error("the list does not end: the server returned the same cursor twice")]
    EndlessList,
    /// A list exceeds one of the [`ListLimits`](crate::ListLimits).
    #[error(transparent)]
    ListTooLong(#[from] ListLimitExceeded),
}

impl Error {
    /// Returns `true` if the server reported the error, or caused it with an invalid response.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Rejected(_) | Self::Status { .. } | Self::InvalidResponse(_) | Self::ToolFailed(_))
    }

    /// Returns the JSON-RPC error that the server responded with.
    #[must_use]
    pub fn as_rejection(&self) -> Option<&ErrorObject> {
        if let Self::Rejected(error) = self { Some(error) } else { None }
    }

    /// Converts the error of a call; `disconnect_reason` is why the connection broke, if it did.
    pub(crate) fn of_call(error: CallError, disconnect_reason: Option<&str>) -> Self {
        match error {
            CallError::Rejected(error) => Self::Rejected(error),
            CallError::Cancelled => Self::Cancelled,
            CallError::TimedOut => Self::TimedOut,
            CallError::InvalidResponse => {
                Self::InvalidResponse("it is not a response, or has an unknown `resultType`".to_owned())
            }
            CallError::TooLong { limit } => Self::ResponseTooLong { limit },
            CallError::Status { status, reason } => Self::Status { status, reason },
            CallError::SessionLost => Self::Interrupted("the server does not know the session any more".to_owned()),
            CallError::Disconnected | _ => Self::Interrupted(
                disconnect_reason.unwrap_or("the stream of the call ended without a response").to_owned(),
            ),
        }
    }
}
