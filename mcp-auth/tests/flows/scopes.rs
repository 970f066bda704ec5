use mcp_auth::Scopes;
use mcp_auth::client::Flow;
use serde_json::{Value, json};

use crate::script::{Outcome, Parameters, Script, token_response};

fn scope(outcome: &Outcome) -> Option<String> {
    outcome.page().get("scope").map(str::to_owned)
}

// covers: AU-42, AU-43
#[test]
fn scopes_come_from_the_challenge_else_from_the_resource_else_there_are_none() {
    let resource =
        |script: Script| script.resource(|metadata| metadata["scopes_supported"] = json!(["profile", "read", "write"]));
    let challenge = r#"Bearer scope="basic extra""#;
    assert_eq!(scope(&resource(Script::new()).challenge(challenge).run()).as_deref(), Some("basic extra"));
    assert_eq!(scope(&resource(Script::new()).run()).as_deref(), Some("profile read write"));
    assert_eq!(
        scope(&resource(Script::new()).challenge(r#"Bearer scope="""#).run()).as_deref(),
        Some("profile read write")
    );
    assert_eq!(scope(&Script::new().challenge(challenge).run()).as_deref(), Some("basic extra"));
    assert_eq!(scope(&Script::new().run()), None);
}

#[test]
fn configured_scopes_are_added_to_the_challenge_and_replace_those_of_the_resource() {
    let script = || {
        Script::new()
            .resource(|metadata| metadata["scopes_supported"] = json!(["profile"]))
            .configure(|config| config.scopes(Scopes::from_iter(["mine"])))
    };
    assert_eq!(scope(&script().run()).as_deref(), Some("mine"));
    assert_eq!(scope(&script().challenge(r#"Bearer scope="basic""#).run()).as_deref(), Some("basic mine"));
}

// covers: AU-44
#[test]
fn a_step_up_requests_what_was_requested_before_and_what_is_needed_now() {
    let mut script = Script::new()
        .resource(|metadata| metadata["scopes_supported"] = json!(["decoy"]))
        .challenge(r#"Bearer error="insufficient_scope", scope="write""#);
    script.stored.requested_scopes = Scopes::from_iter(["basic"]);
    let outcome = script.run();
    assert_eq!(scope(&outcome).as_deref(), Some("basic write"));
    assert_eq!(outcome.grant().requested_scopes.to_string(), "basic write");
}

// covers: AU-44
#[test]
fn a_step_up_does_not_refresh() {
    let first = Script::new().challenge(r#"Bearer scope="basic""#).run();
    let mut script = Script::new().challenge(r#"Bearer error="insufficient_scope", scope="basic""#);
    script.stored.grant = Some(first.grant().clone());
    script.stored.registrations = vec![first.grant().registration.clone()];
    let outcome = script.run();
    assert_eq!(outcome.pages.len(), 1);
    let form = Parameters::of_body(outcome.request_to("https://as.example/token"));
    assert_eq!(form.get("grant_type"), Some("authorization_code"));
}

// covers: AU-46
#[test]
fn offline_access_is_requested_only_where_the_server_lists_it_and_it_is_wanted() {
    let listed = || json!(["openid", "offline_access"]);
    for (listed, is_wanted, challenge, expected) in [
        (listed(), true, "basic", "basic offline_access"),
        (listed(), false, "basic", "basic"),
        (json!(null), true, "basic", "basic"),
        (json!([]), true, "basic", "basic"),
        (json!(["openid"]), true, "basic offline_access", "basic"),
        (listed(), false, "basic offline_access", "basic"),
    ] {
        let outcome = Script::new()
            .server(|metadata| metadata["scopes_supported"] = listed.clone())
            .challenge(&format!(r#"Bearer scope="{challenge}""#))
            .configure(|config| config.refresh(is_wanted))
            .run();
        assert_eq!(scope(&outcome).as_deref(), Some(expected), "{listed} {is_wanted} {challenge}");
        let prompt = expected.contains("offline_access").then_some("consent");
        assert_eq!(outcome.page().get("prompt"), prompt, "OpenID Connect wants to be asked");
    }
}

#[test]
fn clients_without_a_user_do_not_ask_for_offline_access() {
    let outcome = Script::with_flow(Flow::ClientCredentials)
        .server(|metadata| metadata["scopes_supported"] = json!(["offline_access"]))
        .configure(|config| config.pre_registered(mcp_auth::client::PreRegistered::new("own").client_secret("s")))
        .run();
    assert_eq!(Parameters::of_body(outcome.request_to("https://as.example/token")).get("scope"), None);
}

#[test]
fn a_client_registers_for_the_scopes_that_it_may_need_later() {
    let outcome = Script::new()
        .resource(|metadata| metadata["scopes_supported"] = json!(["read", "write", "not\nallowed"]))
        .challenge(r#"Bearer scope="basic""#)
        .run();
    let body = outcome.request_to("https://as.example/register").body.as_ref().unwrap().expose().to_owned();
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["scope"], "basic read write");
    assert_eq!(scope(&outcome).as_deref(), Some("basic"));
}

#[test]
fn granted_scopes_are_those_of_the_response_else_the_requested_ones() {
    for (granted, expected) in [(json!("basic"), "basic"), (json!(null), "basic write"), (json!(""), "basic write")] {
        let mut response = token_response();
        response["scope"] = granted;
        let outcome =
            Script::new().challenge(r#"Bearer scope="basic write""#).json("https://as.example/token", response).run();
        assert_eq!(outcome.grant().tokens.scopes.to_string(), expected);
    }
}

#[test]
fn a_resource_with_endless_scopes_gets_a_limited_request() {
    let scopes: Vec<String> = (0..5000).map(|index| format!("scope-{index}")).collect();
    let outcome = Script::new().resource(|metadata| metadata["scopes_supported"] = json!(scopes)).run();
    assert_eq!(scope(&outcome).unwrap().split(' ').count(), 100);
}
