//! What requests settle is in the store before they are answered, however long layers take.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use mcp_server::types::{ErrorObject, LoggingLevel};
use mcp_server::{Endpoint, Request, Response, ResponseFuture, Server, text_resource};
use mcp_transport_http::HttpService;
use mcp_transport_http::session::{SessionId, SessionRecord, SessionStore as _};
use serde_json::{Value, json};
use tower_layer::layer_fn;
use tower_service::Service;

use crate::client::{Client, Shared};
use crate::stores::Gone;

/// A layer that takes its time, and may say something before.
#[derive(Clone)]
struct Slow {
    inner: Endpoint,
    is_talking: bool,
}

impl Service<Request> for Slow {
    type Response = Response;
    type Error = ErrorObject;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ErrorObject>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> ResponseFuture {
        if self.is_talking {
            request.ctx.log(LoggingLevel::Emergency, "slowly");
        }
        let mut inner = self.inner.clone();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let answer = inner.call(request).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            answer
        })
    }
}

fn server(is_talking: bool) -> Server {
    Server::builder("layered", "1.0")
        .resource(text_resource("a:b", "b", "text"))
        .resource_subscriptions()
        .layer(layer_fn(move |inner| Slow { inner, is_talking }))
        .build()
        .expect("a server")
}

async fn record(shared: &Shared, client: &Client) -> SessionRecord {
    let id = SessionId::parse(&client.session).expect("an id");
    shared.sessions.load(id).await.expect("a store").expect("a record").record
}

/// What is asked for, and whether a record has it.
type Settled = (&'static str, Value, fn(&SessionRecord) -> bool);

fn settled() -> [Settled; 2] {
    [
        ("resources/subscribe", json!({ "uri": "a:b" }), |record| record.subscriptions == ["a:b"]),
        ("logging/setLevel", json!({ "level": "error" }), |record| record.log_level == LoggingLevel::Error),
    ]
}

/// The answer is one message, or comes at the end of a stream.
// covers: SEC-9
#[tokio::test(start_paused = true)]
async fn sec_9_what_is_settled_is_kept_before_it_is_answered() {
    for is_talking in [false, true] {
        for (method, params, is_kept) in settled() {
            let shared = Shared::default();
            let service = HttpService::with_options(server(is_talking), shared.options());
            let client = Client::initialize(&service, None).await;
            let mut answer = client.ask(&service, method, params).await;
            if is_talking {
                assert!(!is_kept(&record(&shared, &client).await), "nothing is settled yet");
            }
            assert!(answer.text("\"result\"").await.contains("\"result\""), "{method}");
            assert!(is_kept(&record(&shared, &client).await), "{method}, talking: {is_talking}");
        }
    }
}

/// Whoever hangs up comes back for the answer only when there is something to come back to.
// covers: SEC-9
#[tokio::test(start_paused = true)]
async fn sec_9_what_is_settled_for_a_client_that_left_is_kept_before_it_comes_back() {
    for (method, params, is_kept) in settled() {
        let shared = Shared::default();
        let service = HttpService::with_options(server(true), shared.options());
        let client = Client::initialize(&service, None).await;
        let mut answer = client.ask(&service, method, params).await;
        let first = answer.text("slowly").await;
        let id = first.lines().rev().find_map(|line| line.strip_prefix("id: ")).expect("an id").to_owned();
        drop(answer);
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut resumed = client.send(&service, "GET", &[("last-event-id", &id)], Value::Null).await;
        assert!(resumed.text("\"result\"").await.contains("\"result\""), "{method}");
        assert!(is_kept(&record(&shared, &client).await), "{method}");
    }
}

/// What cannot be kept is not promised, whether the response has begun or not.
// covers: SEC-9
#[tokio::test(start_paused = true)]
async fn sec_9_what_cannot_be_kept_is_refused() {
    for is_talking in [false, true] {
        let shared = Shared::default();
        let store = Arc::new(Gone::after(shared.sessions.clone(), 2));
        let options = shared.options().session_store(store, Duration::from_secs(60));
        let service = HttpService::with_options(server(is_talking), options);
        let client = Client::initialize(&service, None).await;
        let mut answer = client.ask(&service, "resources/subscribe", json!({ "uri": "a:b" })).await;
        let text = answer.text("\"error\"").await;
        assert!(text.contains("\"error\"") && text.contains("\"id\":1") && !text.contains("\"result\""), "{text}");
        assert_eq!(answer.status.as_u16(), if is_talking { 200 } else { 503 });
        assert!(record(&shared, &client).await.subscriptions.is_empty());
    }
}
