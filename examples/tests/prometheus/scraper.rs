//! Debian's Prometheus, and its query API.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use mcp::serde_json::{self, Value};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::exchange::{TIMEOUT, exchange};

/// A Prometheus that scrapes one server every second, with its data in a folder of its own.
pub(crate) struct Scraper {
    child: Child,
    address: String,
    folder: PathBuf,
}

/// One series of a result.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

impl Sample {
    /// The value of a label; empty without one.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

impl Scraper {
    /// Starts it, and waits until it is ready.
    pub(crate) async fn start(target: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("mcp-prometheus-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let config = folder.join("prometheus.yml");
        let jobs = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\n\
             scrape_configs: [ {{ job_name: demo, static_configs: [ {{ targets: [ '{target}' ] }} ] }} ]\n"
        );
        std::fs::write(&config, jobs).expect("a configuration");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new("prometheus");
        command.arg("--config.file").arg(&config).arg("--storage.tsdb.path").arg(folder.join("data"));
        command.arg(format!("--web.listen-address={address}")).arg("--log.level=error");
        command.current_dir(&folder).stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        let child = command.spawn().expect("`prometheus` is there: apt-get install prometheus");
        let mut scraper = Self { child, address, folder };
        let ready = async {
            while !scraper.is_ready().await {
                assert!(scraper.child.try_wait().expect("a status").is_none(), "Prometheus does not run");
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(TIMEOUT, ready).await.expect("Prometheus is ready in time");
        scraper
    }

    async fn is_ready(&self) -> bool {
        if tokio::net::TcpStream::connect(&self.address).await.is_err() {
            return false;
        }
        exchange(&self.address, "GET /-/ready", &[], "").await.0 == 200
    }

    /// Requests a path of the API; returns the data of the response.
    pub(crate) async fn api(&self, path: &str) -> Value {
        let (status, body) = exchange(&self.address, &format!("GET /api/v1/{path}"), &[], "").await;
        let mut response: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
        assert_eq!((status, &response["status"]), (200, &"success".into()), "{path}: {body}");
        response["data"].take()
    }

    /// Evaluates an expression, which must be valid.
    pub(crate) async fn query(&self, expression: &str) -> Vec<Sample> {
        let data = self.api(&format!("query?query={}", percent_encoded(expression))).await;
        let result = data["result"].as_array().unwrap_or_else(|| panic!("{expression}: {data}"));
        let sample = |series: &Value| {
            let labels = serde_json::from_value(series["metric"].clone()).expect("labels");
            let value = series["value"][1].as_str().and_then(|value| value.parse().ok()).expect("a value");
            Sample { labels, value }
        };
        result.iter().map(sample).collect()
    }

    /// Evaluates an expression with at most one series; returns its value.
    pub(crate) async fn number(&self, expression: &str) -> Option<f64> {
        let samples = self.query(expression).await;
        assert!(samples.len() < 2, "{expression}: {samples:?}");
        samples.first().map(|sample| sample.value)
    }

    /// Waits until an expression has a value.
    pub(crate) async fn until(&self, expression: &str, expected: f64) {
        let mut last = None;
        let reached = async {
            while last != Some(expected) {
                sleep(Duration::from_millis(100)).await;
                last = self.number(expression).await;
            }
        };
        if timeout(TIMEOUT, reached).await.is_err() {
            panic!("{expression} is {last:?} instead of {expected}");
        }
    }

    /// Stops it, and removes its data.
    pub(crate) async fn stop(mut self) {
        self.child.kill().await.expect("it is stopped");
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        let _ = self.child.start_kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A value of the query of a URL.
pub(crate) fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
