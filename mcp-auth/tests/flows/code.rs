use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_auth::client::{Action, InvalidConfig, Login, LoginConfig, LoginError, RedirectError, Stored, TokenType};
use mcp_auth::metadata::UnsafeAddress;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::script::{ISSUER, NOW, Parameters, REDIRECT, SERVER, Script, code_flow, redirect_of};

// covers: AU-31, AU-32, AU-33, AU-35, AU-39
#[test]
fn a_code_is_requested_and_redeemed_with_pkce_state_and_resource() {
    let outcome = Script::new().run();
    let page = outcome.page();
    assert!(outcome.pages[0].url.starts_with("https://as.example/authorize?"));
    assert_eq!(outcome.pages[0].issuer, ISSUER);
    assert_eq!(page.get("response_type"), Some("code"));
    assert_eq!(page.get("client_id"), Some("client-1"));
    assert_eq!(page.get("redirect_uri"), Some(REDIRECT));
    assert_eq!(page.get("resource"), Some(SERVER));
    assert_eq!(page.get("code_challenge_method"), Some("S256"));
    assert_eq!(page.get("state").map(str::len), Some(43));

    let form = Parameters::of_body(outcome.request_to("https://as.example/token"));
    assert_eq!(form.get("grant_type"), Some("authorization_code"));
    assert_eq!(form.get("code"), Some("code-1"));
    assert_eq!(form.get("redirect_uri"), Some(REDIRECT));
    assert_eq!(form.get("client_id"), Some("client-1"));
    assert_eq!(form.get("resource"), Some(SERVER));
    let verifier = form.get("code_verifier").unwrap();
    assert_eq!(verifier.len(), 43);
    assert_ne!(Some(verifier), page.get("state"));
    assert_eq!(page.get("code_challenge"), Some(&*URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))));

    let grant = outcome.grant();
    assert_eq!(grant.tokens.access_token.expose(), "access-1");
    assert_eq!(grant.tokens.token_type, TokenType::Bearer);
    assert_eq!(grant.tokens.expires_at.map(|time| time.as_secs()), Some(NOW.as_secs() + 3600));
    assert_eq!((&*grant.issuer, &*grant.resource), (ISSUER, SERVER));
}

#[test]
fn a_query_of_the_authorization_endpoint_is_kept() {
    let endpoint = "https://as.example/authorize?tenant=1";
    let outcome = Script::new().server(|metadata| metadata["authorization_endpoint"] = json!(endpoint)).run();
    assert_eq!(outcome.page().get("tenant"), Some("1"));
    outcome.grant();
}

// covers: AU-31
#[test]
fn an_authorization_server_without_pkce_is_refused_before_anything_is_sent_to_it() {
    for methods in [json!(null), json!([]), json!(["plain"])] {
        let outcome = Script::new().server(|metadata| metadata["code_challenge_methods_supported"] = methods).run();
        assert!(
            matches!(outcome.error(), LoginError::Unsupported { what: "PKCE with S256", .. }),
            "{:?}",
            outcome.error()
        );
        assert!(outcome.pages.is_empty());
        assert!(outcome.requests_to("https://as.example/register").is_empty());
    }
    // The same for the metadata of OpenID Connect.
    let outcome = Script::new()
        .respond(
            "https://as.example/.well-known/oauth-authorization-server",
            mcp_auth::client::HttpResponse::new(404, ""),
        )
        .json("https://as.example/.well-known/openid-configuration", {
            let mut metadata = crate::script::server_metadata();
            metadata.as_object_mut().unwrap().remove("code_challenge_methods_supported");
            metadata
        })
        .run();
    assert!(matches!(outcome.error(), LoginError::Unsupported { .. }));
}

// covers: AU-36, AU-37
#[test]
fn the_issuer_of_a_response_is_compared_exactly() {
    for (is_advertised, iss, is_accepted) in [
        (json!(true), Some(ISSUER), true),
        (json!(true), None, false),
        (json!(true), Some("https://evil.example"), false),
        (json!(false), Some(ISSUER), true),
        (json!(false), Some("https://evil.example"), false),
        (json!(false), None, true),
        (json!(null), None, true),
        (json!(null), Some("https://evil.example"), false),
        (json!(true), Some("https://as.example/"), false),
        (json!(true), Some("https://AS.example"), false),
        (json!(true), Some("HTTPS://as.example"), false),
        (json!(true), Some("https://as.example:443"), false),
        (json!(true), Some("https://as.exampl%65"), false),
        (json!(true), Some(""), false),
    ] {
        let outcome = Script::new()
            .server(|metadata| metadata["authorization_response_iss_parameter_supported"] = is_advertised.clone())
            .user(move |page| {
                let iss = iss.map(|iss| ("iss", iss));
                redirect_of(page, &[("code", "code-1")].into_iter().chain(iss).collect::<Vec<_>>())
            })
            .run();
        assert_eq!(outcome.result.is_ok(), is_accepted, "{is_advertised} {iss:?}: {:?}", outcome.result);
        if !is_accepted {
            assert_eq!(*outcome.error(), LoginError::ResponseIssuer { expected: ISSUER.to_owned() });
            assert!(outcome.requests_to("https://as.example/token").is_empty(), "no code is sent");
        }
    }
}

