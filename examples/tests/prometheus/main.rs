//! Debian's Prometheus scrapes the demo under load, and its query API returns what clients did.
//!
//! Needs `prometheus` (Debian: `apt-get install prometheus`).

mod exchange;
mod load;
mod scraper;

use std::collections::{BTreeMap, BTreeSet};

use mcp::client::Client;
use mcp::serde_json::{self, Value, json};
use mcp::types::SubscriptionFilter;
use tokio::time::timeout;

use exchange::TIMEOUT;
use load::{Demo, ERAS, ROUND};
use scraper::{Scraper, percent_encoded};

/// How many clients there are, by era: those of the first have sessions.
const CLIENTS: [u32; 2] = [3, 2];

const ROUNDS: u32 = 10;

/// The calls of the load.
const CALLS: &str = r#"mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call",gen_ai_tool_name=~"convert|text_statistics|"}"#;

/// Each metric is one that dashboards can rely on: the counts are exact, and rates follow from them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(windows, ignore = "needs the package of Debian")]
async fn prometheus_counts_what_clients_did() {
    let demo = Demo::start().await;
    let scraper = Scraper::start(&demo.status).await;
    let mut clients = Vec::new();
    for (revision, count) in ERAS.into_iter().zip(CLIENTS) {
        for _ in 0..count {
            clients.push(demo.connect(revision).await);
        }
    }
    let one_of_each_era = [&clients[0], &clients[CLIENTS[0] as usize]];
    for client in one_of_each_era {
        load::warm_up(client).await;
        delete_a_note(client).await;
    }
    let warm_up = 2 * u32::try_from(ROUND.len()).expect("few");
    // Increases are those since the first value that was scraped.
    scraper.until(&format!("sum({CALLS})"), warm_up.into()).await;
    is_refused(&demo, &scraper).await;
    gauges_follow(&scraper, &clients).await;

    let of_a_round = CLIENTS.iter().sum::<u32>() * ROUND.iter().map(|(.., count)| count).sum::<u32>();
    for round in 1..=ROUNDS {
        load::run(&clients).await;
        scraper.until(&format!("sum({CALLS})"), (warm_up + round * of_a_round).into()).await;
    }
    counters_are_exact(&scraper).await;
    rates_follow_from_counts(&scraper).await;
    durations_are_histograms(&scraper).await;
    sessions_end(&scraper, clients).await;
    types_are_known(&scraper).await;
    the_dashboard_has_data(&scraper).await;
    scraper.stop().await;
    demo.stop().await;
}

/// A call with an elicitation: a round of input requests in the modern era.
async fn delete_a_note(client: &Client) {
    let note = client.call_tool("add_note").arguments(&json!({ "title": "Milk", "text": "Buy milk" }));
    let note: Value = timeout(TIMEOUT, note.structured()).await.expect("in time").expect("a note");
    let delete = client.call_tool("delete_note").arguments(&json!({ "id": note["id"] }));
    let deleted = timeout(TIMEOUT, delete).await.expect("in time").expect("a result");
    assert_eq!(deleted.to_text(), "deleted \"Milk\"");
}

