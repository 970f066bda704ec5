use mcp_auth::Secret;
use mcp_auth::client::{
    Action, DpopKey, Grant, HttpRequest, HttpResponse, LoginError, Refresh, RequestError, Save, TokenType,
};
use serde_json::json;

use crate::script::{ISSUER, NOW, Parameters, SERVER, Script, error_response, json_response, token_response};

const TOKEN: &str = "https://as.example/token";

fn grant() -> Grant {
    Script::new().challenge(r#"Bearer scope="read""#).run().grant().clone()
}

struct Run {
    result: Result<Box<Grant>, LoginError>,
    requests: Vec<HttpRequest>,
    saved: Vec<Save>,
}

fn run(
    grant: Grant,
    key: Option<&DpopKey>,
    mut respond: impl FnMut(&HttpRequest) -> Result<HttpResponse, RequestError>,
) -> Run {
    let (mut refresh, mut requests, mut saved) = (Refresh::new(grant, key), Vec::new(), Vec::new());
    loop {
        let result = match refresh.poll() {
            Action::Fetch(request) => {
                assert!(matches!(refresh.poll(), Action::Idle));
                match respond(&request) {
                    Ok(response) => refresh.handle_response(NOW, response),
                    Err(error) => refresh.handle_failure(error),
                }
                requests.push(request);
                continue;
            }
            Action::Save(change) => {
                assert!(matches!(refresh.poll(), Action::Idle), "nothing is used before it is saved");
                saved.push(change);
                refresh.handle_saved();
                continue;
            }
            Action::Done(grant) => Ok(grant),
            Action::Failed(error) => Err(error),
            other => panic!("{other:?}"),
        };
        assert!(matches!(refresh.poll(), Action::Idle));
        refresh.handle_failure(RequestError::TooLarge);
        assert!(matches!(refresh.poll(), Action::Idle), "a late result changes nothing");
        return Run { result, requests, saved };
    }
}

#[test]
fn tokens_are_refreshed_with_the_resource_and_stored_before_they_are_used() {
    let run = run(grant(), None, |_| {
        Ok(json_response(&json!({ "access_token": "access-2", "token_type": "Bearer", "refresh_token": "refresh-2" })))
    });
    let form = Parameters::of_body(&run.requests[0]);
    assert_eq!(run.requests[0].url, TOKEN);
    assert_eq!((form.get("grant_type"), form.get("refresh_token")), (Some("refresh_token"), Some("refresh-1")));
    assert_eq!((form.get("resource"), form.get("client_id")), (Some(SERVER), Some("client-1")));
    let grant = run.result.unwrap();
    assert_eq!(grant.tokens.access_token.expose(), "access-2");
    assert_eq!(grant.tokens.refresh_token.as_ref().map(Secret::expose), Some("refresh-2"), "it was rotated");
    assert_eq!(grant.tokens.expires_at, None);
    assert_eq!(grant.tokens.scopes.to_string(), "read");
    assert_eq!(run.saved, [Save::Grant(grant)]);
}

#[test]
fn the_old_refresh_token_stays_if_no_new_one_comes() {
    let run = run(grant(), None, |_| Ok(json_response(&json!({ "access_token": "access-2", "token_type": "Bearer" }))));
    assert_eq!(run.result.unwrap().tokens.refresh_token.as_ref().map(Secret::expose), Some("refresh-1"));
}

#[test]
fn only_invalid_grant_gives_the_refresh_token_up() {
    let lost = run(grant(), None, |_| Ok(error_response(400, "invalid_grant")));
    let error = lost.result.unwrap_err();
    assert!(error.needs_login() && !error.is_transient());
    assert!(error.to_string().contains("log in again"), "{error}");
    assert_eq!(lost.saved, [Save::ForgetGrant { issuer: ISSUER.to_owned(), resource: SERVER.to_owned() }]);

    for response in [
        Err(RequestError::Unreachable("no route".to_owned())),
        Err(RequestError::TooLarge),
        Ok(HttpResponse::new(500, "")),
        Ok(error_response(503, "invalid_grant")),
        Ok(HttpResponse::new(429, "")),
        Ok(HttpResponse::new(404, "")),
        Ok(HttpResponse::new(200, "<html>")),
        Ok(error_response(400, "invalid_request")),
        Ok(error_response(400, "temporarily_unavailable")),
    ] {
        let kept = run(grant(), None, |_| response.clone());
        assert!(!kept.result.unwrap_err().needs_login(), "{response:?}");
        assert_eq!(kept.saved, []);
    }
}

#[test]
fn a_client_that_the_server_has_forgotten_is_dropped_but_not_the_tokens() {
    let run = run(grant(), None, |_| Ok(error_response(401, "invalid_client")));
    assert_eq!(run.saved, [Save::ForgetRegistration { issuer: ISSUER.to_owned(), client_id: "client-1".to_owned() }]);
}

#[test]
fn without_a_refresh_token_nothing_is_sent() {
    let mut grant = grant();
    grant.tokens.refresh_token = None;
    let run = run(grant, None, |_| panic!("nothing is sent"));
    assert!(run.result.unwrap_err().needs_login());
}

#[test]
fn bound_tokens_are_refreshed_with_proofs_and_nonces_and_stay_bound() {
    let mut bound = grant();
    bound.tokens.token_type = TokenType::Dpop;
    let key = DpopKey::new("ES256", "thumbprint-1");
    let mut count = 0;
    let refreshed = run(bound.clone(), Some(&key), |request| {
        assert_eq!(request.dpop_proof.as_ref().unwrap().url, TOKEN);
        count += 1;
        if count == 1 {
            return Ok(error_response(400, "use_dpop_nonce").dpop_nonce("n-1"));
        }
        assert_eq!(request.dpop_proof.as_ref().unwrap().nonce.as_deref(), Some("n-1"));
        Ok(json_response(&json!({ "access_token": "access-2", "token_type": "DPoP" })))
    });
    assert!(refreshed.result.unwrap().is_dpop_bound());
    let downgraded = run(bound.clone(), Some(&key), |_| Ok(json_response(&token_response())));
    assert!(matches!(downgraded.result, Err(LoginError::Dpop(_))));
    let keyless = run(bound, None, |_| panic!("nothing is sent"));
    assert!(matches!(keyless.result, Err(LoginError::Dpop(_))));
}

#[test]
fn a_stored_endpoint_is_checked_again() {
    let mut grant = grant();
    grant.token_endpoint = "http://as.example/token".to_owned();
    assert!(matches!(run(grant, None, |_| panic!("nothing is sent")).result, Err(LoginError::UnsafeAddress { .. })));
}

fn with_stored(script: Script, grant: Grant) -> Script {
    let mut script = script.challenge(r#"Bearer scope="read""#);
    script.stored.registrations = vec![grant.registration.clone()];
    script.stored.grant = Some(grant);
    script
}

#[test]
fn a_login_refreshes_before_it_involves_a_user() {
    let outcome = with_stored(Script::new(), grant()).run();
    assert!(outcome.pages.is_empty());
    let form = Parameters::of_body(outcome.request_to(TOKEN));
    assert_eq!(form.get("grant_type"), Some("refresh_token"));
    outcome.grant();
}

#[test]
fn a_login_involves_a_user_if_the_refresh_token_is_lost_but_not_in_an_outage() {
    let responses = [error_response(400, "invalid_grant"), json_response(&token_response())];
    let outcome = with_stored(Script::new().respond_in_turn(TOKEN, responses), grant()).run();
    assert_eq!(outcome.pages.len(), 1);
    assert!(matches!(outcome.saved[0], Save::ForgetGrant { .. }));
    outcome.grant();

    let outcome = with_stored(Script::new().respond(TOKEN, HttpResponse::new(503, "")), grant()).run();
    assert!(outcome.pages.is_empty());
    assert!(outcome.error().is_transient());
    assert_eq!(outcome.saved, []);
}

#[test]
fn a_login_registers_again_if_the_refresh_shows_that_the_client_is_forgotten() {
    let responses = [error_response(401, "invalid_client"), json_response(&token_response())];
    let outcome = with_stored(
        Script::new()
            .respond_in_turn(TOKEN, responses)
            .json("https://as.example/register", json!({ "client_id": "client-2" })),
        grant(),
    )
    .run();
    assert!(matches!(&outcome.saved[0], Save::ForgetRegistration { client_id, .. } if client_id == "client-1"));
    assert_eq!(outcome.page().get("client_id"), Some("client-2"));
    outcome.grant();
}

#[test]
fn a_login_that_needs_more_scopes_does_not_refresh() {
    let outcome = with_stored(Script::new(), grant()).challenge(r#"Bearer scope="read write""#).run();
    assert_eq!(outcome.page().get("scope"), Some("read write"));
}
