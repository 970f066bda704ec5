use mcp_auth::client::{
    Action, ClientAuthentication, Flow, Grant, HttpRequest, HttpResponse, IdentityProvider, Login, LoginConfig,
    PreRegistered, Refresh, Registration, Revocation, Tokens,
};
use serde_json::json;

use crate::script::{ISSUER, NOW, SERVER, Script, error_response, header, redirect_of};

const SECRETS: [&str; 8] =
    ["access-1", "refresh-1", "client-secret", "idp-secret", "id-token-1", "code-1", "key-in-query", "assertion-1"];

fn assert_hidden(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

// covers: AU-14, AU-45
#[test]
fn nothing_that_can_be_printed_has_a_secret() {
    let provider = IdentityProvider::new("https://idp.example/token", "c")
        .client_secret("idp-secret", ClientAuthentication::SecretPost);
    for flow in
        [crate::script::code_flow(), Flow::ClientCredentials, Flow::EnterpriseManaged(provider), Flow::WorkloadIdentity]
    {
        let mut script = Script::with_flow(flow.clone())
            .configure(|config| config.pre_registered(PreRegistered::new("own").client_secret("client-secret")))
            .json(
                "https://idp.example/token",
                json!({
                    "access_token": "assertion-1", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
                }),
            );
        script.assertion = Some("id-token-1");
        assert_hidden(&format!("{:?}", script.config));
        let outcome = script.run();
        let grant = outcome.grant().clone();
        assert_hidden(&format!("{:?} {:?} {:?} {:?}", outcome.requests, outcome.pages, outcome.saved, grant));
        assert_hidden(&format!("{:?} {:?}", Refresh::new(grant.clone(), None), Revocation::new(grant)));
        let mut failing = Script::with_flow(flow)
            .configure(|config| config.pre_registered(PreRegistered::new("own").client_secret("client-secret")))
            .respond("https://as.example/token", error_response(400, "invalid_grant"))
            .respond("https://idp.example/token", error_response(400, "invalid_grant"));
        failing.assertion = Some("id-token-1");
        let outcome = failing.run();
        assert_hidden(&format!("{:?} {}", outcome.error(), outcome.error()));
    }
}

#[test]
fn neither_the_state_nor_the_verifier_nor_the_query_of_the_server_is_printed() {
    let outcome = Script::new().run();
    let state = outcome.page().get("state").unwrap().to_owned();
    assert!(!format!("{:?}", outcome.pages).contains(&state));
    let config = LoginConfig::new(&format!("{SERVER}?k=key-in-query"), crate::script::code_flow()).unwrap();
    assert_hidden(&format!("{config:?}"));
    let mut login = Login::new(config.clone(), mcp_auth::client::Stored::default(), &[], [171; 64]);
    let action = login.poll(NOW);
    let printed = format!("{login:?} {action:?}");
    assert_hidden(&printed);
    assert!(!printed.contains("171"), "{printed}");
    let failed = Script::bare(config)
        .handle("https://mcp.example/.well-known/oauth-protected-resource/mcp?k=key-in-query", |_| {
            Ok(HttpResponse::new(200, json!({ "resource": "https://evil.example" }).to_string()))
        })
        .run();
    assert_hidden(&format!("{:?} {}", failed.error(), failed.error()));
}

/// A server that repeats all that it was sent in its error, and all that it knows from before.
fn echo(request: &HttpRequest) -> HttpResponse {
    let body = request.body.as_ref().map(|body| body.expose().to_owned()).unwrap_or_default();
    let decoded: Vec<String> =
        url::form_urlencoded::parse(body.as_bytes()).map(|(name, value)| format!("{name} {value}")).collect();
    let authorization = header(request, "authorization").unwrap_or_default();
    let description = format!("{decoded:?} {authorization} access-1 refresh-1 key-in-query \u{1b}[31m {body}");
    HttpResponse::new(400, json!({ "error": description, "error_description": description }).to_string())
}

/// Everything that must not be shown of a request that was echoed.
fn assert_nothing_echoed(shown: &str, requests: &[HttpRequest]) {
    assert_hidden(shown);
    assert!(!shown.contains('\u{1b}') && shown.len() < 5_000, "{shown}");
    for request in requests {
        let Some(body) = &request.body else { continue };
        let secret_names = [
            "code",
            "code_verifier",
            "refresh_token",
            "device_code",
            "assertion",
            "subject_token",
            "client_secret",
            "token",
        ];
        for (name, value) in url::form_urlencoded::parse(body.expose().as_bytes()) {
            assert!(!secret_names.contains(&&*name) || !shown.contains(&*value), "{name} in {shown}");
        }
        if let Some(basic) = header(request, "authorization").and_then(|value| value.strip_prefix("Basic ")) {
            assert!(!shown.contains(basic), "{shown}");
        }
    }
}

// covers: AU-14, AU-45
#[test]
fn a_server_that_repeats_secrets_in_its_errors_does_not_get_them_shown() {
    let provider = IdentityProvider::new("https://idp.example/token", "c")
        .client_secret("idp-secret", ClientAuthentication::SecretPost);
    let flows = [
        crate::script::code_flow(),
        Flow::DeviceCode,
        Flow::ClientCredentials,
        Flow::EnterpriseManaged(provider),
        Flow::WorkloadIdentity,
    ];
    let server = format!("{SERVER}?k=key-in-query");
    for flow in flows {
        for authentication in [ClientAuthentication::SecretBasic, ClientAuthentication::SecretPost] {
            let client = PreRegistered::new("own").client_secret("client-secret").authentication(authentication);
            let mut script = Script::with_flow(flow.clone())
                .json(
                    "https://mcp.example/.well-known/oauth-protected-resource/mcp?k=key-in-query",
                    json!({ "resource": server, "authorization_servers": [ISSUER] }),
                )
                .server(|metadata| metadata["device_authorization_endpoint"] = json!("https://as.example/device"))
                .json(
                    "https://as.example/device",
                    json!({
                        "device_code": "device-code-1", "user_code": "A", "verification_uri": "https://as.example/x",
                        "expires_in": 60,
                    }),
                )
                .handle("https://as.example/token", |request| Ok(echo(request)))
                .handle("https://idp.example/token", |request| Ok(echo(request)));
            script.config = LoginConfig::new(&server, flow.clone()).unwrap().pre_registered(client);
            script.assertion = Some("id-token-1");
            let mut tokens = Tokens::bearer("access-1");
            tokens.refresh_token = Some("refresh-1".into());
            let earlier = Registration::new("https://earlier.example", "own");
            script.stored.grant = Some(Grant::new("https://earlier.example", SERVER, "https://x", earlier, tokens));
            let outcome = script.run();
            let shown = format!("{:?} {} {:?}", outcome.error(), outcome.error(), outcome.saved);
            assert!(shown.contains("[redacted]"), "{shown}");
            assert_nothing_echoed(&shown, &outcome.requests);
            assert_hidden(&format!("{:?}", outcome.assertions));
        }
    }
}

// covers: AU-14
#[test]
fn a_refresh_and_a_revocation_do_not_show_what_is_repeated_either() {
    let mut script = Script::new().json(
        "https://mcp.example/.well-known/oauth-protected-resource/mcp?k=key-in-query",
        json!({ "resource": format!("{SERVER}?k=key-in-query"), "authorization_servers": [ISSUER] }),
    );
    script = script.server(|metadata| metadata["revocation_endpoint"] = json!("https://as.example/revoke"));
    script.config = LoginConfig::new(&format!("{SERVER}?k=key-in-query"), crate::script::code_flow())
        .unwrap()
        .pre_registered(PreRegistered::new("own").client_secret("client-secret"));
    let outcome = script.run();
    let grant = outcome.grant().clone();
    assert!(grant.resource.contains("key-in-query"), "the resource is named as the server named it");
    assert_hidden(&format!("{grant:?} {:?}", outcome.saved));

    let mut refresh = Refresh::new(grant.clone(), None);
    let Action::Fetch(request) = refresh.poll() else { panic!("a request") };
    refresh.handle_response(NOW, echo(&request));
    let Action::Failed(error) = refresh.poll() else { panic!("an error") };
    assert_nothing_echoed(&format!("{error} {error:?}"), &[request]);

    let mut revocation = Revocation::new(grant);
    assert_hidden(&format!("{:?}", revocation.poll()));
    revocation.handle_saved();
    let mut requests = Vec::new();
    let error = loop {
        match revocation.poll() {
            Action::Fetch(request) => {
                revocation.handle_response(&echo(&request));
                requests.push(request);
            }
            Action::Failed(error) => break error,
            other => panic!("{other:?}"),
        }
    };
    assert_nothing_echoed(&format!("{error} {error:?}"), &requests);
}

// covers: AU-14
#[test]
fn the_error_of_an_authorization_response_repeats_neither_the_state_nor_the_code() {
    let outcome = Script::new()
        .user(|page| {
            let state = page.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
            let description = format!("state {state} and code-1");
            redirect_of(
                page,
                &[("error", &description), ("error_description", &description), ("iss", ISSUER), ("code", "code-1")],
            )
        })
        .run();
    let state = outcome.page().get("state").unwrap().to_owned();
    let shown = format!("{} {:?}", outcome.error(), outcome.error());
    assert!(shown.contains("[redacted]") && !shown.contains(&state) && !shown.contains("code-1"), "{shown}");
}

// covers: AU-14
#[test]
fn addresses_in_errors_have_no_query() {
    let key = "?k=key-in-query";
    let with_key = |member: &'static str, url: &'static str| {
        Script::new().server(move |metadata| metadata[member] = json!(format!("{url}{key}")))
    };
    let scripts = [
        with_key("registration_endpoint", "https://as.example/register")
            .respond(&format!("https://as.example/register{key}"), HttpResponse::new(500, "")),
        with_key("registration_endpoint", "http://as.example/register"),
        with_key("token_endpoint", "https://as.example/token")
            .respond(&format!("https://as.example/token{key}"), HttpResponse::new(503, "")),
        with_key("token_endpoint", "https://key-in-query@as.example/token"),
        with_key("authorization_endpoint", "javascript:key-in-query"),
        Script::new().server(|metadata| metadata["issuer"] = json!(format!("https://as.example/{key}"))),
        Script::new().resource(|metadata| metadata["resource"] = json!(format!("https://other.example/{key}"))),
        Script::bare(LoginConfig::new(SERVER, crate::script::code_flow()).unwrap())
            .challenge(&format!("Bearer resource_metadata=\"https://mcp.example/none{key}\"")),
    ];
    for (index, script) in scripts.into_iter().enumerate() {
        let outcome = script.run();
        let shown = format!("{} {:?}", outcome.error(), outcome.error());
        assert!(shown.contains("as.example") || index > 3, "{index} {shown}");
        assert_hidden(&shown);
    }
}
