use mcp_auth::client::{Flow, HttpResponse, LoginError, RequestError};
use serde_json::{Value, json};

use crate::script::{NOW, Outcome, Parameters, SERVER, Script, error_response, json_response, token_response};

const TOKEN: &str = "https://as.example/token";
const DEVICE: &str = "https://as.example/device";

fn issued() -> Value {
    json!({
        "device_code": "device-1",
        "user_code": "WDJB-MJHT",
        "verification_uri": "https://as.example/enter",
        "verification_uri_complete": "https://as.example/enter?code=WDJB-MJHT",
        "expires_in": 600,
        "interval": 5,
    })
}

fn script() -> Script {
    Script::with_flow(Flow::DeviceCode)
        .server(|metadata| {
            metadata["device_authorization_endpoint"] = json!(DEVICE);
            metadata["authorization_endpoint"] = json!(null);
            metadata["code_challenge_methods_supported"] = json!(null);
        })
        .challenge(r#"Bearer scope="read""#)
        .json(DEVICE, issued())
}

fn waited(outcome: &Outcome) -> u64 {
    outcome.now.as_secs() - NOW.as_secs()
}

#[test]
fn a_user_enters_the_code_while_the_client_asks_in_intervals() {
    let pending = || error_response(400, "authorization_pending");
    let outcome = script().respond_in_turn(TOKEN, [pending(), pending(), json_response(&token_response())]).run();
    outcome.grant();
    assert_eq!(waited(&outcome), 15);
    let form = Parameters::of_body(outcome.request_to(DEVICE));
    assert_eq!(
        (form.get("client_id"), form.get("scope"), form.get("resource")),
        (Some("client-1"), Some("read"), Some(SERVER))
    );
    let requests = outcome.requests_to(TOKEN);
    assert_eq!(requests.len(), 3);
    let form = Parameters::of_body(requests[2]);
    assert_eq!(form.get("grant_type"), Some("urn:ietf:params:oauth:grant-type:device_code"));
    assert_eq!((form.get("device_code"), form.get("resource")), (Some("device-1"), Some(SERVER)));
    assert_eq!(outcome.codes[0].user_code, "WDJB-MJHT");
    assert_eq!(outcome.codes[0].verification_uri, "https://as.example/enter");
    assert_eq!(outcome.codes[0].expires_at.as_secs(), NOW.as_secs() + 600);
    let body = outcome.request_to("https://as.example/register").body.as_ref().unwrap().expose().to_owned();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["grant_types"], json!(["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"]));
    assert_eq!(body.get("redirect_uris"), None);
}

#[test]
fn slow_down_makes_all_later_intervals_longer() {
    let (slow, pending) = (error_response(400, "slow_down"), error_response(400, "authorization_pending"));
    let outcome = script().respond_in_turn(TOKEN, [slow, pending, json_response(&token_response())]).run();
    assert_eq!(waited(&outcome), 5 + 10 + 10);
    outcome.grant();
}

#[test]
fn an_outage_only_makes_the_wait_longer() {
    let mut count = 0;
    let outcome = script()
        .handle(TOKEN, move |_| {
            count += 1;
            match count {
                1 => Err(RequestError::Unreachable("no route".to_owned())),
                2 => Ok(HttpResponse::new(503, "")),
                _ => Ok(json_response(&token_response())),
            }
        })
        .run();
    assert_eq!(waited(&outcome), 5 + 10 + 20);
    outcome.grant();
}

#[test]
fn the_wait_ends_when_the_code_expires() {
    let outcome = script().respond(TOKEN, error_response(400, "authorization_pending")).run();
    assert_eq!(*outcome.error(), LoginError::CodeExpired);
    assert_eq!(waited(&outcome), 600);
    let outcome = script().respond(TOKEN, error_response(400, "expired_token")).run();
    assert_eq!(*outcome.error(), LoginError::CodeExpired);
    assert_eq!(waited(&outcome), 5);
}

#[test]
fn the_wait_ends_with_a_refusal() {
    let outcome = script().respond(TOKEN, error_response(400, "access_denied")).run();
    assert!(matches!(outcome.error(), LoginError::AuthorizationRefused(error) if error.code == "access_denied"));
    let outcome = script().respond(TOKEN, error_response(400, "invalid_grant")).run();
    assert!(matches!(outcome.error(), LoginError::TokenRefused { .. }));
    assert_eq!(outcome.requests_to(TOKEN).len(), 1);
    let outcome = script().respond(DEVICE, error_response(400, "unauthorized_client")).run();
    assert!(matches!(outcome.error(), LoginError::TokenRefused { url, .. } if url == DEVICE));
    assert!(outcome.codes.is_empty());
}

#[test]
fn intervals_have_a_default_and_limits() {
    for (interval, expected) in [(json!(null), 5), (json!(0), 1), (json!(7), 7), (json!("7"), 7), (json!(100_000), 300)]
    {
        let mut body = issued();
        body["interval"] = interval.clone();
        assert_eq!(waited(&script().json(DEVICE, body).run()), expected, "{interval}");
    }
    let mut body = issued();
    (body["expires_in"], body["interval"]) = (json!(u64::MAX), json!(300));
    let outcome = script().json(DEVICE, body).respond(TOKEN, error_response(400, "authorization_pending")).run();
    assert_eq!(waited(&outcome), 24 * 60 * 60, "not for ever");
}

#[test]
fn a_code_that_cannot_be_shown_is_refused() {
    for (member, value) in [
        ("user_code", json!("")),
        ("user_code", json!("\u{1b}[2J")),
        ("user_code", json!("x".repeat(65))),
        ("device_code", json!("")),
        ("device_code", json!(null)),
        ("expires_in", json!(null)),
        ("expires_in", json!("x")),
        ("interval", json!(-1)),
    ] {
        let mut body = issued();
        body[member] = value.clone();
        let outcome = script().json(DEVICE, body).run();
        assert!(matches!(outcome.error(), LoginError::InvalidDeviceCode(_)), "{member} {value}: {:?}", outcome.error());
    }
    for member in ["verification_uri", "verification_uri_complete"] {
        for url in ["javascript:alert(1)", "http://as.example/enter", "https://localhost/enter"] {
            let mut body = issued();
            body[member] = json!(url);
            let outcome = script().json(DEVICE, body).run();
            assert!(matches!(outcome.error(), LoginError::UnsafeAddress { .. }), "{member} {url}");
        }
    }
}

#[test]
fn a_server_without_device_codes_is_refused_before_anything_is_registered() {
    let outcome = Script::with_flow(Flow::DeviceCode).run();
    assert!(matches!(outcome.error(), LoginError::Unsupported { what: "device codes", .. }));
    assert!(outcome.requests_to("https://as.example/register").is_empty());
}
