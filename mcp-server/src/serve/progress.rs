//! Progress reports.

use mcp_types::Number;

/// A progress report: a value, and optionally a total and a message.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "report it with `RequestContext::progress`"]
pub struct Progress {
    pub(super) progress: Number,
    pub(super) total: Option<Number>,
    pub(super) message: Option<String>,
}

impl Progress {
    /// Creates a progress report with the current value.
    pub fn new(progress: impl Into<Number>) -> Self {
        Self { progress: progress.into(), total: None, message: None }
    }

    /// Returns the current value, the total and the message.
    #[must_use]
    pub fn into_parts(self) -> (Number, Option<Number>, Option<String>) {
        (self.progress, self.total, self.message)
    }

    /// Sets the expected total.
    pub fn total(self, total: impl Into<Number>) -> Self {
        Self { total: Some(total.into()), ..self }
    }

    /// Sets a message for the user.
    pub fn message(self, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..self }
    }
}

macro_rules! progress_from {
    ($($number:ty),*) => {$(
        impl From<$number> for Progress {
            fn from(progress: $number) -> Self {
                Self::new(progress)
            }
        }

        impl From<($number, $number)> for Progress {
            fn from((progress, total): ($number, $number)) -> Self {
                Self::new(progress).total(total)
            }
        }
    )*};
}

progress_from!(f64, i32, i64, u32, u64, usize);
