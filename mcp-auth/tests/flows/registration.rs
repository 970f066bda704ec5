use mcp_auth::UnixTime;
use mcp_auth::client::{
    ClientAuthentication, Flow, HttpResponse, InvalidConfig, LoginConfig, LoginError, PreRegistered, Registration, Save,
};
use serde_json::{Value, json};

use crate::script::{ISSUER, NOW, Outcome, REDIRECT, SERVER, Script, code_flow, error_response, json_response};

const REGISTER: &str = "https://as.example/register";
const DOCUMENT: &str = "https://client.example/metadata.json";

fn registered(outcome: &Outcome) -> Value {
    serde_json::from_str(outcome.request_to(REGISTER).body.as_ref().unwrap().expose()).unwrap()
}

fn dynamic(client_id: &str) -> Registration {
    let mut registration = Registration::new(ISSUER, client_id);
    registration.is_dynamic = true;
    registration.redirect_uri = Some(REDIRECT.to_owned());
    registration
}

// covers: AU-25, AU-28, AU-46, AU-48
#[test]
fn a_client_registers_itself_with_its_redirect_uri_and_its_type() {
    let outcome =
        Script::new().configure(|config| config.client_name("Reader").client_uri("https://client.example")).run();
    assert_eq!(
        registered(&outcome),
        json!({
            "client_name": "Reader",
            "client_uri": "https://client.example",
            "redirect_uris": [REDIRECT],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        })
    );
    assert_eq!(outcome.registrations(), [&dynamic("client-1")]);
    assert!(matches!(outcome.saved[0], Save::Registration(_)), "before a user is involved");
}

// covers: AU-28
#[test]
fn the_type_of_a_client_follows_its_redirect_uri() {
    for (redirect_uri, application_type) in [
        ("http://127.0.0.1:1/", "native"),
        ("http://localhost:1/", "native"),
        ("http://[::1]:1/", "native"),
        ("https://app.example/callback", "web"),
    ] {
        let outcome = Script::with_flow(Flow::AuthorizationCode { redirect_uri: redirect_uri.to_owned() }).run();
        assert_eq!(registered(&outcome)["application_type"], application_type, "{redirect_uri}");
    }
}

// covers: AU-46
#[test]
fn a_client_registers_for_refresh_only_if_it_wants_and_can_get_that() {
    let outcome = Script::new().configure(|config| config.refresh(false)).run();
    assert_eq!(registered(&outcome)["grant_types"], json!(["authorization_code"]));
    let outcome =
        Script::new().server(|metadata| metadata["grant_types_supported"] = json!(["authorization_code"])).run();
    assert_eq!(registered(&outcome)["grant_types"], json!(["authorization_code"]));
}

#[test]
fn a_client_registers_with_a_way_to_authenticate_that_the_server_supports() {
    // What is asked for, and what is used if the server issues a secret without saying how to send it.
    for (methods, requested, used) in [
        (json!(["client_secret_post"]), "client_secret_post", "client_secret_post"),
        (json!(["client_secret_post", "client_secret_basic"]), "client_secret_basic", "client_secret_basic"),
        (json!(["client_secret_basic", "none"]), "none", "client_secret_basic"),
        (json!(["none"]), "none", "none"),
        (json!(null), "client_secret_basic", "client_secret_basic"),
    ] {
        let outcome = Script::new()
            .server(|metadata| metadata["token_endpoint_auth_methods_supported"] = methods.clone())
            .json(REGISTER, json!({ "client_id": "client-1", "client_secret": "secret-1" }))
            .run();
        assert_eq!(registered(&outcome)["token_endpoint_auth_method"], requested, "{methods}");
        assert_eq!(outcome.grant().registration.authentication.as_str(), used, "{methods}");
    }
    let outcome = Script::new()
        .server(|metadata| metadata["token_endpoint_auth_methods_supported"] = json!(["tls_client_auth"]))
        .run();
    assert!(matches!(outcome.error(), LoginError::Unsupported { .. }));
}

// covers: AU-26
#[test]
fn a_client_that_was_registered_by_hand_comes_first() {
    let outcome = Script::new()
        .server(|metadata| metadata["client_id_metadata_document_supported"] = json!(true))
        .configure(|config| {
            config.pre_registered(PreRegistered::new("own").issuer(ISSUER)).client_metadata_url(DOCUMENT).unwrap()
        })
        .run();
    assert_eq!(outcome.page().get("client_id"), Some("own"));
    assert!(outcome.requests_to(REGISTER).is_empty());
}

