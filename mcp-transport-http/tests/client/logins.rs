//! Logins that take longer than any timeout. Time is virtual, so there is no network.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use mcp_client::types::SubscriptionFilter;
use mcp_client::{Client, ClientBuilder, CloseReason, Error, Mode};
use mcp_testkit::envelope;
use mcp_transport_http::internals::{Script, Sent};
use mcp_transport_http::{AuthorizationError, Authorizer, Challenge, Credential, HttpTransport, async_trait};
use serde_json::{Value, json};
use tokio::time::Instant;

/// How long a user takes to log in.
const LOGIN: Duration = Duration::from_secs(600);

/// The timeouts of calls and of the handshake.
const IDLE: Duration = Duration::from_secs(5);
const TOTAL: Duration = Duration::from_secs(8);
const HANDSHAKE: Duration = Duration::from_secs(2);

/// A user who logs in slowly, once for all requests that wait.
#[derive(Clone, Default)]
struct SlowUser {
    token: Arc<Mutex<Option<&'static str>>>,
    login: Arc<tokio::sync::Mutex<()>>,
    started: Arc<AtomicUsize>,
    abandoned: Arc<AtomicUsize>,
}

/// Counts a login that is dropped before its end.
struct Abandoned<'a>(Option<&'a AtomicUsize>);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl SlowUser {
    fn with_token(token: &'static str) -> Self {
        let user = Self::default();
        *user.token.lock().expect("no panic") = Some(token);
        user
    }

    fn logins(&self) -> (usize, usize) {
        (self.started.load(Ordering::SeqCst), self.abandoned.load(Ordering::SeqCst))
    }
}

#[async_trait]
impl Authorizer for SlowUser {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        let token = *self.token.lock().expect("no panic");
        Ok(token.map(Credential::bearer).transpose()?.map(|credential| credential.subject("me")))
    }

    async fn challenged(&self, challenge: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
        let _one_at_a_time = self.login.lock().await;
        let current = self.credential().await?;
        if current != challenge.refused {
            return Ok(current);
        }
        self.started.fetch_add(1, Ordering::SeqCst);
        let mut abandoned = Abandoned(Some(&self.abandoned));
        tokio::time::sleep(LOGIN).await;
        abandoned.0 = None;
        *self.token.lock().expect("no panic") = Some("new");
        self.credential().await
    }
}

type Reply = http::Response<reqwest::Body>;

fn status(status: u16) -> Reply {
    let mut reply = http::Response::new(reqwest::Body::from(""));
    *reply.status_mut() = http::StatusCode::from_u16(status).expect("a status");
    reply
}

fn reply(content_type: &'static str, body: impl Into<reqwest::Body>) -> Reply {
    let mut reply = http::Response::new(body.into());
    reply.headers_mut().insert("content-type", http::HeaderValue::from_static(content_type));
    reply
}

/// Responds as a server of an era does.
fn serve(is_modern: bool, sent: &Sent) -> Reply {
    let message: Value = serde_json::from_slice(&sent.body).unwrap_or_default();
    let respond =
        |result: Value| reply("application/json", envelope::response(message["id"].clone(), result).to_string());
    match (message["method"].as_str().unwrap_or(sent.verb.as_str()), is_modern) {
        ("server/discover", true) => respond(envelope::discover_result(json!({ "tools": {} }))),
        ("initialize", false) => {
            let version = message["params"]["protocolVersion"].as_str().unwrap_or_default();
            let mut reply = respond(envelope::initialize_result(version, json!({ "tools": {} })));
            reply.headers_mut().insert("mcp-session-id", http::HeaderValue::from_static("s"));
            reply
        }
        ("notifications/initialized" | "notifications/cancelled", false) => status(202),
        ("tools/call", _) => respond(envelope::tool_result("in")),
        ("subscriptions/listen", true) => {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
            let params = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
            let method = "notifications/subscriptions/acknowledged";
            let event = json!({ "jsonrpc": "2.0", "method": method, "params": params });
            reply("text/event-stream", format!("data: {event}\n\n"))
        }
        ("DELETE", false) => status(204),
        _ => status(400),
    }
}

fn method_of(sent: &Sent) -> String {
    let message: Value = serde_json::from_slice(&sent.body).unwrap_or_default();
    message["method"].as_str().unwrap_or(sent.verb.as_str()).to_owned()
}

fn has_new_token(sent: &Sent) -> bool {
    sent.headers.get("authorization").is_some_and(|token| token == "Bearer new")
}

/// A transport to a server of an era, which refuses what `is_refused` says until the user has logged in.
fn transport(is_modern: bool, user: &SlowUser, is_refused: fn(&str) -> bool) -> HttpTransport {
    let script = Script::new(move |sent| {
        async move {
            if is_refused(&method_of(&sent)) && !has_new_token(&sent) {
                return Some(status(401));
            }
            Some(serve(is_modern, &sent))
        }
        .boxed()
    });
    HttpTransport::new("http://server.example/mcp")
        .expect("a URL")
        .script(script)
        .authorizer(user.clone())
        .standalone_stream(false)
}

