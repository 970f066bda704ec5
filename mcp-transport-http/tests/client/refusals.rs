//! Refusals with 401 and 403, wherever they come: they are about credentials, and about nothing else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mcp_client::types::{Revision, SubscriptionFilter};
use mcp_client::{Change, CloseReason, ConnectError, DetectedRevision, Error};
use mcp_testkit::envelope::tool_result;
use mcp_transport_http::{AuthorizationError, Authorizer, Challenge, Credential, HttpTransport, async_trait};
use serde_json::json;

use crate::scripted::{Reply, Scripted, Seen, answer, builder, call, event, legacy, legacy_builder, modern, within};

/// Replaces a refused token by the next one, of the same user or of another.
#[derive(Clone)]
struct StepUp {
    token: Arc<AtomicUsize>,
    challenges: Arc<Mutex<Vec<Challenge>>>,
    subject: Option<&'static str>,
    gives_up: bool,
}

impl StepUp {
    fn new(subject: Option<&'static str>) -> Self {
        let (token, challenges) = (Arc::new(AtomicUsize::new(1)), Arc::default());
        Self { token, challenges, subject, gives_up: false }
    }

    fn giving_up() -> Self {
        Self { gives_up: true, ..Self::new(None) }
    }

    fn challenges(&self) -> Vec<Challenge> {
        self.challenges.lock().expect("no panic").clone()
    }
}

#[async_trait]
impl Authorizer for StepUp {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        let credential = Credential::bearer(&format!("t{}", self.token.load(Ordering::SeqCst)))?;
        Ok(Some(match self.subject {
            Some(subject) => credential.subject(subject),
            None => credential,
        }))
    }

    async fn challenged(&self, challenge: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
        self.challenges.lock().expect("no panic").push(challenge.clone());
        if self.gives_up {
            return Ok(None);
        }
        self.token.fetch_add(1, Ordering::SeqCst);
        self.credential().await
    }
}

fn token(seen: &Seen) -> usize {
    let token = seen.header("authorization").and_then(|value| value.strip_prefix("Bearer t"));
    token.map_or(0, |token| token.parse().expect("a number"))
}

fn more_scopes() -> Reply {
    let challenge =
        "Bearer error=\"insufficient_scope\", scope=\"mail:write\", resource_metadata=\"https://a.example/m\"";
    Reply::new(403, &[("www-authenticate", challenge)], "")
}

/// The bodies that would be evidence of an era with another status.
fn bodies() -> [String; 4] {
    let error = |code: i64, data: serde_json::Value| {
        json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": "no", "data": data } }).to_string()
    };
    [
        String::new(),
        error(-32601, json!(null)),
        error(-32000, json!(null)),
        error(-32022, json!({ "supported": ["2025-06-18"], "requested": "2026-07-28" })),
    ]
}

fn refusal(status: u16, body: &str) -> Reply {
    Reply::new(status, &[("content-type", "application/json"), ("www-authenticate", "Bearer")], body)
}

#[derive(Clone, Copy, Debug)]
enum With {
    NoAuthorizer,
    OneThatGivesUp,
    OneThatTries,
}

impl With {
    fn transport(self, server: &Scripted) -> HttpTransport {
        match self {
            Self::NoAuthorizer => server.transport(),
            Self::OneThatGivesUp => server.transport().authorizer(StepUp::giving_up()),
            Self::OneThatTries => server.transport().authorizer(StepUp::new(Some("me"))),
        }
    }

    fn requests(self) -> usize {
        if let Self::OneThatTries = self { 3 } else { 1 }
    }
}

const ALL: [With; 3] = [With::NoAuthorizer, With::OneThatGivesUp, With::OneThatTries];

/// A refused probe does not lead to a handshake, and a refused handshake to no probe and no event stream, whatever the
/// body and the authorizer.
// covers: DU-27, AU-50
#[tokio::test]
async fn a_refusal_is_no_evidence_of_an_era() {
    for (status, with) in [401, 403].into_iter().flat_map(|status| ALL.map(|with| (status, with))) {
        for body in bodies() {
            for is_legacy in [false, true] {
                let reply = refusal(status, &body);
                let server = Scripted::start(move |seen| match seen.method() {
                    "server/discover" if is_legacy => Reply::status(400),
                    _ => reply.clone(),
                })
                .await;
                let error = server.connect(with.transport(&server)).await.unwrap_err();
                let what = format!("{status} {with:?} {body}: {error:?}");
                let Error::Closed(CloseReason::ConnectFailed(ConnectError::Status { status: said, .. })) = error else {
                    panic!("{what}")
                };
                assert_eq!(said, status, "{what}");
                let refused = if is_legacy { "initialize" } else { "server/discover" };
                assert_eq!(server.seen_of(refused).len(), with.requests(), "{what}");
                assert_eq!(server.seen().len(), with.requests() + usize::from(is_legacy), "{what}");
            }
        }
    }
}