// covers: AU-26, AU-27
#[test]
fn the_metadata_document_comes_before_dynamic_registration_where_it_is_supported() {
    let run = |is_supported: Value| {
        Script::new()
            .server(|metadata| metadata["client_id_metadata_document_supported"] = is_supported)
            .configure(|config| config.client_metadata_url(DOCUMENT).unwrap())
            .run()
    };
    let outcome = run(json!(true));
    assert_eq!(outcome.page().get("client_id"), Some(DOCUMENT));
    assert!(outcome.requests_to(REGISTER).is_empty());
    assert!(outcome.registrations().is_empty(), "there is nothing to keep");
    for is_supported in [json!(false), json!(null)] {
        assert_eq!(run(is_supported).page().get("client_id"), Some("client-1"));
    }
}

// covers: AU-27
#[test]
fn the_metadata_document_is_at_an_https_address_with_a_path_and_names_it() {
    let config = || LoginConfig::new(SERVER, code_flow()).unwrap();
    for url in [
        "http://client.example/metadata.json",
        "https://client.example",
        "https://client.example/",
        "http://localhost/m",
        "x",
    ] {
        assert_eq!(config().client_metadata_url(url).map(drop), Err(InvalidConfig::ClientMetadataUrl), "{url}");
    }
    assert_eq!(config().client_metadata_document(), None);
    let document =
        config().client_name("Reader").client_metadata_url(DOCUMENT).unwrap().client_metadata_document().unwrap();
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["client_id"], DOCUMENT);
    assert_eq!(document["client_name"], "Reader");
    assert_eq!(document["redirect_uris"], json!([REDIRECT]));
    assert_eq!(document["token_endpoint_auth_method"], "none");
}

// covers: AU-26
#[test]
fn a_user_is_asked_if_there_is_no_other_way() {
    let script = || Script::new().server(|metadata| metadata["registration_endpoint"] = json!(null));
    assert_eq!(*script().run().error(), LoginError::NoRegistration { issuer: ISSUER.to_owned() });

    let mut asking = script().configure(|config| config.ask_for_client(true));
    asking.client = Some(PreRegistered::new("typed").client_secret("secret-1"));
    let outcome = asking.run();
    assert_eq!(outcome.asked, [ISSUER]);
    assert_eq!(outcome.page().get("client_id"), Some("typed"));
    assert_eq!(outcome.registrations()[0].client_id, "typed");
    assert_eq!(outcome.registrations()[0].authentication, ClientAuthentication::SecretBasic);

    // What the user said is kept.
    let mut later = script();
    later.stored.registrations = outcome.registrations().into_iter().cloned().collect();
    assert_eq!(later.run().page().get("client_id"), Some("typed"));

    assert_eq!(*script().configure(|config| config.ask_for_client(true)).run().error(), LoginError::Declined);
    let mut elsewhere = script().configure(|config| config.ask_for_client(true));
    elsewhere.client = Some(PreRegistered::new("typed").issuer("https://other.example"));
    assert!(matches!(elsewhere.run().error(), LoginError::RegisteredElsewhere { .. }));
}

// covers: AU-28
#[test]
fn a_refused_registration_is_a_clear_error_or_leads_to_a_user() {
    let refused = || Script::new().respond(REGISTER, error_response(400, "invalid_redirect_uri"));
    let outcome = refused().run();
    assert_eq!(outcome.error().to_string(), "https://as.example refused to register the client: invalid_redirect_uri");
    let mut asking = refused().configure(|config| config.ask_for_client(true));
    asking.client = Some(PreRegistered::new("typed"));
    assert_eq!(asking.run().page().get("client_id"), Some("typed"));
    let outage = Script::new()
        .respond(REGISTER, HttpResponse::new(503, ""))
        .configure(|config| config.ask_for_client(true))
        .run();
    assert!(outage.error().is_transient());
    let off = Script::new().configure(|config| config.dynamic_registration(false)).run();
    assert!(matches!(off.error(), LoginError::NoRegistration { .. }));
}