// covers: AU-38
#[test]
fn the_error_of_another_issuer_is_not_shown() {
    let user = |iss: &'static str| {
        move |page: &Url| {
            redirect_of(page, &[("error", "access_denied"), ("error_description", "call 555-0100"), ("iss", iss)])
        }
    };
    let outcome = Script::new().user(user("https://evil.example")).run();
    let shown = format!("{:?} {}", outcome.error(), outcome.error());
    assert!(!shown.contains("access_denied") && !shown.contains("555") && !shown.contains("evil"), "{shown}");
    let outcome = Script::new().user(user(ISSUER)).run();
    assert_eq!(outcome.error().to_string(), "authorization was refused: access_denied (call 555-0100)");
}

// covers: AU-39
#[test]
fn a_response_to_another_request_is_ignored_and_the_right_one_still_counts() {
    let (page, mut login) = waiting_for_redirect();
    let with_state = |state: &str| format!("{REDIRECT}?code=injected&iss={ISSUER}&state={state}");
    assert_eq!(login.handle_redirect(&with_state("wrong")), Err(RedirectError::OtherState));
    assert_eq!(login.handle_redirect(&with_state("")), Err(RedirectError::OtherState));
    assert_eq!(login.handle_redirect(&format!("{REDIRECT}?code=injected")), Err(RedirectError::OtherState));
    assert_eq!(login.handle_redirect(&format!("{REDIRECT}?error=access_denied")), Err(RedirectError::OtherState));
    assert_eq!(login.handle_redirect("https://evil.example/callback?code=c"), Err(RedirectError::OtherAddress));
    assert_eq!(login.handle_redirect("http://127.0.0.1:3000/other?code=c"), Err(RedirectError::OtherAddress));
    assert_eq!(login.handle_redirect("//evil.example/callback?code=c"), Err(RedirectError::OtherAddress));
    assert_eq!(login.handle_redirect(&format!("{REDIRECT}?{}", "x".repeat(40_000))), Err(RedirectError::OtherAddress));
    assert!(matches!(login.poll(NOW), Action::Idle), "it still waits");
    assert_eq!(login.handle_redirect(&redirect_of(&page, &[("code", "code-1"), ("iss", ISSUER)])), Ok(()));
    let Action::Fetch(request) = login.poll(NOW) else { panic!("the code is redeemed") };
    assert_eq!(Parameters::of_body(&request).get("code"), Some("code-1"));
    assert_eq!(login.handle_redirect(&redirect_of(&page, &[("code", "code-2")])), Err(RedirectError::NotExpected));
}

#[test]
fn a_response_can_be_a_whole_address_a_path_or_a_query() {
    for cut in [0, "http://".len(), REDIRECT.len() - "/callback".len(), REDIRECT.len(), REDIRECT.len() + 1] {
        // Some servers do not encode what need not be encoded.
        for decode in [false, true] {
            let user = move |page: &Url| {
                let redirect = redirect_of(page, &[("code", "code-1"), ("iss", ISSUER)]);
                let redirect = if decode { redirect.replace("%3A", ":").replace("%2F", "/") } else { redirect };
                format!("  {}\n", &redirect[cut..])
            };
            Script::new().user(user).run().grant();
        }
    }
}

#[test]
fn a_response_with_a_parameter_twice_or_without_a_code_ends_the_login() {
    for parameters in [
        vec![("code", "a"), ("code", "b"), ("iss", ISSUER)],
        vec![("iss", ISSUER)],
        vec![("code", ""), ("iss", ISSUER)],
    ] {
        let outcome = Script::new().user(move |page| redirect_of(page, &parameters)).run();
        assert!(matches!(outcome.error(), LoginError::InvalidResponse(_)), "{:?}", outcome.error());
        assert!(outcome.requests_to("https://as.example/token").is_empty());
    }
}

// covers: AU-47
#[test]
fn redirect_uris_are_https_or_on_this_machine() {
    for (redirect_uri, expected) in [
        ("http://localhost:3000/callback", None),
        ("http://127.0.0.1:3000/callback", None),
        ("http://[::1]:3000/callback", None),
        ("https://client.example/callback", None),
        ("http://client.example/callback", Some(UnsafeAddress::Scheme)),
        ("com.example.app:/callback", Some(UnsafeAddress::Scheme)),
        ("https://client.example/callback#fragment", Some(UnsafeAddress::Fragment)),
        ("callback", Some(UnsafeAddress::NotUrl)),
    ] {
        let flow = mcp_auth::client::Flow::AuthorizationCode { redirect_uri: redirect_uri.to_owned() };
        let result = LoginConfig::new(SERVER, flow).map(drop);
        assert_eq!(result, expected.map_or(Ok(()), |error| Err(InvalidConfig::RedirectUri(error))), "{redirect_uri}");
    }
}

#[test]
fn a_user_can_decline() {
    let (_, mut login) = waiting_for_redirect();
    login.handle_declined();
    assert!(matches!(login.poll(NOW), Action::Failed(LoginError::Declined)));
    assert!(matches!(login.poll(NOW), Action::Idle));
}

/// Returns a login that waits for the browser, and the page that it opened.
fn waiting_for_redirect() -> (Url, Login) {
    let script = Script::new();
    let mut routes = script.routes;
    let mut login = Login::new(LoginConfig::new(SERVER, code_flow()).unwrap(), Stored::default(), &[], [7; 64]);
    loop {
        match login.poll(NOW) {
            Action::Fetch(request) => {
                let response = routes.get_mut(&request.url).unwrap()(&request).unwrap();
                login.handle_response(NOW, response);
            }
            Action::Save(_) => login.handle_saved(),
            Action::OpenBrowser(page) => return (Url::parse(&page.url).unwrap(), login),
            other => panic!("{other:?}"),
        }
    }
}