/// Nor is a refused call of a server whose revision was known before.
// covers: DU-27, DU-41, AU-50
#[tokio::test]
async fn a_refused_call_is_no_evidence_of_an_era() {
    for (status, with) in [401, 403].into_iter().flat_map(|status| ALL.map(|with| (status, with))) {
        for body in bodies() {
            let reply = refusal(status, &body);
            let server = Scripted::start(move |_| reply.clone()).await;
            let builder = builder().detected_revision(DetectedRevision::new(Revision::V2026_07_28));
            let client = within(builder.connect(with.transport(&server))).await.unwrap();
            let error = call(&client).await.unwrap_err();
            assert!(matches!(error, Error::Status { status: said, .. } if said == status), "{body}: {error:?}");
            assert_eq!(server.seen_of("tools/call").len(), server.seen().len(), "{body}");
            assert_eq!(client.revision(), Some(Revision::V2026_07_28));
        }
    }
}

/// If the event stream of an HTTP+SSE server needs credentials, the error says so.
// covers: DU-27, DU-38
#[tokio::test]
async fn a_refused_event_stream_is_the_reason() {
    for status in [401, 403] {
        for with in ALL {
            let server = Scripted::start(move |seen| match seen.verb.as_str() {
                "GET" => refusal(status, r#"{"error":"invalid_token"}"#),
                _ => Reply::status(405),
            })
            .await;
            let error = server.connect(with.transport(&server)).await.unwrap_err();
            let Error::Closed(closed) = &error else { panic!("{error:?}") };
            assert_eq!(closed.http_status(), Some(status), "{error:?}");
            assert!(error.to_string().contains("invalid_token"), "{error}");
            assert_eq!(server.seen_of("GET").len(), with.requests());
        }
    }
}

/// A call that needs more scopes reaches the authorizer with what it needs, and is repeated once; a session of the same
/// user survives.
// covers: AU-44
#[tokio::test]
async fn a_call_in_the_middle_is_repeated_with_more_scopes() {
    for is_legacy in [false, true] {
        let script = |seen: &Seen| match seen.verb.as_str() {
            "POST" if token(seen) < 2 => more_scopes(),
            "POST" => Reply::json(&answer(seen, &tool_result(seen.header("mcp-session-id").unwrap_or("none")))),
            _ => Reply::status(405),
        };
        let server =
            if is_legacy { Scripted::start(legacy(script)).await } else { Scripted::start(modern(script)).await };
        let builder = if is_legacy { legacy_builder() } else { builder() };
        let authorizer = StepUp::new(Some("me"));
        let transport = server.transport().authorizer(authorizer.clone()).standalone_stream(false);
        let client = within(builder.connect(transport)).await.unwrap();
        let session = if is_legacy { "s1" } else { "none" };
        assert_eq!(call(&client).await.unwrap(), session);
        assert_eq!(call(&client).await.unwrap(), session);
        let challenges = authorizer.challenges();
        assert_eq!(challenges.len(), 1);
        assert_eq!(challenges[0].status, 403);
        assert!(challenges[0].www_authenticate[0].contains("mail:write"), "{challenges:?}");
        assert_eq!(challenges[0].refused.as_ref().map(Credential::token), Some("t1"));
        let tokens: Vec<_> = server.seen_of("tools/call").iter().map(token).collect();
        assert_eq!(tokens, [1, 2, 2]);
        assert_eq!(server.seen_of("initialize").len(), usize::from(is_legacy));
    }
}

/// If another user logs in, the session is not used: the call is repeated in a new one.
// covers: SEC-8
#[tokio::test]
async fn a_login_of_another_user_has_another_session() {
    let server = Scripted::start(legacy(|seen| match seen.verb.as_str() {
        "POST" if token(seen) < 2 => more_scopes(),
        "POST" => Reply::json(&answer(seen, &tool_result(seen.header("mcp-session-id").unwrap_or("none")))),
        _ => Reply::status(405),
    }))
    .await;
    let authorizer = StepUp::new(None);
    let transport = server.transport().authorizer(authorizer.clone()).standalone_stream(false);
    let client = within(legacy_builder().connect(transport)).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "s2");
    assert_eq!(authorizer.challenges().len(), 1);
    for seen in server.seen() {
        let owner = seen.header("mcp-session-id").map(|session| format!("s{}", token(&seen)) == session);
        assert_ne!(owner, Some(false), "{seen:?}");
    }
}

