//! The hook that looks at each request, and what handlers see of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use mcp_server::{NoArguments, Principal, RequestContext, Server, tool};
use mcp_testkit::Gate;
use mcp_testkit::envelope::{error_code, tool_text};
use mcp_transport_http::{HttpOptions, HttpService, Refusal, SessionMode, StartError};
use serde_json::json;

use crate::demo::{Demo, server};
use crate::raw_http::{Part, Post, RequestBody};

fn saying(text: &'static str) -> Server {
    server(|builder| builder.tool(tool("say", move |_: RequestContext, _: NoArguments| std::future::ready(text))))
}

fn configured(configure: impl AsyncConfigure) -> HttpService {
    HttpService::with_options(saying("default"), configure.options())
}

/// Names the type of the hook once.
trait AsyncConfigure {
    fn options(self) -> HttpOptions;
}

impl<F, Fut> AsyncConfigure for F
where
    F: Fn(Arc<Parts>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Server, Refusal>> + Send + 'static,
{
    fn options(self) -> HttpOptions {
        HttpOptions::default().select_server(self)
    }
}

/// Each request may be answered by another server, in both eras, and the hook runs once for each.
// covers: S4.15, S4.63..S4.65
#[tokio::test]
async fn each_request_may_have_its_server() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let (old, new) = (saying("old"), saying("new"));
    let service = configured(move |parts: Arc<Parts>| {
        counter.fetch_add(1, Ordering::SeqCst);
        let server = if parts.headers.contains_key("x-new") { new.clone() } else { old.clone() };
        async move { Ok(server) }
    });
    for (count, (post, expected)) in [
        (Post::tool("say", json!({})), "old"),
        (Post::tool("say", json!({})).header("x-new", "1"), "new"),
        (Post::legacy_tool(Some("2025-06-18"), "say"), "old"),
        (Post::legacy_tool(None, "say").header("x-new", "1"), "new"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(tool_text(&post.json(&service, 200).await), expected);
        assert_eq!(asked.load(Ordering::SeqCst), count + 1);
    }
}

/// The hook may refuse, with the status and the headers that it likes, before the body is read.
// covers: S3.68, S4.65, H-6
#[tokio::test]
async fn the_hook_may_refuse() {
    let service = configured(|parts: Arc<Parts>| async move {
        if parts.headers.contains_key("authorization") {
            return Ok(saying("secret"));
        }
        let how = HeaderValue::from_static("Bearer resource_metadata=\"https://example.com/m\"");
        Err(Refusal::new(StatusCode::UNAUTHORIZED, "a token is needed").header(WWW_AUTHENTICATE, how))
    });
    let endless = RequestBody::parts([Part::Wait(Gate::default())]);
    for post in [Post::tool("say", json!({})), Post::text("{"), Post::text("").body(endless)] {
        let reply = post.to(&service).await;
        let expected = "Bearer resource_metadata=\"https://example.com/m\"";
        assert_eq!(reply.header("www-authenticate"), Some(expected));
        let answer = reply.json(401).await;
        assert_eq!((error_code(&answer), answer.get("id")), (-32600, None));
        assert_eq!(answer["error"]["message"], "a token is needed");
    }
    let allowed = Post::tool("say", json!({})).header("authorization", "Bearer x");
    assert_eq!(tool_text(&allowed.json(&service, 200).await), "secret");
}

/// The hook may wait, and its request with it; others do not.
// covers: S4.64
#[tokio::test]
async fn the_hook_may_wait() {
    let gate = Gate::default();
    let waited = gate.clone();
    let service = configured(move |parts: Arc<Parts>| {
        let gate = waited.clone();
        async move {
            if parts.headers.contains_key("x-slow") {
                gate.wait().await;
            }
            Ok(saying("ready"))
        }
    });
    let mut slow = Post::tool("say", json!({})).header("x-slow", "1").send(&service);
    slow.starts().await;
    assert_eq!(tool_text(&Post::tool("say", json!({})).json(&service, 200).await), "ready");
    gate.open();
    assert_eq!(tool_text(&slow.reply().await.json(200).await), "ready");
}

/// Whoever may not ask at all is not shown to the hook.
// covers: RB-70
#[tokio::test]
async fn the_hook_comes_after_the_checks() {
    let service = configured(async |_: Arc<Parts>| -> Result<Server, Refusal> { panic!("nobody gets here") });
    let hello = || Post::tool("say", json!({}));
    for (post, status) in [
        (hello().header("host", "evil.example.com"), 403),
        (hello().header("origin", "https://evil.example.com"), 403),
        (hello().verb(http::Method::GET), 405),
        (hello().header("content-type", "text/plain"), 415),
        (hello().header("accept", "text/html"), 406),
    ] {
        post.json(&service, status).await;
    }
}

#[derive(Clone)]
struct Tenant(&'static str);

/// Handlers see the request of HTTP, with what others put into it.
// covers: S4.64
#[tokio::test]
async fn handlers_see_the_request() {
    let look = tool("look", async |ctx: RequestContext, _: NoArguments| {
        let parts = ctx.extension::<Parts>().expect("the request");
        let tenant = parts.extensions.get::<Tenant>().map_or("nobody", |tenant| tenant.0);
        let color = parts.headers.get("x-color").and_then(|color| color.to_str().ok()).unwrap_or_default();
        format!("{} {} {tenant} {color}", parts.method, parts.uri)
    });
    let service = HttpService::new(server(|builder| builder.tool(look)));
    for post in [Post::tool("look", json!({})), Post::legacy_tool(Some("2025-06-18"), "look")] {
        let post = post.extension(Tenant("shop")).header("x-color", "blue").uri("/mcp?x=1");
        assert_eq!(tool_text(&post.json(&service, 200).await), "POST /mcp?x=1 shop blue");
    }
    assert_eq!(tool_text(&Post::tool("look", json!({})).json(&service, 200).await), "POST /mcp nobody ");
}

/// Whoever was found out to ask is known to handlers, request by request.
// covers: S3.68, RB-64
#[tokio::test]
async fn handlers_see_the_principal() {
    let who = tool("who", async |ctx: RequestContext, _: NoArguments| match ctx.principal() {
        Some(principal) => format!("{:?} {}", principal.issuer, principal.subject),
        None => "nobody".to_owned(),
    });
    let service = HttpService::new(server(|builder| builder.tool(who)));
    let ann = Principal::new(Some("here"), "ann");
    for make in [|| Post::tool("who", json!({})), || Post::legacy_tool(Some("2025-06-18"), "who")] {
        let answer = make().extension(ann.clone()).json(&service, 200).await;
        assert_eq!(tool_text(&answer), "Some(\"here\") ann");
        assert_eq!(tool_text(&make().json(&service, 200).await), "nobody");
    }
}

/// All settings are in one place, and can be shown.
// covers: S4.8, S4.63
#[tokio::test]
async fn settings_can_be_shown() {
    let service = HttpService::with_options(Demo::default().server(), HttpOptions::default().body_limit(77));
    let shown = format!("{service:?}");
    assert!(shown.contains("Stateless") && shown.contains("77"), "{shown}");
}

/// A server that needs sessions is not served without, and the error names both places.
// covers: MIS-8
#[tokio::test]
async fn mis_8_what_the_server_needs_is_checked_at_the_start() {
    let needy = server(|builder| builder.requires_sessions());
    for mode in [SessionMode::Stateless, SessionMode::Off] {
        let options = HttpOptions::default().sessions(mode);
        let error = HttpService::try_with_options(needy.clone(), options).expect_err("a contradiction");
        assert_eq!(error, StartError::SessionsRequired(mode));
        names_both(&error.to_string());
    }
    assert!(
        HttpService::try_with_options(needy.clone(), HttpOptions::default().sessions(SessionMode::Stateful)).is_ok()
    );
    let error = mcp_transport_http::serve(needy, "127.0.0.1:0").await.expect_err("a contradiction");
    names_both(&error.to_string());
}

/// Nor is one that the hook chooses, for that request alone.
// covers: MIS-7, MIS-8
#[tokio::test]
async fn mis_7_what_the_hook_chooses_is_checked() {
    let needy = server(|builder| builder.requires_sessions());
    let service = configured(move |parts: Arc<Parts>| {
        let server = if parts.headers.contains_key("x-needy") { needy.clone() } else { saying("plain") };
        async move { Ok(server) }
    });
    for post in [Post::tool("say", json!({})), Post::legacy_tool(Some("2025-06-18"), "say")] {
        assert_eq!(tool_text(&post.json(&service, 200).await), "plain");
    }
    for post in [Post::tool("say", json!({})), Post::legacy_tool(Some("2025-06-18"), "say")] {
        let answer = post.header("x-needy", "1").json(&service, 500).await;
        names_both(answer["error"]["message"].as_str().expect("a text"));
    }
}

fn names_both(text: &str) {
    assert!(text.contains("`ServerBuilder::requires_sessions`") && text.contains("`HttpOptions::sessions`"), "{text}");
}
