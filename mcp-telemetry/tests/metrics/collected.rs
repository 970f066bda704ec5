//! Metrics as the SDK collects them.

use std::collections::BTreeMap;

use mcp_telemetry::{Metrics, MetricsOptions};
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

/// A meter provider whose metrics can be read.
pub(crate) struct Collector {
    exporter: InMemoryMetricExporter,
    provider: SdkMeterProvider,
}

impl Collector {
    pub(crate) fn new() -> Self {
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        Self { exporter, provider: SdkMeterProvider::builder().with_reader(reader).build() }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::new(&self.provider.meter("mcp"))
    }

    pub(crate) fn metrics_with(&self, options: MetricsOptions) -> Metrics {
        Metrics::with_options(&self.provider.meter("mcp"), options)
    }

    /// Collects the points of a metric, by their attributes as sorted text, such as `mcp.method.name=ping`.
    pub(crate) fn points(&self, name: &str) -> BTreeMap<String, Point> {
        self.collect().remove(name).unwrap_or_default()
    }

    /// Collects all metrics.
    pub(crate) fn collect(&self) -> BTreeMap<String, BTreeMap<String, Point>> {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        let all = self.exporter.get_finished_metrics().unwrap();
        let metrics = all.iter().flat_map(|resource| resource.scope_metrics()).flat_map(|scope| scope.metrics());
        metrics.map(|metric| (metric.name().to_owned(), points(metric))).collect()
    }

    /// Returns the unit of a metric.
    pub(crate) fn unit(&self, name: &str) -> String {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        let all = self.exporter.get_finished_metrics().unwrap();
        let mut metrics = all.iter().flat_map(|resource| resource.scope_metrics()).flat_map(|scope| scope.metrics());
        metrics.find(|metric| metric.name() == name).unwrap().unit().to_owned()
    }
}

/// A value of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Point {
    /// A sum, which only increases if it is a counter.
    Sum { value: i64, is_counter: bool },
    /// A histogram.
    Durations { count: u64, sum: f64, bounds: Vec<f64> },
}

/// A value of a counter.
pub(crate) fn counter(value: i64) -> Point {
    Point::Sum { value, is_counter: true }
}

/// A value that increases and decreases.
pub(crate) fn number(value: i64) -> Point {
    Point::Sum { value, is_counter: false }
}

fn points(metric: &Metric) -> BTreeMap<String, Point> {
    match metric.data() {
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
            let points = histogram.data_points().map(|point| {
                let (count, sum, bounds) = (point.count(), point.sum(), point.bounds().collect());
                (text(point.attributes()), Point::Durations { count, sum, bounds })
            });
            points.collect()
        }
        AggregatedMetrics::U64(MetricData::Sum(sum)) => {
            let is_counter = sum.is_monotonic();
            let points = sum.data_points().map(|point| {
                let value = point.value().try_into().unwrap();
                (text(point.attributes()), Point::Sum { value, is_counter })
            });
            points.collect()
        }
        AggregatedMetrics::I64(MetricData::Sum(sum)) => {
            let is_counter = sum.is_monotonic();
            let points = sum
                .data_points()
                .map(|point| (text(point.attributes()), Point::Sum { value: point.value(), is_counter }));
            points.collect()
        }
        other => panic!("an unexpected kind of metric: {other:?}"),
    }
}

fn text<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let mut attributes: Vec<String> = attributes.map(|pair| format!("{}={}", pair.key, pair.value)).collect();
    attributes.sort();
    attributes.join(" ")
}
