use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_auth::Secret;
use mcp_auth::client::{ClientAuthentication, Flow, PreRegistered};
use serde_json::{Value, json};

use crate::script::{ISSUER, Parameters, Script, header};

const TOKEN: &str = "https://as.example/token";

fn with(methods: Value, client: PreRegistered) -> crate::script::Outcome {
    Script::new()
        .server(|metadata| metadata["token_endpoint_auth_methods_supported"] = methods)
        .configure(|config| config.pre_registered(client))
        .run()
}

#[test]
fn a_secret_is_sent_the_way_that_the_server_supports() {
    let client = || PreRegistered::new("own").client_secret("secret-1");
    for methods in [
        json!(["client_secret_basic"]),
        json!(["client_secret_post", "client_secret_basic"]),
        json!(null),
        json!(["none"]),
    ] {
        let outcome = with(methods, client());
        let request = outcome.request_to(TOKEN);
        assert_eq!(header(request, "authorization"), Some(&*format!("Basic {}", STANDARD.encode("own:secret-1"))));
        let form = Parameters::of_body(request);
        assert_eq!(
            (form.get("client_id"), form.get("client_secret")),
            (None, None),
            "a client authenticates in one way"
        );
    }
    let outcome = with(json!(["client_secret_post"]), client());
    let request = outcome.request_to(TOKEN);
    assert_eq!(header(request, "authorization"), None);
    let form = Parameters::of_body(request);
    assert_eq!((form.get("client_id"), form.get("client_secret")), (Some("own"), Some("secret-1")));
    let outcome = with(json!(["client_secret_post"]), client().authentication(ClientAuthentication::SecretBasic));
    assert!(header(outcome.request_to(TOKEN), "authorization").is_some(), "the configuration decides");
}

#[test]
fn identifier_and_secret_are_encoded_like_a_form_for_basic() {
    let outcome = with(json!(null), PreRegistered::new("a:b c").client_secret("s%/+ü"));
    let value = header(outcome.request_to(TOKEN), "authorization").unwrap().strip_prefix("Basic ").unwrap();
    let pair = String::from_utf8(STANDARD.decode(value).unwrap()).unwrap();
    assert_eq!(pair, "a%3Ab%20c:s%25%2F%2B%C3%BC");
}

#[test]
fn a_public_client_sends_its_identifier_only() {
    let outcome = with(json!(["none"]), PreRegistered::new("own"));
    let request = outcome.request_to(TOKEN);
    assert_eq!(header(request, "authorization"), None);
    assert_eq!(Parameters::of_body(request).get("client_id"), Some("own"));
    assert!(request.client_assertion.is_none());
}

// covers: EX-2
#[test]
fn an_assertion_is_for_the_issuer_and_becomes_part_of_the_form() {
    let outcome = Script::with_flow(Flow::ClientCredentials)
        .configure(|config| {
            config.pre_registered(PreRegistered::new("own").authentication(ClientAuthentication::PrivateKeyJwt))
        })
        .run();
    let mut request = outcome.request_to(TOKEN).clone();
    let assertion = request.client_assertion.clone().unwrap();
    assert_eq!((&*assertion.client_id, &*assertion.audience), ("own", ISSUER));
    request.attach_client_assertion(&Secret::new("header.claims.signature"));
    let form = Parameters::of_body(&request);
    assert_eq!(form.get("grant_type"), Some("client_credentials"));
    assert_eq!(form.get("client_assertion"), Some("header.claims.signature"));
    assert_eq!(form.get("client_assertion_type"), Some("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"));
    request.attach_client_assertion(&Secret::new("again"));
    assert_eq!(Parameters::of_body(&request).get("client_assertion"), Some("header.claims.signature"));
}

#[test]
fn requests_with_secrets_are_never_redirected() {
    let outcome = Script::new().run();
    for request in &outcome.requests {
        assert_eq!(request.may_redirect, request.body.is_none(), "{request:?}");
        assert_eq!(header(request, "accept"), Some("application/json"));
    }
}
