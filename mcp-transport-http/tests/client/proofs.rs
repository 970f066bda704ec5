//! Authorizers that fail, and credentials that are bound to a key.

use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::HeaderValue;
use mcp_client::types::SubscriptionFilter;
use mcp_client::{CloseReason, Error};
use mcp_testkit::envelope::tool_result;
use mcp_transport_http::{
    AuthorizationError, Authorizer, Challenge, Credential, RequestHead, ResponseHead, async_trait,
};
use serde_json::json;

use crate::scripted::{Reply, Scripted, Seen, answer, call, legacy, legacy_builder, modern, within};

/// Fails when it is asked for a credential, or when it is challenged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fails {
    Always,
    WhenChallenged,
}

fn login_needed() -> AuthorizationError {
    AuthorizationError::new("log in again: the login has expired").caused_by(std::io::Error::other("invalid_grant"))
}

#[async_trait]
impl Authorizer for Fails {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        if *self == Self::Always { Err(login_needed()) } else { Ok(None) }
    }

    async fn challenged(&self, _: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
        Err(login_needed())
    }
}

/// A failed login ends the attempt to connect, in either era, with its own message and cause.
// covers: DU-27, AU-50
#[tokio::test]
async fn a_failed_login_reaches_the_caller_of_connect() {
    for (fails, requests) in [(Fails::Always, 0), (Fails::WhenChallenged, 1)] {
        for is_legacy in [false, true] {
            let server = Scripted::start(|_| Reply::status(401)).await;
            let builder = if is_legacy { legacy_builder() } else { crate::scripted::builder() };
            let error = within(builder.connect(server.transport().authorizer(fails))).await.unwrap_err();
            let Error::Closed(CloseReason::Authorization(why)) = &error else { panic!("{error:?}") };
            assert_eq!(why.to_string(), "log in again: the login has expired");
            assert_eq!(error.to_string(), why.to_string());
            assert_eq!(why.source().unwrap().to_string(), "invalid_grant");
            assert_eq!(server.seen().len(), requests, "it is not an outage, and not an era");
        }
    }
}

/// A failed login in the middle fails the call that needs it, and nothing else; it is not tried again.
#[tokio::test]
async fn a_failed_login_reaches_the_caller_of_a_call() {
    for is_legacy in [false, true] {
        let script = |seen: &Seen| match seen.verb.as_str() {
            "POST" if seen.body["params"]["name"] != "open" => Reply::status(401),
            "POST" => Reply::json(&answer(seen, &tool_result("in"))),
            _ => Reply::status(405),
        };
        let server =
            if is_legacy { Scripted::start(legacy(script)).await } else { Scripted::start(modern(script)).await };
        let builder = if is_legacy { legacy_builder() } else { crate::scripted::builder() };
        let client = within(builder.connect(server.transport().authorizer(Fails::WhenChallenged))).await.unwrap();
        let error = call(&client).await.unwrap_err();
        assert!(
            matches!(&error, Error::Authorization(why) if *why.to_string() == *"log in again: the login has expired")
        );
        assert!(!error.is_remote());
        assert_eq!(server.seen_of("tools/call").len(), 1);
        within(client.call_tool("open")).await.unwrap();
    }
}

/// A subscription that cannot be opened for want of a login ends, instead of being opened again and again.
#[tokio::test]
async fn a_subscription_without_a_login_ends() {
    let server = Scripted::start(modern(|_| Reply::status(401))).await;
    let client = server.connect(server.transport().authorizer(Fails::WhenChallenged)).await.unwrap();
    let error = within(client.listen(SubscriptionFilter::default().tools_list_changed(true))).await.unwrap_err();
    assert!(matches!(error, Error::Authorization(_)), "{error:?}");
    assert_eq!(server.seen_of("subscriptions/listen").len(), 1);
}

