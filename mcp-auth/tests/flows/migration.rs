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
        .person(|page| redirect_of(page, &[("code", "code-1"), ("iss", NEW)]))
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

#[test]
fn a_metadata_document_is_the_same_client_everywhere() {
    let metadata: Value =
        serde_json::from_str(&crate::script::server_metadata().to_string().replace(ISSUER, NEW)).unwrap();
    let mut metadata = metadata;
    metadata["client_id_metadata_document_supported"] = json!(true);
    let outcome = moved()
        .json("https://new.example/.well-known/oauth-authorization-server", metadata)
        .configure(|config| config.client_metadata_url("https://client.example/metadata.json").unwrap())
        .run();
    assert_eq!(outcome.page().get("client_id"), Some("https://client.example/metadata.json"));
}
