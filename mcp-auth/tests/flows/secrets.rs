use mcp_auth::client::{
    ClientAuthentication, Flow, IdentityProvider, Login, LoginConfig, PreRegistered, Refresh, Revocation,
};
use serde_json::json;

use crate::script::{NOW, SERVER, Script, error_response};

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
            Ok(mcp_auth::client::HttpResponse::new(200, json!({ "resource": "https://evil.example" }).to_string()))
        })
        .run();
    assert_hidden(&format!("{:?} {}", failed.error(), failed.error()));
}
