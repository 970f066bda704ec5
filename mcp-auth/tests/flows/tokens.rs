use mcp_auth::client::{HttpResponse, LoginError, RequestError, TokenType};
use serde_json::{Value, json};

use crate::script::{NOW, Outcome, Script, error_response, json_response, token_response};

const TOKEN: &str = "https://as.example/token";
const MAX_TOKEN_BYTES: usize = 16 * 1024;
const MAX_TOKEN_RESPONSE_BYTES: usize = 64 * 1024;

fn with(change: impl FnOnce(&mut Value)) -> Outcome {
    let mut body = token_response();
    change(&mut body);
    Script::new().json(TOKEN, body).run()
}

#[test]
fn the_type_of_a_token_is_checked_without_regard_to_case() {
    for name in ["Bearer", "bearer", "BEARER"] {
        assert_eq!(with(|body| body["token_type"] = json!(name)).grant().tokens.token_type, TokenType::Bearer);
    }
    for name in [json!("mac"), json!("N_A"), json!(""), json!(null), json!(1), json!("DPoP")] {
        let outcome = with(|body| body["token_type"] = name.clone());
        assert!(matches!(outcome.error(), LoginError::InvalidTokenResponse(_)), "{name}: {:?}", outcome.error());
    }
}

#[test]
fn the_lifetime_of_a_token_is_a_number_of_seconds() {
    for (lifetime, expected) in [
        (json!(60), Some(60)),
        (json!("60"), Some(60)),
        (json!(60.9), Some(60)),
        (json!(0), Some(0)),
        (json!(u64::MAX), Some(u64::MAX - NOW.as_secs())),
        (json!(null), None),
    ] {
        let outcome = with(|body| body["expires_in"] = lifetime.clone());
        let expires_at = outcome.grant().tokens.expires_at.map(|time| time.as_secs() - NOW.as_secs());
        assert_eq!(expires_at, expected, "{lifetime}");
    }
    for lifetime in [json!(-1), json!("soon"), json!([60]), json!(true)] {
        assert!(matches!(with(|body| body["expires_in"] = lifetime).error(), LoginError::InvalidTokenResponse(_)));
    }
}

#[test]
fn tokens_must_fit_into_a_header() {
    for token in [
        json!(""),
        json!(null),
        json!("two words"),
        json!("line\r\nbreak"),
        json!("ünïcode"),
        json!("x".repeat(MAX_TOKEN_BYTES + 1)),
        json!(1),
    ] {
        let outcome = with(|body| body["access_token"] = token.clone());
        assert!(matches!(outcome.error(), LoginError::InvalidTokenResponse(_)), "{token}");
    }
    assert!(matches!(with(|body| body["refresh_token"] = json!("a b")).error(), LoginError::InvalidTokenResponse(_)));
    with(|body| body["access_token"] = json!("x".repeat(MAX_TOKEN_BYTES))).grant();
}

// covers: AU-45
#[test]
fn a_refresh_token_is_not_expected() {
    assert_eq!(with(|body| body["refresh_token"] = json!(null)).grant().tokens.refresh_token, None);
    assert_eq!(with(|body| body["refresh_token"] = json!("")).grant().tokens.refresh_token, None);
}

#[test]
fn a_response_that_is_too_long_is_refused() {
    let outcome = with(|body| body["padding"] = json!("x".repeat(MAX_TOKEN_RESPONSE_BYTES)));
    assert!(matches!(outcome.error(), LoginError::InvalidTokenResponse(_)));
    assert_eq!(outcome.request_to(TOKEN).max_response_bytes, MAX_TOKEN_RESPONSE_BYTES);
}

#[test]
fn errors_of_the_token_endpoint_are_typed() {
    let outcome = Script::new().respond(TOKEN, error_response(400, "invalid_grant")).run();
    let LoginError::TokenRefused { url, error } = outcome.error() else { panic!("{:?}", outcome.error()) };
    assert_eq!((&**url, &*error.code), (TOKEN, "invalid_grant"));
    // Some servers respond with errors in successful responses.
    let outcome = Script::new()
        .json(TOKEN, json!({ "error": "bad_verification_code", "error_description": "d\n\u{1b}[31m" }))
        .run();
    assert_eq!(
        outcome.error().to_string(),
        "https://as.example/token refused the request: bad_verification_code (d[31m)"
    );
    for status in [500, 503, 429] {
        assert!(Script::new().respond(TOKEN, HttpResponse::new(status, "")).run().error().is_transient(), "{status}");
    }
    for status in [302, 400, 404] {
        let outcome = Script::new().respond(TOKEN, HttpResponse::new(status, "")).run();
        assert!(matches!(outcome.error(), LoginError::Status { .. }) && !outcome.error().is_transient(), "{status}");
    }
    assert!(Script::new().respond(TOKEN, error_response(503, "temporarily_unavailable")).run().error().is_transient());
    assert!(Script::new().respond(TOKEN, error_response(400, "temporarily_unavailable")).run().error().is_transient());
    assert!(
        Script::new().handle(TOKEN, |_| Err(RequestError::Unreachable(String::new()))).run().error().is_transient()
    );
    assert!(!Script::new().handle(TOKEN, |_| Err(RequestError::TooLarge)).run().error().is_transient());
    for body in ["", "[]", "null", "access_token=form&token_type=bearer", "{"] {
        let outcome = Script::new().respond(TOKEN, HttpResponse::new(200, body)).run();
        assert!(matches!(outcome.error(), LoginError::InvalidTokenResponse(_)), "{body}");
    }
    let wrong_scope = json!({ "access_token": "a", "token_type": "bearer", "scope": ["a"] });
    assert!(matches!(
        Script::new().respond(TOKEN, json_response(&wrong_scope)).run().error(),
        LoginError::InvalidTokenResponse(_)
    ));
}
