//! Clients without a user: client credentials, enterprise-managed authorization, workload identity.

use mcp_auth::Secret;
use mcp_auth::client::{
    AssertionKind, ClientAuthentication, Flow, IdentityProvider, LoginConfig, LoginError, PreRegistered,
    SubjectTokenType,
};
use serde_json::json;

use crate::script::{ISSUER, Parameters, SERVER, Script, error_response, header};

const TOKEN: &str = "https://as.example/token";
const PROVIDER: &str = "https://idp.example/token";

fn with(flow: Flow) -> Script {
    Script::with_flow(flow)
        .server(|metadata| {
            metadata["authorization_endpoint"] = json!(null);
            metadata["code_challenge_methods_supported"] = json!(null);
            metadata["token_endpoint_auth_methods_supported"] = json!(["client_secret_basic"]);
        })
        .configure(|config| config.pre_registered(PreRegistered::new("own").client_secret("secret-1")))
        .challenge(r#"Bearer scope="read""#)
}

// covers: EX-2
#[test]
fn client_credentials_need_no_user_and_send_scope_and_resource() {
    let outcome = with(Flow::ClientCredentials).run();
    let request = outcome.request_to(TOKEN);
    assert!(header(request, "authorization").unwrap().starts_with("Basic "));
    let form = Parameters::of_body(request);
    assert_eq!(form.get("grant_type"), Some("client_credentials"));
    assert_eq!((form.get("scope"), form.get("resource")), (Some("read"), Some(SERVER)));
    assert!(outcome.pages.is_empty());
    outcome.grant();
}

// covers: EX-2
#[test]
fn client_credentials_are_never_registered_dynamically() {
    for flow in [Flow::ClientCredentials, Flow::WorkloadIdentity] {
        let outcome = Script::with_flow(flow).run();
        assert!(matches!(outcome.error(), LoginError::NoRegistration { .. }));
        assert!(outcome.requests_to("https://as.example/register").is_empty());
    }
}

fn enterprise(provider: IdentityProvider) -> Script {
    let mut script = with(Flow::EnterpriseManaged(provider)).json(PROVIDER, json!({
        "access_token": "id-jag", "token_type": "N_A", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
    }));
    script.assertion = Some("id-token");
    script
}

// covers: EX-3
#[test]
fn the_identity_of_a_user_is_exchanged_at_the_provider_then_used_at_the_authorization_server() {
    let outcome = enterprise(IdentityProvider::new(PROVIDER, "idp-client")).run();
    assert_eq!(outcome.assertions[0].kind, AssertionKind::Identity);
    assert_eq!(outcome.assertions[0].audience, "idp-client");
    let form = Parameters::of_body(outcome.request_to(PROVIDER));
    assert_eq!(form.get("grant_type"), Some("urn:ietf:params:oauth:grant-type:token-exchange"));
    assert_eq!(form.get("requested_token_type"), Some("urn:ietf:params:oauth:token-type:id-jag"));
    assert_eq!(form.get("subject_token"), Some("id-token"));
    assert_eq!(form.get("subject_token_type"), Some("urn:ietf:params:oauth:token-type:id_token"));
    assert_eq!((form.get("audience"), form.get("resource")), (Some(ISSUER), Some(SERVER)));
    assert_eq!((form.get("client_id"), form.get("scope")), (Some("idp-client"), Some("read")));
    let request = outcome.request_to(TOKEN);
    assert!(header(request, "authorization").unwrap().starts_with("Basic "));
    let form = Parameters::of_body(request);
    assert_eq!(form.get("grant_type"), Some("urn:ietf:params:oauth:grant-type:jwt-bearer"));
    assert_eq!((form.get("assertion"), form.get("resource")), (Some("id-jag"), Some(SERVER)));
    outcome.grant();
}

// covers: EX-3
#[test]
fn the_provider_can_demand_authentication_and_take_saml() {
    let mut provider =
        IdentityProvider::new(PROVIDER, "idp-client").client_secret("idp-secret", ClientAuthentication::SecretPost);
    provider.subject_token_type = SubjectTokenType::Saml2;
    let outcome = enterprise(provider).run();
    let form = Parameters::of_body(outcome.request_to(PROVIDER));
    assert_eq!(form.get("client_secret"), Some("idp-secret"));
    assert_eq!(form.get("subject_token_type"), Some("urn:ietf:params:oauth:token-type:saml2"));
    let mut provider = IdentityProvider::new(PROVIDER, "idp-client");
    provider.authentication = ClientAuthentication::PrivateKeyJwt;
    provider.issuer = Some("https://idp.example".to_owned());
    let outcome = enterprise(provider).run();
    assert_eq!(outcome.request_to(PROVIDER).client_assertion.as_ref().unwrap().audience, "https://idp.example");
}

// covers: EX-3
#[test]
fn only_the_requested_kind_of_assertion_is_accepted_of_the_provider() {
    for body in [
        json!({ "access_token": "t", "token_type": "Bearer" }),
        json!({ "access_token": "t", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" }),
        json!({ "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag" }),
    ] {
        let outcome = enterprise(IdentityProvider::new(PROVIDER, "c")).json(PROVIDER, body).run();
        assert!(matches!(outcome.error(), LoginError::InvalidTokenResponse(_)));
        assert!(outcome.requests_to(TOKEN).is_empty());
    }
    let outcome =
        enterprise(IdentityProvider::new(PROVIDER, "c")).respond(PROVIDER, error_response(400, "invalid_grant")).run();
    assert!(matches!(outcome.error(), LoginError::TokenRefused { url, .. } if url == PROVIDER));
}

// covers: EX-3
#[test]
fn an_authorization_server_that_does_not_accept_identity_assertions_is_refused() {
    let run = |profiles: serde_json::Value| {
        let mut metadata = crate::script::server_metadata();
        metadata["authorization_grant_profiles_supported"] = profiles;
        enterprise(IdentityProvider::new(PROVIDER, "c"))
            .json("https://as.example/.well-known/oauth-authorization-server", metadata)
            .run()
    };
    run(json!(["urn:ietf:params:oauth:grant-profile:id-jag"])).grant();
    let outcome = run(json!(["urn:example:other"]));
    assert!(matches!(outcome.error(), LoginError::Unsupported { .. }));
    assert!(outcome.requests_to(PROVIDER).is_empty(), "the identity is not sent");
}

#[test]
fn the_address_of_the_provider_is_checked() {
    assert!(
        LoginConfig::new(SERVER, Flow::EnterpriseManaged(IdentityProvider::new("http://idp.example", "c"))).is_err()
    );
}

// covers: EX-5
#[test]
fn a_workload_presents_the_assertion_of_its_platform_once() {
    let mut script = with(Flow::WorkloadIdentity);
    script.assertion = Some("workload-jwt");
    let outcome = script.run();
    assert_eq!(outcome.assertions[0].kind, AssertionKind::Workload);
    assert_eq!((&*outcome.assertions[0].audience, &*outcome.assertions[0].resource), (ISSUER, SERVER));
    let form = Parameters::of_body(outcome.request_to(TOKEN));
    assert_eq!(form.get("grant_type"), Some("urn:ietf:params:oauth:grant-type:jwt-bearer"));
    assert_eq!(form.get("assertion"), Some("workload-jwt"));
    outcome.grant();

    for error in ["invalid_grant", "invalid_scope", "unauthorized_client"] {
        let mut script = with(Flow::WorkloadIdentity).respond(TOKEN, error_response(400, error));
        script.assertion = Some("workload-jwt");
        let outcome = script.run();
        assert!(matches!(outcome.error(), LoginError::TokenRefused { error: found, .. } if found.code == error));
        assert_eq!(outcome.requests_to(TOKEN).len(), 1, "neither repeated nor tried with another grant");
    }
    assert_eq!(*with(Flow::WorkloadIdentity).run().error(), LoginError::Declined);
}

#[test]
fn assertions_are_secrets() {
    let mut script = with(Flow::WorkloadIdentity);
    script.assertion = Some("workload-jwt");
    let outcome = script.run();
    assert!(!format!("{:?}{:?}", outcome.requests, Secret::new("workload-jwt")).contains("workload-jwt"));
}