// covers: AU-29
#[test]
fn a_registration_is_kept_and_used_again_with_its_issuer_only() {
    let mut script = Script::new();
    script.stored.registrations = vec![dynamic("kept")];
    let outcome = script.run();
    assert_eq!(outcome.page().get("client_id"), Some("kept"));
    assert!(outcome.requests_to(REGISTER).is_empty());

    let mut elsewhere = dynamic("of another issuer");
    elsewhere.issuer = "https://other.example".to_owned();
    let mut script = Script::new();
    script.stored.registrations = vec![elsewhere];
    let outcome = script.run();
    assert_eq!(outcome.page().get("client_id"), Some("client-1"));
    assert_eq!(outcome.registrations()[0].issuer, ISSUER);
}

#[test]
fn a_kept_registration_that_does_not_fit_any_more_is_replaced() {
    let mut expired = dynamic("expired");
    expired.secret_expires_at = Some(NOW);
    let mut other_port = dynamic("other port");
    other_port.redirect_uri = Some("http://127.0.0.1:4000/callback".to_owned());
    for kept in [expired, other_port] {
        let mut script = Script::new();
        script.stored.registrations = vec![kept];
        assert_eq!(script.run().page().get("client_id"), Some("client-1"));
    }
    let mut valid = dynamic("valid");
    valid.secret_expires_at = Some(UnixTime::from_secs(NOW.as_secs() + 1));
    let mut script = Script::new();
    script.stored.registrations = vec![valid];
    assert_eq!(script.run().page().get("client_id"), Some("valid"));
}

// covers: AU-30
#[test]
fn a_client_that_is_registered_elsewhere_is_an_error() {
    let outcome = Script::new()
        .configure(|config| config.pre_registered(PreRegistered::new("own").issuer("https://old.example")))
        .run();
    let expected =
        LoginError::RegisteredElsewhere { registered: "https://old.example".to_owned(), issuer: ISSUER.to_owned() };
    assert_eq!(*outcome.error(), expected);
    assert!(outcome.pages.is_empty());

    // A client without a configured issuer belongs to the first one that it was used with.
    let first = Script::new().configure(|config| config.pre_registered(PreRegistered::new("own"))).run();
    assert_eq!(first.registrations(), [&Registration::new(ISSUER, "own")]);
    let mut moved = Script::new().configure(|config| config.pre_registered(PreRegistered::new("own")));
    moved.stored.registrations = vec![Registration::new("https://old.example", "own")];
    assert_eq!(*moved.run().error(), expected);
    let mut same = Script::new().configure(|config| config.pre_registered(PreRegistered::new("own")));
    same.stored.registrations = vec![Registration::new(ISSUER, "own")];
    let outcome = same.run();
    assert!(outcome.registrations().is_empty());
    outcome.grant();
}

#[test]
fn a_registration_that_cannot_be_used_is_an_error() {
    for body in [
        json!({}),
        json!({ "client_id": "" }),
        json!({ "client_id": "line\nbreak" }),
        json!({ "client_id": "x".repeat(5000) }),
        json!({ "client_id": "c", "token_endpoint_auth_method": "client_secret_basic" }),
        json!({ "client_id": "c", "token_endpoint_auth_method": "tls_client_auth" }),
        json!({ "client_id": "c", "token_endpoint_auth_method": "private_key_jwt" }),
        json!({ "client_id": "c", "redirect_uris": ["https://evil.example/callback"] }),
        json!({ "client_id": "c", "client_name": "x".repeat(100_000) }),
        json!([]),
    ] {
        let outcome = Script::new().json(REGISTER, body.clone()).run();
        assert!(matches!(outcome.error(), LoginError::InvalidRegistration(_)), "{body}: {:?}", outcome.error());
        assert!(outcome.pages.is_empty());
    }
    Script::new()
        .respond(REGISTER, HttpResponse::new(201, json!({ "client_id": "c", "redirect_uris": [] }).to_string()))
        .run()
        .grant();
    let public = json!({ "client_id": "c", "client_secret": "unused", "token_endpoint_auth_method": "none", "client_secret_expires_at": 0 });
    let outcome = Script::new().respond(REGISTER, json_response(&public)).run();
    assert_eq!(outcome.grant().registration.client_secret, None);
}

#[test]
fn a_client_that_the_server_has_forgotten_is_dropped() {
    let mut script = Script::new().respond("https://as.example/token", error_response(401, "invalid_client"));
    script.stored.registrations = vec![dynamic("kept")];
    let outcome = script.run();
    assert!(matches!(outcome.error(), LoginError::TokenRefused { .. }));
    let forgotten = Save::ForgetRegistration { issuer: ISSUER.to_owned(), client_id: "kept".to_owned() };
    assert_eq!(outcome.saved, [forgotten]);
}