/// A server that never has enough is asked a few times.
// covers: AU-44
#[tokio::test]
async fn a_call_is_repeated_a_few_times() {
    let server = Scripted::start(modern(|_| more_scopes())).await;
    let authorizer = StepUp::new(Some("me"));
    let client = server.connect(server.transport().authorizer(authorizer.clone())).await.unwrap();
    let error = call(&client).await.unwrap_err();
    assert!(matches!(error, Error::Status { status: 403, .. }), "{error:?}");
    assert_eq!((server.seen_of("tools/call").len(), authorizer.challenges().len()), (3, 2));
}

/// A stream that is resumed has the current credential, and another one if that is refused.
// covers: AU-40
#[tokio::test]
async fn a_resumed_stream_has_the_current_credential() {
    let authorizer = StepUp::new(Some("me"));
    let tokens = Arc::clone(&authorizer.token);
    let mut post = None;
    let server = Scripted::start(legacy(move |seen| match seen.verb.as_str() {
        "POST" => {
            post = Some(seen.clone());
            // It expires while the call runs.
            tokens.store(2, Ordering::SeqCst);
            Reply::events("id: a\nretry: 5\ndata:\n\n")
        }
        "GET" if token(seen) == 2 => Reply::status(401),
        "GET" if token(seen) > 2 => {
            Reply::events(&event(&answer(post.as_ref().expect("a call"), &tool_result("resumed"))))
        }
        _ => Reply::status(405),
    }))
    .await;
    let transport = server.transport().authorizer(authorizer.clone()).standalone_stream(false);
    let client = within(legacy_builder().connect(transport)).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "resumed");
    assert_eq!(server.seen_of("GET").iter().map(token).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(authorizer.challenges().len(), 1);
}

/// The stream of a session is challenged as a call is. If it is refused, it is opened after the next login, and what it
/// missed counts as changed.
#[tokio::test]
async fn a_refused_stream_is_opened_after_a_login() {
    let mut gets = 0;
    let server = Scripted::start(legacy(move |seen| match seen.verb.as_str() {
        "GET" => {
            gets += 1;
            // The first login has no effect on the stream.
            if gets <= 3 { Reply::status(401) } else { Reply::open_events(": open\n\n") }
        }
        "POST" if token(seen) < 4 => Reply::status(401),
        "POST" => Reply::json(&answer(seen, &tool_result("in"))),
        _ => Reply::status(405),
    }))
    .await;
    let authorizer = StepUp::new(Some("me"));
    let client = within(legacy_builder().connect(server.transport().authorizer(authorizer.clone()))).await.unwrap();
    server.until(|seen| seen.iter().filter(|seen| seen.verb == "GET").count() == 3).await;
    let mut changes = within(client.listen(SubscriptionFilter::default().tools_list_changed(true))).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "in");
    assert_eq!(within(changes.next()).await.unwrap().unwrap(), Change::Tools);
    assert_eq!(server.seen_of("GET").iter().map(token).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(server.seen_of("initialize").len(), 1);
}

/// Notifications are challenged, too; a refusal of one has no other effect. The end of a session is worth no login.
// covers: DU-27
#[tokio::test]
async fn refused_notifications_and_ends_have_no_effect() {
    let server = Scripted::start(legacy(|seen| match seen.method() {
        "tools/call" => Reply::json(&answer(seen, &tool_result("in"))),
        _ => Reply::status(403),
    }))
    .await;
    let authorizer = StepUp::new(Some("me"));
    let transport = server.transport().authorizer(authorizer.clone()).standalone_stream(false);
    let client = within(legacy_builder().connect(transport)).await.unwrap();
    within(client.notify("notifications/x", &json!({}))).await.unwrap();
    server.until(|seen| seen.iter().filter(|seen| seen.method() == "notifications/x").count() == 3).await;
    assert_eq!(call(&client).await.unwrap(), "in");
    assert_eq!(within(client.close()).await, CloseReason::ByClient);
    assert_eq!((server.seen_of("DELETE").len(), server.seen_of("initialize").len()), (1, 1));
    assert_eq!(authorizer.challenges().len(), 2);
}