fn builder(is_modern: bool) -> ClientBuilder {
    let mode = if is_modern { Mode::Auto } else { Mode::Legacy };
    Client::builder("test", "1.0").mode(mode).handshake_timeout(HANDSHAKE)
}

async fn call(client: &Client) -> Result<(), Error> {
    client.call_tool("t").idle_timeout(IDLE).total_timeout(TOTAL).await.map(drop)
}

fn calls_only(method: &str) -> bool {
    method == "tools/call"
}

/// The handshake waits for its user, in either era and in the probe of a legacy server.
// covers: DU-27, AU-50
#[tokio::test(start_paused = true)]
async fn connecting_waits_for_a_login() {
    for (is_modern, builder) in [(true, builder(true)), (false, builder(false)), (false, builder(true))] {
        let (user, started) = (SlowUser::default(), Instant::now());
        let client = builder.connect(transport(is_modern, &user, |_| true)).await.unwrap();
        assert!(started.elapsed() >= LOGIN);
        assert_eq!(user.logins(), (1, 0));
        call(&client).await.unwrap();
    }
}

/// No timeout of the calls that wait for one login runs.
#[tokio::test(start_paused = true)]
async fn calls_wait_for_a_login() {
    for is_modern in [true, false] {
        let user = SlowUser::with_token("old");
        let client = builder(is_modern).connect(transport(is_modern, &user, calls_only)).await.unwrap();
        let started = Instant::now();
        for outcome in join_all((0..3).map(|_| call(&client))).await {
            outcome.unwrap();
        }
        assert!(started.elapsed() >= LOGIN);
        assert_eq!(user.logins(), (1, 0));
    }
}

/// Calls beyond the limit of concurrent requests wait for the login, too.
#[tokio::test(start_paused = true)]
async fn many_calls_wait_for_a_login() {
    let user = SlowUser::with_token("old");
    let client = builder(true).connect(transport(true, &user, calls_only)).await.unwrap();
    for outcome in join_all((0..1500).map(|_| call(&client))).await {
        outcome.unwrap();
    }
    assert_eq!(user.logins(), (1, 0));
}

/// After the login, a call has the time that was left.
#[tokio::test(start_paused = true)]
async fn timeouts_continue_after_a_login() {
    const BEFORE: Duration = Duration::from_secs(2);
    for is_modern in [true, false] {
        for (idle, total, limit) in [(Some(IDLE), None, IDLE), (None, Some(TOTAL), TOTAL)] {
            let user = SlowUser::with_token("old");
            let script = Script::new(move |sent| {
                async move {
                    if method_of(&sent) != "tools/call" {
                        return Some(serve(is_modern, &sent));
                    }
                    if has_new_token(&sent) {
                        std::future::pending::<()>().await;
                    }
                    tokio::time::sleep(BEFORE).await;
                    Some(status(401))
                }
                .boxed()
            });
            let transport = transport(is_modern, &user, |_| false).script(script);
            let client = builder(is_modern).connect(transport).await.unwrap();
            let started = Instant::now();
            let error = client.call_tool("t").idle_timeout(idle).total_timeout(total).await.unwrap_err();
            assert!(matches!(error, Error::TimedOut), "{error:?}");
            let late = started.elapsed() - LOGIN;
            assert!(late >= limit && late < limit + Duration::from_secs(1), "{late:?}");
        }
    }
}

