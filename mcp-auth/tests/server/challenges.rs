//! What clients without a valid token are told.

use http::{Method, Request};
use mcp_auth::metadata::ProtectedResourceMetadata;
use mcp_auth::server::{InvalidResource, JwtVerifier, ProtectedResource, StaticKeys};
use serde_json::json;
use tower_service::Service as _;

use crate::issuer::{ISSUER, Key, RESOURCE, claims, claims_with, jwks};
use crate::protected::{Server, read, resource};

const METADATA: &str = "https://api.example.com/.well-known/oauth-protected-resource/mcp";

// covers: AU-2, AU-3, AU-12
#[tokio::test]
async fn a_request_without_a_token_is_told_where_to_get_one() {
    let server = Server::new(resource(&Key::es256("a")).scopes_required(["books:read", "books:write"]));
    for headers in [&[][..], &[("authorization", "Basic YTpi")], &[("authorization", "Negotiate abc")]] {
        let answer = server.post(headers).await;
        assert_eq!(answer.refusal(), (401, None), "there is no error, as nothing was tried");
        let challenge = answer.challenge();
        assert!(challenge.is_bearer());
        assert_eq!(challenge.resource_metadata(), Some(METADATA));
        assert_eq!(challenge.parameter("scope"), Some("books:read books:write"));
        assert_eq!(answer.headers["cache-control"], "no-store");
    }
    for method in [Method::GET, Method::DELETE, Method::OPTIONS] {
        let request = Request::builder().method(method).uri("/mcp").body(()).unwrap();
        assert_eq!(server.send(request).await.status, 401);
    }
    assert!(server.recorder.take().is_empty());
}

// covers: AU-1, AU-2, AU-11, AU-15
#[tokio::test]
async fn metadata_is_served_at_both_places_to_everyone() {
    let resource = resource(&Key::es256("a"))
        .scopes_required(["books:read", "offline_access"])
        .name("Books")
        .documentation("https://api.example.com/docs");
    let server = Server::new(resource);
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"] {
        let send = |method: Method| {
            let server = server.clone();
            async move { server.send(Request::builder().method(method).uri(path).body(()).unwrap()).await }
        };
        let got = send(Method::GET).await;
        assert_eq!((got.status.as_u16(), &got.headers["content-type"]), (200, &"application/json".parse().unwrap()));
        assert_eq!(got.headers["access-control-allow-origin"], "*");
        assert_eq!(got.headers["cache-control"], "public, max-age=3600");
        let metadata = ProtectedResourceMetadata::parse(got.body.as_bytes()).unwrap();
        assert_eq!((&*metadata.resource, &*metadata.authorization_servers), (RESOURCE, &[ISSUER.to_owned()][..]));
        assert_eq!(metadata.scopes_supported.as_deref(), Some(&["books:read".to_owned()][..]));
        assert_eq!(metadata.bearer_methods_supported.as_deref(), Some(&["header".to_owned()][..]));
        assert_eq!(metadata.resource_name.as_deref(), Some("Books"));
        let head = send(Method::HEAD).await;
        assert_eq!((head.status.as_u16(), &*head.body), (200, ""));
        assert_eq!(send(Method::OPTIONS).await.status, 204);
        let refused = send(Method::POST).await;
        assert_eq!((refused.status.as_u16(), &refused.headers["allow"]), (405, &"GET, HEAD, OPTIONS".parse().unwrap()));
    }
    for other in
        ["/.well-known/oauth-protected-resource/other", "/.well-known/oauth-protected-resourceful", "/.well-known/"]
    {
        assert_eq!(server.send(Request::get(other).body(()).unwrap()).await.status, 401, "{other}");
    }
}

// covers: AU-1, AU-15
#[tokio::test]
async fn metadata_can_be_mounted_by_itself() {
    let layer = resource(&Key::es256("a")).layer().unwrap();
    let mut service = layer.metadata_service();
    assert_eq!(service.paths(), ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]);
    let response = service.call(Request::get("/anywhere").body(()).unwrap()).await.unwrap();
    assert!(read(response.into_body()).await.contains(RESOURCE));
}

