//! A server that moves to another authorization server.

use mcp_auth::client::{Grant, Save};
use serde_json::{Value, json};

use crate::script::{ISSUER, Parameters, SERVER, Script, redirect_of};

const NEW: &str = "https://new.example";

fn moved() -> Script {
    let metadata: Value =
        serde_json::from_str(&crate::script::server_metadata().to_string().replace(ISSUER, NEW)).unwrap();
    Script::new()
        .resource(|metadata| metadata["authorization_servers"] = json!([NEW]))
        .json("https://new.example/.well-known/oauth-authorization-server", metadata)
        .json("https://new.example/register", json!({ "client_id": "client-at-new" }))
        .json("https://new.example/token", json!({ "access_token": "access-at-new", "token_type": "Bearer" }))
        .user(|page| redirect_of(page, &[("code", "code-1"), ("iss", NEW)]))
}

fn first() -> Grant {
    Script::new().run().grant().clone()
}

// covers: AU-24, AU-29, AU-41
#[test]
fn nothing_of_the_old_authorization_server_is_shown_to_the_new_one() {
    let old = first();
    let mut script = moved();
    script.stored.registrations = vec![old.registration.clone()];
    script.stored.grant = Some(old);
    let outcome = script.run();
    assert_eq!(outcome.grant().registration.client_id, "client-at-new");
    assert_eq!(outcome.grant().issuer, NEW);
    let old_secrets = ["client-1", "refresh-1", "access-1"];
    for request in outcome.requests.iter().filter(|request| request.url.starts_with(NEW)) {
        let body = request.body.as_ref().map(mcp_auth::Secret::expose).unwrap_or_default();
        assert!(old_secrets.iter().all(|old| !body.contains(old)), "{request:?}");
    }
    assert!(old_secrets.iter().all(|old| !outcome.pages[0].url.contains(old)));
    assert!(outcome.requests.iter().all(|request| !request.url.starts_with(ISSUER)), "and the old one is not asked");
    // The old tokens are not sent to the server any more.
    let forgotten = Save::ForgetGrant { issuer: ISSUER.to_owned(), resource: SERVER.to_owned() };
    assert!(outcome.saved.contains(&forgotten));
    assert_eq!(outcome.saved.last(), Some(&Save::Grant(Box::new(outcome.grant().clone()))));
}

// covers: AU-29
#[test]
fn the_old_registration_is_used_again_when_the_server_moves_back() {
    let (old, new) = (first(), moved().run());
    let mut script = Script::new();
    script.stored.registrations = vec![new.grant().registration.clone(), old.registration];
    let outcome = script.run();
    assert_eq!(outcome.page().get("client_id"), Some("client-1"));
    assert_eq!(Parameters::of_body(outcome.request_to("https://as.example/token")).get("client_id"), Some("client-1"));
}

// covers: AU-24
#[test]
fn a_metadata_document_is_the_same_client_everywhere_but_its_tokens_are_not() {
    const DOCUMENT: &str = "https://client.example/metadata.json";
    let with_document = |script: Script, url: &str, issuer: &str| {
        let metadata = crate::script::server_metadata().to_string().replace(ISSUER, issuer);
        let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
        metadata["client_id_metadata_document_supported"] = json!(true);
        script.json(url, metadata).configure(|config| config.client_metadata_url(DOCUMENT).unwrap())
    };
    let old = with_document(Script::new(), "https://as.example/.well-known/oauth-authorization-server", ISSUER).run();
    let mut script = with_document(moved(), "https://new.example/.well-known/oauth-authorization-server", NEW);
    script.stored.grant = Some(old.grant().clone());
    let outcome = script.run();
    assert_eq!(outcome.page().get("client_id"), Some(DOCUMENT));
    let form = Parameters::of_body(outcome.request_to("https://new.example/token"));
    assert_eq!(
        form.get("grant_type"),
        Some("authorization_code"),
        "the refresh token of the old one is not shown to the new one"
    );
    assert_eq!(outcome.grant().issuer, NEW);
}