/// A result that is cached for one user is not returned when it is not known who asks.
// covers: SEC-8
#[tokio::test]
async fn private_results_need_a_credential() {
    #[derive(Clone, Default)]
    struct Expiring(Arc<AtomicUsize>);

    #[async_trait]
    impl Authorizer for Expiring {
        async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
            if self.0.load(Ordering::SeqCst) > 0 { Err(login_needed()) } else { Ok(Some(Credential::bearer("a")?)) }
        }

        async fn challenged(&self, _: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
            Ok(None)
        }
    }

    let list = json!({ "tools": [], "resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private" });
    let server = Scripted::start(modern(move |seen| Reply::json(&answer(seen, &list)))).await;
    let authorizer = Expiring::default();
    let client = server.connect(server.transport().authorizer(authorizer.clone())).await.unwrap();
    for _ in 0..2 {
        within(client.list_tools(None)).await.unwrap();
    }
    authorizer.0.store(1, Ordering::SeqCst);
    let error = within(client.list_tools(None)).await.unwrap_err();
    assert!(matches!(error, Error::Authorization(_)), "{error:?}");
}

/// Proves the possession of a key with numbered proofs, which have the latest nonce of the server.
#[derive(Clone, Default)]
struct Bound {
    proofs: Arc<AtomicUsize>,
    nonce: Arc<Mutex<Option<String>>>,
    challenges: Arc<Mutex<Vec<Challenge>>>,
    responses: Arc<AtomicUsize>,
    is_plain: bool,
}

impl Bound {
    fn challenges(&self) -> Vec<Challenge> {
        self.challenges.lock().expect("no panic").clone()
    }
}

#[async_trait]
impl Authorizer for Bound {
    async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
        let credential = if self.is_plain { Credential::bearer("key")? } else { Credential::dpop("key")? };
        Ok(Some(credential.subject("me")))
    }

    async fn challenged(&self, challenge: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
        self.challenges.lock().expect("no panic").push(challenge.clone());
        Ok(Some(Credential::dpop("more")?.subject("me")))
    }

    async fn proof(
        &self,
        credential: &Credential,
        request: &RequestHead<'_>,
    ) -> Result<HeaderValue, AuthorizationError> {
        let number = self.proofs.fetch_add(1, Ordering::SeqCst) + 1;
        let nonce = self.nonce.lock().expect("no panic").clone().unwrap_or_default();
        let (token, method, path) = (credential.token(), request.method, request.url.path());
        HeaderValue::try_from(format!("{number} {token} {method} {path} {nonce}"))
            .map_err(|error| AuthorizationError::new("no proof").caused_by(error))
    }

    fn handle_response(&self, credential: Option<&Credential>, response: &ResponseHead<'_>) {
        assert!(credential.is_some());
        self.responses.fetch_add(1, Ordering::SeqCst);
        if let Some(nonce) = response.headers.get("dpop-nonce") {
            *self.nonce.lock().expect("no panic") = nonce.to_str().ok().map(str::to_owned);
        }
    }
}

fn proofs(server: &Scripted) -> Vec<String> {
    server.seen().iter().filter_map(|seen| seen.header("dpop").map(str::to_owned)).collect()
}

/// Every request has its own proof for its method and address, also GET, DELETE and notifications; the nonce of each
/// response is used from then on.
// covers: AU-40
#[tokio::test]
async fn each_request_has_a_proof_of_its_own() {
    let mut inside = legacy(|seen| match seen.verb.as_str() {
        "POST" => Reply::json(&answer(seen, &tool_result("in"))),
        _ => Reply::status(405),
    });
    let server = Scripted::start(move |seen| {
        if seen.method() == "notifications/initialized" {
            return Reply::new(202, &[("dpop-nonce", "of a notification")], "");
        }
        inside(seen)
    })
    .await;
    let bound = Bound::default();
    let transport = server.transport().authorizer(bound.clone()).standalone_stream(false);
    let client = within(legacy_builder().connect(transport)).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "in");
    within(client.close()).await;
    assert_eq!(
        proofs(&server),
        [
            "1 key POST /mcp ",
            "2 key POST /mcp ",
            "3 key POST /mcp of a notification",
            "4 key DELETE /mcp of a notification",
        ]
    );
    let credentials: Vec<_> =
        server.seen().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    assert!(credentials.iter().all(|credential| credential.as_deref() == Some("DPoP key")), "{credentials:?}");
    assert_eq!(bound.responses.load(Ordering::SeqCst), 4);
    assert!(bound.challenges().is_empty());
}

