//! Severities of log messages.

use crate::codec::closed_set::closed_set;

closed_set! {
    /// The severity of a log message, in the order of RFC 5424: `Debug` is the least severe.
    ///
    /// A client that sets `Warning` receives warnings and more severe messages. Logging is deprecated since 2026-07-28
    /// in favour of stderr and OpenTelemetry.
    ///
    /// Since 2024-11-05.
    ///
    /// ```
    /// use mcp_types::LoggingLevel;
    ///
    /// assert!(LoggingLevel::Error >= LoggingLevel::Warning);
    /// ```
    pub enum LoggingLevel {
        /// Debugging information.
        Debug = "debug",
        /// Normal operation.
        Info = "info",
        /// A normal but significant event.
        Notice = "notice",
        /// A warning condition.
        Warning = "warning",
        /// An operation failed.
        Error = "error",
        /// A component failed.
        Critical = "critical",
        /// Immediate action is required.
        Alert = "alert",
        /// The server is unusable.
        Emergency = "emergency",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schema files list the levels by alphabet; the order is RFC 5424's.
    // covers: Y-6, CG-16
    #[test]
    fn levels_are_ordered_by_severity() {
        assert!(LoggingLevel::ALL.is_sorted());
        assert!(LoggingLevel::Notice < LoggingLevel::Warning);
        for level in LoggingLevel::ALL {
            assert_eq!(serde_json::to_value(level).unwrap(), level.as_str());
        }
        assert!(serde_json::from_str::<LoggingLevel>("\"verbose\"").is_err());
    }
}