/// Dropping the call ends its login; the notification about it does not start another.
#[tokio::test(start_paused = true)]
async fn a_dropped_call_ends_its_login() {
    for is_modern in [true, false] {
        let user = SlowUser::with_token("old");
        let is_refused = |method: &str| method == "tools/call" || method == "notifications/cancelled";
        let client = builder(is_modern).connect(transport(is_modern, &user, is_refused)).await.unwrap();
        let waiting = tokio::time::timeout(LOGIN / 2, call(&client)).await;
        assert!(waiting.is_err(), "{waiting:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(user.logins(), (1, 1));
        // The next call starts anew.
        call(&client).await.unwrap();
        assert_eq!(user.logins(), (2, 1));
    }
}

/// Closing the client ends all logins: those of calls, of notifications and of the handshake.
#[tokio::test(start_paused = true)]
async fn closing_ends_logins() {
    for is_modern in [true, false] {
        let user = SlowUser::with_token("old");
        let is_refused = |method: &str| method == "tools/call" || method == "notifications/x" || method == "DELETE";
        let client = builder(is_modern).connect(transport(is_modern, &user, is_refused)).await.unwrap();
        client.notify("notifications/x", &json!({})).await.unwrap();
        let started = Instant::now();
        let close = async {
            tokio::time::sleep(LOGIN / 2).await;
            client.close().await
        };
        let (called, closed) = tokio::join!(call(&client), close);
        assert!(matches!(called, Err(Error::Closed(CloseReason::ByClient))), "{called:?}");
        assert_eq!(closed, CloseReason::ByClient);
        assert!(started.elapsed() - LOGIN / 2 < Duration::from_secs(1));
        assert_eq!(user.logins(), (1, 1));

        let user = SlowUser::default();
        let connecting = builder(is_modern).connect(transport(is_modern, &user, |_| true));
        assert!(tokio::time::timeout(LOGIN / 2, connecting).await.is_err());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(user.logins(), (1, 1));
    }
}

/// The message that opens a session may need a login, which the calls behind it wait for.
#[tokio::test(start_paused = true)]
async fn the_opening_of_a_session_waits_for_a_login() {
    let user = SlowUser::with_token("old");
    let transport = transport(false, &user, |method| method == "notifications/initialized");
    let client = builder(false).connect(transport).await.unwrap();
    let started = Instant::now();
    for outcome in join_all((0..3).map(|_| call(&client))).await {
        outcome.unwrap();
    }
    assert!(started.elapsed() >= LOGIN);
    assert_eq!(user.logins(), (1, 0));
}

/// So may a subscription.
#[tokio::test(start_paused = true)]
async fn a_subscription_waits_for_a_login() {
    let user = SlowUser::with_token("old");
    let transport = transport(true, &user, |method| method == "subscriptions/listen");
    let options = mcp_client::CallOptions::default().idle_timeout(Some(IDLE));
    let client = builder(true).call_options(options).connect(transport).await.unwrap();
    let started = Instant::now();
    drop(client.listen(SubscriptionFilter::default().tools_list_changed(true)).await.unwrap());
    assert!(started.elapsed() >= LOGIN);
}

/// A session that is lost is renewed with a login, which the calls that need it wait for.
#[tokio::test(start_paused = true)]
async fn a_new_session_waits_for_a_login() {
    let user = SlowUser::with_token("old");
    let lost = Arc::new(AtomicUsize::new(0));
    let script = Script::new(move |sent| {
        let lost = Arc::clone(&lost);
        async move {
            Some(match method_of(&sent).as_str() {
                "tools/call" if lost.fetch_add(1, Ordering::SeqCst) == 1 => status(404),
                "initialize" if lost.load(Ordering::SeqCst) > 0 && !has_new_token(&sent) => status(401),
                _ => serve(false, &sent),
            })
        }
        .boxed()
    });
    let client = builder(false).connect(transport(false, &user, |_| false).script(script)).await.unwrap();
    call(&client).await.unwrap();
    let later = async {
        tokio::time::sleep(LOGIN / 4).await;
        call(&client).await
    };
    let (first, second) = tokio::join!(call(&client), later);
    first.unwrap();
    second.unwrap();
    assert_eq!(user.logins(), (1, 0));
}

/// A body of events that are sent later.
struct Events(tokio::sync::mpsc::UnboundedReceiver<String>);

impl http_body::Body for Events {
    type Data = bytes::Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        self.0.poll_recv(cx).map(|event| event.map(|event| Ok(http_body::Frame::data(event.into()))))
    }
}

/// The event stream of an HTTP+SSE server may need a login, although `initialize` was refused without one.
#[tokio::test(start_paused = true)]
async fn a_legacy_event_stream_waits_for_a_login() {
    let user = SlowUser::default();
    let (events, stream) = tokio::sync::mpsc::unbounded_channel::<String>();
    let stream = Arc::new(Mutex::new(Some(stream)));
    let script = Script::new(move |sent| {
        let (events, stream) = (events.clone(), Arc::clone(&stream));
        async move {
            if sent.verb == "GET" {
                if !has_new_token(&sent) {
                    return Some(status(401));
                }
                let stream = stream.lock().expect("no panic").take()?;
                events.send("event: endpoint\ndata: /messages\n\n".to_owned()).ok()?;
                return Some(reply("text/event-stream", reqwest::Body::wrap(Events(stream))));
            }
            if sent.url.path() != "/messages" {
                return Some(status(405));
            }
            let response = serve(false, &sent);
            if response.status() == 200 {
                let body = http::Response::from(reqwest::Response::from(response)).into_body();
                let body = reqwest::Response::from(http::Response::new(body)).text().await.ok()?;
                events.send(format!("data: {body}\n\n")).ok()?;
            }
            Some(status(202))
        }
        .boxed()
    });
    let transport = transport(false, &user, |_| false).script(script);
    let client = builder(false).connect(transport).await.unwrap();
    call(&client).await.unwrap();
    assert_eq!(user.logins(), (1, 0));
}
