//! The values of `error.type`.

use mcp_kernel::observe::OperationOutcome;
use mcp_types::ErrorCode;
use opentelemetry::StringValue;

use crate::names::OTHER;

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ErrorType {
    /// A JSON-RPC error.
    Code(ErrorCode),
    /// An HTTP status.
    Status(u16),
    /// A short name.
    Name(&'static str),
}

impl ErrorType {
    pub(crate) const OTHER: Self = Self::Name(OTHER);

    pub(crate) fn of_outcome(outcome: OperationOutcome) -> Option<Self> {
        match outcome {
            OperationOutcome::Completed | OperationOutcome::InputRequired => None,
            OperationOutcome::ToolError => Some(Self::Name("tool_error")),
            OperationOutcome::Error(code) => Some(Self::Code(code)),
            OperationOutcome::Status(status) => Some(Self::Status(status)),
            OperationOutcome::Cancelled => Some(Self::Name("cancelled")),
            OperationOutcome::TimedOut => Some(Self::Name("timeout")),
            OperationOutcome::Failed => Some(Self::OTHER),
            _ => Some(Self::OTHER),
        }
    }

    pub(crate) fn to_value(self) -> StringValue {
        match self {
            Self::Code(code) => code.to_string().into(),
            Self::Status(status) => status.to_string().into(),
            Self::Name(name) => name.into(),
        }
    }
}