// covers: AU-8, AU-9, AU-12
#[tokio::test]
async fn too_few_scopes_are_told_all_that_are_needed() {
    let key = Key::es256("a");
    let server = Server::new(resource(&key).scopes_required(["books:read", "books:admin"]));
    let token = key.sign(&claims());
    for _ in 0..2 {
        let answer = server.bearer(&token).await;
        assert_eq!(answer.refusal(), (403, Some("insufficient_scope".to_owned())));
        let challenge = answer.challenge();
        assert_eq!(challenge.parameter("scope"), Some("books:admin books:read"));
        assert_eq!(challenge.resource_metadata(), Some(METADATA));
        assert!(challenge.parameter("error_description").is_some());
    }
    assert!(server.recorder.take().is_empty());
    assert!(server.accepts(&key.sign(&claims_with(json!({ "scope": "books:admin books:read" })))).await);
}

// covers: AU-10
#[tokio::test]
async fn scopes_include_others() {
    let key = Key::es256("a");
    let resource = resource(&key).scopes_required(["books:read"]).implied_scopes(|scope| match scope.split_once(':') {
        Some((area, "admin")) => vec![format!("{area}:write")],
        Some((area, "write")) => vec![format!("{area}:read"), format!("{area}:admin:not-really")],
        _ => vec![scope.to_owned()],
    });
    let server = Server::new(resource);
    let token = |scope: &str| key.sign(&claims_with(json!({ "scope": scope })));
    assert!(server.accepts(&token("books:admin")).await);
    assert_eq!(server.bearer(&token("papers:admin")).await.status, 403);
    server.recorder.take();
    server.bearer(&token("books:admin")).await;
    let (_, auth) = server.recorder.take().remove(0);
    assert!(auth.unwrap().has_scope("books:write"));
}

/// A hierarchy without an end does not hang the server.
#[tokio::test]
async fn endless_hierarchies_end() {
    let key = Key::es256("a");
    let server = Server::new(resource(&key).implied_scopes(|scope| vec![format!("{scope}x"), format!("{scope}y")]));
    assert!(server.accepts(&key.sign(&claims())).await);
}

// covers: AU-7, AU-15
#[tokio::test]
async fn the_service_gets_what_the_token_says_and_not_the_token() {
    let key = Key::es256("a");
    let server = Server::new(resource(&key));
    let token = key.sign(&claims());
    for _ in 0..2 {
        let authorization = format!("Bearer {token}");
        assert_eq!(server.post(&[("authorization", &authorization), ("accept", "*/*")]).await.status, 200);
        let (headers, auth) = server.recorder.take().remove(0);
        assert_eq!(headers.len(), 1, "{headers:?}");
        let auth = auth.expect("what the token says");
        assert_eq!((auth.issuer(), auth.subject(), auth.client_id()), (Some(ISSUER), "alice", Some("editor")));
        assert!(auth.has_scope("books:read"));
        assert!(!format!("{auth:?}").contains(&token));
    }
}

// covers: AU-1
#[test]
fn what_cannot_work_is_not_built() {
    let key = Key::es256("a");
    let verifier = || JwtVerifier::new(ISSUER, StaticKeys::new(jwks([&key])));
    let build = |resource: ProtectedResource| resource.layer().map(drop).unwrap_err();
    let named = |address: &str| ProtectedResource::new(address).authorization_server(ISSUER).verifier(verifier());
    assert_eq!(build(ProtectedResource::new(RESOURCE).verifier(verifier())), InvalidResource::NoAuthorizationServer);
    assert_eq!(build(ProtectedResource::new(RESOURCE).authorization_server(ISSUER)), InvalidResource::NoVerifier);
    for address in
        ["api.example.com", "http://api.example.com/mcp", "https://api.example.com/#a", "https://a:b@c.example"]
    {
        assert!(matches!(build(named(address)), InvalidResource::Resource(..)), "{address}");
    }
    for issuer in ["http://issuer.example.com", "https://issuer.example.com?tenant=1"] {
        let resource = named(RESOURCE).authorization_server(issuer);
        assert!(matches!(build(resource), InvalidResource::AuthorizationServer(..)), "{issuer}");
    }
    for scope in ["", "a b", "a\"b", "ä"] {
        assert_eq!(build(named(RESOURCE).scopes_required([scope])), InvalidResource::Scope(scope.to_owned()));
    }
    assert!(named("http://127.0.0.1:8000/mcp").layer().is_ok() && named("http://localhost:8000").layer().is_ok());
}