async fn is_refused(demo: &Demo, scraper: &Scraper) {
    for _ in 0..4 {
        assert_eq!(demo.refused(&[("Origin", "https://evil.example")], "{}").await, 403);
    }
    for _ in 0..3 {
        assert_eq!(demo.refused(&[], "no JSON").await, 400);
    }
    let former = demo.connect(ERAS[0]).await;
    let session = former.session_id().expect("a session");
    timeout(TIMEOUT, former.close()).await.expect("in time");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for _ in 0..2 {
        let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
        assert_eq!(demo.refused(&headers, ping).await, 404);
    }
    for (status, count) in [(403, 4.0), (400, 3.0), (404, 2.0)] {
        let refused = format!(r#"mcp_server_refused_requests_total{{http_response_status_code="{status}"}}"#);
        scraper.until(&refused, count).await;
    }
    scraper.until(r#"mcp_server_http_session_refused_total{mcp_session_reason="unknown"}"#, 2.0).await;
    // Deleting a note took one round of input requests, in the modern era only.
    scraper.until("sum(mcp_server_input_rounds_total)", 1.0).await;
}

/// What has begun is counted until it ends.
async fn gauges_follow(scraper: &Scraper, clients: &[Client]) {
    let has_sessions = f64::from(CLIENTS[0]);
    scraper.until("sum(mcp_server_http_session_count)", has_sessions).await;
    scraper.until("sum(mcp_server_session_count)", has_sessions).await;
    let client = clients.last().expect("a modern client");
    let filter = SubscriptionFilter::default().tools_list_changed(true);
    let changes = timeout(TIMEOUT, client.listen(filter)).await.expect("in time").expect("a subscription");
    let slow = client.call_tool("count_primes").arguments(&json!({ "up_to": 100_000_000 }));
    let slow = tokio::spawn(async move { slow.await.map(drop) });
    let active = |method: &str| format!("mcp_server_active_requests{{mcp_method_name=\"{method}\"}}");
    let listening = r#"mcp_server_stream_count{mcp_stream_kind="listen"}"#;
    scraper.until(&active("tools/call"), 1.0).await;
    scraper.until(&active("subscriptions/listen"), 1.0).await;
    scraper.until(listening, 1.0).await;
    slow.abort();
    drop(changes);
    scraper.until(&active("tools/call"), 0.0).await;
    scraper.until(&active("subscriptions/listen"), 0.0).await;
    scraper.until(listening, 0.0).await;
    let cancelled = r#"gen_ai_tool_name="count_primes",error_type="cancelled""#;
    scraper.until(&format!("sum(mcp_server_operation_duration_seconds_count{{{cancelled}}})"), 1.0).await;
}

/// A series of calls: its revision, its tool, and the type of its error.
type Series = (String, String, String);

/// Evaluates an expression that has a value for each series of calls.
async fn by_series(scraper: &Scraper, expression: &str) -> BTreeMap<Series, f64> {
    let labels = ["mcp_protocol_version", "gen_ai_tool_name", "error_type"];
    let samples = scraper.query(&format!("sum by ({}) ({expression})", labels.join(", "))).await;
    let series = samples.iter().map(|sample| {
        let [revision, tool, error] = labels.map(|label| sample.label(label).to_owned());
        ((revision, tool, error), sample.value)
    });
    series.collect()
}

/// How often each call was made since the warm-up.
fn made() -> BTreeMap<Series, f64> {
    let mut made = BTreeMap::new();
    for (revision, clients) in ERAS.into_iter().zip(CLIENTS) {
        for (tool, error, count) in ROUND {
            let series = (revision.to_string(), tool.to_owned(), error.to_owned());
            made.insert(series, f64::from(ROUNDS * clients * count));
        }
    }
    made
}

async fn counters_are_exact(scraper: &Scraper) {
    let expected: BTreeMap<_, _> = made().into_iter().map(|(series, count)| (series, count + 1.0)).collect();
    assert_eq!(by_series(scraper, CALLS).await, expected);
}

/// A rate is the difference of two samples, which Prometheus extends to the whole range: by at most 1.1 times the mean
/// distance of samples at either end.
async fn rates_follow_from_counts(scraper: &Scraper) {
    let increases = by_series(scraper, &format!("increase({CALLS}[5m])")).await;
    let rates = by_series(scraper, &format!("rate({CALLS}[5m])")).await;
    let samples = by_series(scraper, &format!("count_over_time({CALLS}[5m])")).await;
    let made = made();
    assert_eq!(increases.keys().collect::<Vec<_>>(), made.keys().collect::<Vec<_>>());
    for (series, count) in &made {
        let (increase, rate, samples) = (increases[series], rates[series], samples[series]);
        assert!(samples > f64::from(ROUNDS), "{series:?}: {samples} samples");
        let most = count * (1.0 + 2.2 / (samples - 1.0));
        assert!(
            increase >= count - 1e-6 && increase <= most + 1e-6,
            "{series:?}: {increase} is not in {count}..={most}"
        );
        // They are queried one after the other, and the range moves meanwhile.
        let (least, most) = (count / 300.0, most / 300.0);
        assert!(rate >= least - 1e-6 && rate <= most + 1e-6, "{series:?}: {rate} is not in {least}..={most}");
    }
}

async fn durations_are_histograms(scraper: &Scraper) {
    let metric = "mcp_server_operation_duration_seconds";
    let difference = format!("sum(abs({metric}_bucket{{le=\"+Inf\"}} - ignoring(le) {metric}_count))");
    assert_eq!(scraper.number(&difference).await, Some(0.0), "the last bucket has everything");
    let of_tool = |tool: &str, kind: &str| format!("sum by (le) ({metric}_{kind}{{gen_ai_tool_name=\"{tool}\"}})");
    for tool in ["convert", "text_statistics"] {
        let mean = format!("{} / {}", of_tool(tool, "sum"), of_tool(tool, "count"));
        let mean = scraper.number(&mean).await.expect("a mean");
        let mut quantiles = Vec::new();
        for quantile in [0.5, 0.95, 1.0] {
            let quantile = format!("histogram_quantile({quantile}, {})", of_tool(tool, "bucket"));
            quantiles.push(scraper.number(&quantile).await.expect("a quantile"));
        }
        assert!(quantiles.is_sorted() && quantiles[0] > 0.0 && quantiles[2] <= 300.0, "{tool}: {quantiles:?}");
        assert!(mean > 0.0 && mean <= quantiles[2], "{tool}: {mean} and {quantiles:?}");
    }
}

async fn sessions_end(scraper: &Scraper, clients: Vec<Client>) {
    for client in clients {
        timeout(TIMEOUT, client.close()).await.expect("in time");
    }
    // One more has ended before.
    let ended = f64::from(CLIENTS[0]) + 1.0;
    scraper.until(r#"mcp_server_http_session_ended_total{mcp_session_reason="deleted"}"#, ended).await;
    scraper.until("sum(mcp_server_http_session_count)", 0.0).await;
    scraper.until("sum(mcp_server_session_count)", 0.0).await;
    let durations = format!(r#"mcp_server_session_duration_seconds_count{{mcp_protocol_version="{}"}}"#, ERAS[0]);
    scraper.until(&format!("sum({durations})"), ended).await;
}

/// Prometheus has understood the text: all scrapes succeeded, and metrics have types.
async fn types_are_known(scraper: &Scraper) {
    assert_eq!(scraper.number("min_over_time(up[5m])").await, Some(1.0));
    let targets = scraper.api("targets?state=active").await;
    assert_eq!(targets["activeTargets"][0]["lastError"], "", "{targets}");
    let metadata = scraper.api("metadata").await;
    for (metric, kind) in [
        ("mcp_server_operation_duration_seconds", "histogram"),
        ("mcp_server_refused_requests_total", "counter"),
        ("mcp_server_active_requests", "gauge"),
    ] {
        assert_eq!(metadata[metric][0]["type"], kind, "{}", metadata[metric]);
    }
}

/// Each expression of the dashboard is valid, and has data if its metric has.
async fn the_dashboard_has_data(scraper: &Scraper) {
    let dashboard = include_str!("../../../docs/dashboards/mcp-server.json");
    let dashboard: Value = serde_json::from_str(dashboard).expect("JSON");
    let names = scraper.api("label/__name__/values").await;
    let names: BTreeSet<&str> = names.as_array().expect("names").iter().filter_map(Value::as_str).collect();
    let variable = dashboard["templating"]["list"][1]["query"].as_str().expect("a query");
    let metric = variable.trim_start_matches("label_values(").trim_end_matches(", job)");
    let jobs = scraper.api(&format!("label/job/values?match%5B%5D={}", percent_encoded(metric))).await;
    assert_eq!(jobs, json!(["demo"]), "{variable}");
    let panels = dashboard["panels"].as_array().expect("panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let (mut with_data, mut without) = (0, Vec::new());
    for target in targets {
        let expression = target["expr"].as_str().expect("an expression");
        let expression = expression.replace("$job", "demo").replace("$__rate_interval", "5m");
        assert!(!expression.contains('$'), "{expression} has another variable");
        let samples = scraper.query(&expression).await;
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if expression.split(|letter| !is_word(letter)).any(|word| names.contains(word)) {
            assert!(!samples.is_empty(), "{expression} has no data");
            assert!(samples.iter().any(|sample| sample.value.is_finite()), "{expression}: {samples:?}");
            with_data += 1;
        } else {
            without.push(expression);
        }
    }
    // The demo has no tasks, and nothing of the load makes the server queue requests, drop messages, or close connections of
    // slow readers.
    without.retain(|expression| !expression.contains("mcp_server_task_"));
    assert!(with_data >= 15 && without.len() <= 4, "{with_data} expressions have data, and not {without:#?}");
}