/// Other credentials have no proofs.
#[tokio::test]
async fn a_bearer_token_has_no_proof() {
    let server = Scripted::start(modern(|seen| Reply::json(&answer(seen, &tool_result("in"))))).await;
    let bound = Bound { is_plain: true, ..Bound::default() };
    let client = server.connect(server.transport().authorizer(bound.clone())).await.unwrap();
    call(&client).await.unwrap();
    assert_eq!(proofs(&server), Vec::<String>::new());
    assert_eq!((bound.proofs.load(Ordering::SeqCst), bound.responses.load(Ordering::SeqCst)), (0, 2));
}

const NEEDS_NONCE: [(&str, &str); 2] =
    [("www-authenticate", "DPoP error=\"use_dpop_nonce\", error_description=\"x\""), ("dpop-nonce", "n")];

/// A server that only wants a nonce gets it at once, without a login; one that wants it again and again is asked for
/// another credential.
#[tokio::test]
async fn a_nonce_is_no_login() {
    let server = Scripted::start(modern(|seen| {
        if seen.header("dpop").is_some_and(|proof| proof.ends_with(" n")) {
            Reply::json(&answer(seen, &tool_result("in")))
        } else {
            Reply::new(401, &NEEDS_NONCE, "")
        }
    }))
    .await;
    let bound = Bound::default();
    let client = server.connect(server.transport().authorizer(bound.clone())).await.unwrap();
    for _ in 0..2 {
        assert_eq!(call(&client).await.unwrap(), "in");
    }
    assert!(bound.challenges().is_empty());
    let expected = ["1 key POST /mcp ", "2 key POST /mcp ", "3 key POST /mcp n", "4 key POST /mcp n"];
    assert_eq!(proofs(&server), expected);

    let server = Scripted::start(|_| Reply::new(401, &NEEDS_NONCE, "")).await;
    let bound = Bound::default();
    let error = server.connect(server.transport().authorizer(bound.clone())).await.unwrap_err();
    let Error::Closed(closed) = &error else { panic!("{error:?}") };
    assert_eq!(closed.http_status(), Some(401));
    assert_eq!((bound.challenges().len(), server.seen().len()), (2, 6), "three credentials, each with two proofs");
}

/// A nonce that expired during a login is replaced, too.
#[tokio::test]
async fn a_nonce_may_be_needed_after_a_login() {
    let server = Scripted::start(modern(|seen| match seen.header("dpop").unwrap_or_default() {
        proof if proof.contains(" key ") && proof.ends_with(" n") => {
            let challenge = ("www-authenticate", "DPoP error=\"insufficient_scope\", scope=\"a b\"");
            Reply::new(403, &[challenge, ("dpop-nonce", "old")], "")
        }
        proof if proof.ends_with(" n") => Reply::json(&answer(seen, &tool_result("in"))),
        _ => Reply::new(401, &NEEDS_NONCE, ""),
    }))
    .await;
    let bound = Bound::default();
    let client = server.connect(server.transport().authorizer(bound.clone())).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "in");
    let challenges = bound.challenges();
    assert_eq!(challenges.len(), 1);
    assert_eq!(challenges[0].status, 403);
    assert_eq!(challenges[0].refused.as_ref().map(Credential::token), Some("key"));
    assert_eq!(server.seen_of("tools/call").len(), 4);
}

/// An authorizer that has bound credentials and no proofs says so.
#[tokio::test]
async fn a_bound_credential_needs_proofs() {
    struct Unable;

    #[async_trait]
    impl Authorizer for Unable {
        async fn credential(&self) -> Result<Option<Credential>, AuthorizationError> {
            Ok(Some(Credential::dpop("key")?))
        }

        async fn challenged(&self, _: &Challenge) -> Result<Option<Credential>, AuthorizationError> {
            Ok(None)
        }
    }

    let server = Scripted::start(|_| Reply::status(200)).await;
    let error = server.connect(server.transport().authorizer(Unable)).await.unwrap_err();
    assert!(error.to_string().contains("creates no proofs"), "{error}");
    assert_eq!(server.seen().len(), 0);
}
