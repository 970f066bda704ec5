//! Tasks over HTTP: headers, statuses, and no connection between two requests.

use std::future::poll_fn;
use std::pin::pin;

use http::Request;
use http_body::Body;
use mcp_server::Server;
use mcp_tasks::TaskSupport;
use mcp_testkit::envelope;
use mcp_transport_http::HttpService;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};
use tower_service::Service;

use crate::kit::{EXTENSION, server, text};
use crate::tools;

/// Posts a message; returns the status and the JSON of the response.
async fn post(
    service: &HttpService,
    message: &Value,
    change: impl FnOnce(&mut Vec<(&'static str, String)>),
) -> (u16, Value) {
    let mut headers = envelope::http_headers(message);
    change(&mut headers);
    let mut request = Request::post("/mcp");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let body = message.to_string();
    let response = service.clone().call(request.body(body).expect("a request")).await.expect("a response");
    let status = response.status().as_u16();
    let mut body = pin!(response.into_body());
    let mut text = Vec::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        if let Ok(data) = frame.unwrap().into_data() {
            text.extend_from_slice(&data);
        }
    }
    (status, serde_json::from_slice(&text).unwrap_or_default())
}

fn modern(method: &str, params: Value) -> Value {
    let capabilities = json!({ "extensions": { EXTENSION: {} } });
    envelope::request(1, method, envelope::with_modern_meta(params, capabilities))
}

fn farm() -> Server {
    server([tools::slow(TaskSupport::Required)])
}

/// The whole life of a task, each request on its own.
// covers: TK-12, TK-34
#[tokio::test(start_paused = true)]
async fn a_task_needs_no_connection() {
    let service = HttpService::new(farm());
    let (status, created) = post(&service, &modern("tools/call", json!({ "name": "slow" })), |_| {}).await;
    assert_eq!((status, &created["result"]["resultType"]), (200, &json!("task")), "{created}");
    let task = created["result"]["taskId"].as_str().unwrap();
    loop {
        let (status, state) = post(&service, &modern("tasks/get", json!({ "taskId": task })), |_| {}).await;
        assert_eq!(status, 200);
        if state["result"]["status"] == "completed" {
            assert_eq!(text(&state["result"]["result"]), "done");
            break;
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// The id is repeated in a header, which is compared with the body.
// covers: TK-34
#[tokio::test(start_paused = true)]
async fn headers_name_the_task() {
    let service = HttpService::new(farm());
    let (_, created) = post(&service, &modern("tools/call", json!({ "name": "slow" })), |_| {}).await;
    let task = created["result"]["taskId"].as_str().unwrap();
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let message = modern(method, json!({ "taskId": task, "inputResponses": {} }));
        let (status, response) = post(&service, &message, |headers| {
            headers
                .iter_mut()
                .filter(|(name, _)| *name == "Mcp-Name")
                .for_each(|(_, value)| *value = "other".to_owned());
        })
        .await;
        assert_eq!((status, &response["error"]["code"]), (400, &json!(-32020)), "{method}");
        let (status, response) =
            post(&service, &message, |headers| headers.retain(|(name, _)| *name != "Mcp-Name")).await;
        assert_eq!((status, &response["error"]["code"]), (400, &json!(-32020)), "{method}");
        let (status, _) = post(&service, &message, |_| {}).await;
        assert_eq!(status, 200, "{method}");
    }
    let (_, response) = post(&service, &modern("tasks/list", json!({})), |_| {}).await;
    assert_eq!(response["error"]["code"], -32601);
}

/// A client of 2025-11-25 without a session can have tasks, too.
// covers: B-82, B-85
#[tokio::test(start_paused = true)]
async fn core_tasks_need_no_session() {
    let service = HttpService::new(farm());
    let legacy = |method: &str, params: Value| envelope::request(1, method, params);
    let version =
        |headers: &mut Vec<(&'static str, String)>| headers.push(("MCP-Protocol-Version", "2025-11-25".to_owned()));
    let (_, created) = post(&service, &legacy("tools/call", json!({ "name": "slow", "task": {} })), version).await;
    let task = created["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}"));
    let (_, result) = post(&service, &legacy("tasks/result", json!({ "taskId": task })), version).await;
    assert_eq!(text(&result["result"]), "done");
}
