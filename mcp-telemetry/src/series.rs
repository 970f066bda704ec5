//! One series of a histogram.

use opentelemetry::KeyValue;
use opentelemetry::metrics::Histogram;

/// An attribute set of a histogram. With the feature `bound-instruments`, the SDK looks it up only once.
pub(crate) struct Series {
    attributes: Box<[KeyValue]>,
    #[cfg(feature = "bound-instruments")]
    bound: std::sync::OnceLock<opentelemetry::metrics::BoundHistogram<f64>>,
}

impl Series {
    pub(crate) fn new(attributes: Vec<KeyValue>) -> Self {
        Self {
            attributes: attributes.into(),
            #[cfg(feature = "bound-instruments")]
            bound: std::sync::OnceLock::new(),
        }
    }

    /// Records a value. The histogram has to be the same for each value.
    #[cfg(feature = "bound-instruments")]
    pub(crate) fn record(&self, histogram: &Histogram<f64>, value: f64) {
        self.bound.get_or_init(|| histogram.bind(&self.attributes)).record(value);
    }

    /// Records a value.
    #[cfg(not(feature = "bound-instruments"))]
    pub(crate) fn record(&self, histogram: &Histogram<f64>, value: f64) {
        histogram.record(value, &self.attributes);
    }
}
