//! The limits of metrics.

/// The limits of [`Metrics`](crate::Metrics), which bound the number of series and their memory.
#[derive(Clone, Debug)]
#[must_use]
pub struct MetricsOptions {
    pub(crate) max_names: usize,
    pub(crate) max_series: usize,
}

impl MetricsOptions {
    /// Sets the maximum number of distinct names of tools and prompts, for servers and clients each. Further names count as
    /// `_OTHER`. Defaults to 1,000.
    pub fn max_names(mut self, max: usize) -> Self {
        self.max_names = max;
        self
    }

    /// Sets the maximum number of series of each histogram. All measurements beyond it are in one series, with the method
    /// `_OTHER`, or the error type `_OTHER` for sessions. Defaults to 2,000, which is also the default limit of the OpenTelemetry
    /// SDK; to raise this one, raise that of the SDK with a view.
    pub fn max_series(mut self, max: usize) -> Self {
        self.max_series = max;
        self
    }
}

impl Default for MetricsOptions {
    fn default() -> Self {
        Self { max_names: 1_000, max_series: 2_000 }
    }
}
