//! What servers and others may try with a client.

use std::net::IpAddr;

use mcp_auth::client::{HttpResponse, InvalidConfig, LoginConfig, LoginError, RequestError};
use mcp_auth::metadata::{Address, MAX_METADATA_BYTES, UnsafeAddress};
use serde_json::{Value, json};

use crate::script::{ISSUER, SERVER, Script, code_flow, redirect_of, server_metadata};

/// The addresses that metadata must not name, whatever they are for.
const FORBIDDEN: [(&str, UnsafeAddress); 21] = [
    ("http://as.example/x", UnsafeAddress::Scheme),
    ("javascript:alert(1)", UnsafeAddress::Scheme),
    ("file:///etc/passwd", UnsafeAddress::Scheme),
    ("data:text/html,hello", UnsafeAddress::Scheme),
    ("vscode://extension/run", UnsafeAddress::Scheme),
    ("ftp://as.example/x", UnsafeAddress::Scheme),
    ("ms-msdt:/id", UnsafeAddress::Scheme),
    ("/relative", UnsafeAddress::NotUrl),
    ("", UnsafeAddress::NotUrl),
    ("https://as.example/ x", UnsafeAddress::NotUrl),
    ("https://as.example/\r\nx", UnsafeAddress::NotUrl),
    ("https://as.example\\@evil.example/x", UnsafeAddress::NotUrl),
    ("https://user:password@as.example/x", UnsafeAddress::Credentials),
    ("https://as.example@evil.example/x", UnsafeAddress::Credentials),
    ("https://as.example/x#fragment", UnsafeAddress::Fragment),
    ("http://127.0.0.1:8080/x", UnsafeAddress::Private),
    ("http://localhost/x", UnsafeAddress::Private),
    ("https://10.0.0.1/x", UnsafeAddress::Private),
    ("https://169.254.169.254/latest/meta-data", UnsafeAddress::Private),
    ("https://[::ffff:192.168.0.1]/x", UnsafeAddress::Private),
    ("https://2130706433/x", UnsafeAddress::Private),
];

fn assert_unsafe(script: Script, reason: UnsafeAddress, url: &str) {
    let outcome = script.run();
    let found = match outcome.error() {
        LoginError::UnsafeAddress { reason, .. } => *reason,
        other => panic!("{url}: {other:?}"),
    };
    assert_eq!(found, reason, "{url}");
    assert!(!outcome.urls().contains(&url), "{url} is not contacted");
    assert!(outcome.pages.is_empty(), "{url} is not opened");
}

// covers: AU-47
#[test]
fn endpoints_must_be_https_and_public() {
    for (url, reason) in FORBIDDEN {
        for endpoint in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
            assert_unsafe(Script::new().server(|metadata| metadata[endpoint] = json!(url)), reason, url);
        }
    }
}

// covers: AU-47
#[test]
fn issuers_and_addresses_of_metadata_must_be_https_and_public() {
    for (url, reason) in FORBIDDEN {
        assert_unsafe(Script::new().resource(|metadata| metadata["authorization_servers"] = json!([url])), reason, url);
        let mut named = Script::new();
        named.challenges = vec![mcp_auth::Challenge::bearer().resource_metadata_url(url)];
        assert_unsafe(named, reason, url);
    }
}

#[test]
fn a_server_on_this_machine_can_have_its_authorization_server_there() {
    let local = |text: &str| {
        text.replace("https://mcp.example", "http://localhost:1").replace("https://as.example", "http://127.0.0.1:2")
    };
    let value = |value: Value| -> Value { serde_json::from_str(&local(&value.to_string())).unwrap() };
    let outcome = Script::bare(LoginConfig::new(&local(SERVER), code_flow()).unwrap())
        .json("http://localhost:1/.well-known/oauth-protected-resource/mcp", value(crate::script::resource_metadata()))
        .json("http://127.0.0.1:2/.well-known/oauth-authorization-server", value(server_metadata()))
        .json("http://127.0.0.1:2/register", json!({ "client_id": "client-1" }))
        .json("http://127.0.0.1:2/token", crate::script::token_response())
        .user(|page| redirect_of(page, &[("code", "code-1"), ("iss", "http://127.0.0.1:2")]))
        .run();
    outcome.grant();
    let allowed = Script::new()
        .configure(|config| config.private_addresses(true))
        .server(|metadata| metadata["token_endpoint"] = json!("http://localhost:3/token"))
        .json("http://localhost:3/token", crate::script::token_response())
        .run();
    allowed.grant();
}

#[test]
fn the_server_itself_must_be_https_or_on_this_machine() {
    for server in ["http://mcp.example/mcp", "mcp.example", "https://user@mcp.example/", "ws://mcp.example"] {
        assert!(matches!(LoginConfig::new(server, code_flow()), Err(InvalidConfig::Server(_))), "{server}");
    }
}

#[test]
fn private_numbers_are_known_in_all_their_forms() {
    for ip in [
        "127.0.0.1",
        "127.8.8.8",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "0.0.0.0",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "192.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd12::1",
        "fec0::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "2002:a00:1::",
        "2001:db8::1",
    ] {
        assert!(Address::is_private_ip(ip.parse::<IpAddr>().unwrap()), "{ip}");
    }
    for ip in [
        "1.1.1.1",
        "172.15.0.1",
        "172.32.0.1",
        "100.63.0.1",
        "100.128.0.1",
        "198.20.0.1",
        "2606:4700::1111",
        "::ffff:1.1.1.1",
        "64:ff9b::1.1.1.1",
    ] {
        assert!(!Address::is_private_ip(ip.parse::<IpAddr>().unwrap()), "{ip}");
    }
}

// covers: AU-36, AU-35
#[test]
fn mix_up_a_code_of_an_honest_server_is_not_sent_to_another_one() {
    // The attacker's authorization server sends the browser on to an honest one, whose response comes back to this login.
    for is_advertised in [json!(true), json!(false)] {
        let outcome = Script::new()
            .server(|metadata| metadata["authorization_response_iss_parameter_supported"] = is_advertised)
            .user(|page| redirect_of(page, &[("code", "code-of-honest"), ("iss", "https://honest.example")]))
            .run();
        assert!(matches!(outcome.error(), LoginError::ResponseIssuer { .. }));
        assert!(outcome.requests_to("https://as.example/token").is_empty());
    }
}

// covers: AU-23
#[test]
fn mix_up_metadata_cannot_pose_as_an_honest_server() {
    // The attacker's document names the honest issuer, so that the honest `iss` would pass.
    let outcome = Script::new()
        .resource(|metadata| metadata["authorization_servers"] = json!(["https://evil.example"]))
        .json("https://evil.example/.well-known/oauth-authorization-server", server_metadata())
        .run();
    assert!(matches!(outcome.error(), LoginError::IssuerMismatch { .. }));
    assert!(outcome.pages.is_empty());
}

#[test]
fn mix_up_an_authorization_endpoint_cannot_set_parameters_of_the_request() {
    for query in [
        "client_id=evil",
        "redirect_uri=https://evil.example",
        "a=b&state=x",
        "request_uri=urn:x",
        "%72esource=x",
        "prompt=none",
    ] {
        let endpoint = format!("https://honest.example/authorize?{query}");
        let outcome = Script::new().server(|metadata| metadata["authorization_endpoint"] = json!(endpoint)).run();
        assert!(
            matches!(outcome.error(), LoginError::UnsafeAddress { reason: UnsafeAddress::Parameters, .. }),
            "{query}"
        );
        assert!(outcome.pages.is_empty());
    }
}

// covers: AU-39
#[test]
fn code_injection_without_the_state_does_nothing() {
    let outcome = Script::new().user(|_| format!("http://127.0.0.1:3000/callback?code=injected&iss={ISSUER}")).run();
    // The scripted user then gives up.
    assert_eq!(*outcome.error(), LoginError::Declined);
    assert!(outcome.requests_to("https://as.example/token").is_empty());
}

#[test]
fn two_logins_with_other_random_bytes_have_nothing_in_common() {
    let first = Script::new().run();
    let page = first.page();
    let secrets = [page.get("state").unwrap(), page.get("code_challenge").unwrap()];
    assert_ne!(secrets[0], secrets[1]);
    assert_eq!(secrets[0].len(), 43, "256 bits");
}

#[test]
fn open_redirects_take_neither_the_code_nor_the_tokens_elsewhere() {
    // A redirect of the token endpoint is not followed, and is no response.
    let outcome = Script::new().respond("https://as.example/token", HttpResponse::new(307, "")).run();
    assert!(matches!(outcome.error(), LoginError::Status { status: 307, .. }));
    // A driver does not follow a redirect of metadata to another origin, nor does it contact what must not be contacted.
    let well_known = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
    let named = format!(r#"Bearer resource_metadata="{well_known}""#);
    let outcome = Script::new()
        .challenge(&named)
        .handle(well_known, |_| Err(RequestError::Redirected("another origin".to_owned())))
        .run();
    assert!(matches!(outcome.error(), LoginError::NoResourceMetadata { .. }), "{:?}", outcome.error());
    let outcome = Script::new().handle(well_known, |_| Err(RequestError::Refused("inwards".to_owned()))).run();
    assert!(matches!(outcome.error(), LoginError::Fetch { error: RequestError::Refused(_), .. }));
    assert!(!outcome.error().is_transient());
    // The browser is only ever sent back to the address of the login.
    for page in Script::new().run().pages {
        assert_eq!(page.redirect_uri, crate::script::REDIRECT);
    }
}

#[test]
fn huge_documents_are_refused_by_their_length() {
    let padded = |mut metadata: Value| {
        metadata["padding"] = json!("x".repeat(MAX_METADATA_BYTES));
        metadata
    };
    let outcome = Script::new().resource(|metadata| *metadata = padded(metadata.take())).run();
    assert!(matches!(outcome.error(), LoginError::Metadata { .. }));
    let outcome = Script::new().server(|metadata| *metadata = padded(metadata.take())).run();
    assert!(matches!(outcome.error(), LoginError::Metadata { .. }));
    let outcome = Script::new().run();
    assert!(
        outcome.requests.iter().all(|request| request.max_response_bytes <= MAX_METADATA_BYTES),
        "drivers stop reading there"
    );
    // Endless ones are cut by the driver.
    let outcome = Script::new()
        .handle("https://as.example/.well-known/oauth-authorization-server", |_| Err(RequestError::TooLarge))
        .run();
    assert!(matches!(outcome.error(), LoginError::Fetch { error: RequestError::TooLarge, .. }));
}

#[test]
fn deeply_nested_documents_are_refused() {
    let nested = format!("{{\"resource\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let outcome = Script::new()
        .respond("https://mcp.example/.well-known/oauth-protected-resource/mcp", HttpResponse::new(200, nested))
        .run();
    assert!(outcome.pages.is_empty());
    outcome.error();
}

#[test]
fn many_issuers_do_not_lead_to_many_requests() {
    let issuers: Vec<String> = (0..1000).map(|index| format!("https://as-{index}.example")).collect();
    let outcome = Script::new().resource(|metadata| metadata["authorization_servers"] = json!(issuers)).run();
    assert_eq!(*outcome.error(), LoginError::NoServerMetadata { issuer: "https://as-0.example".to_owned() });
    assert_eq!(outcome.requests.len(), 3);
}

// covers: AU-14
#[test]
fn an_issuer_that_would_control_a_terminal_or_has_a_query_is_refused() {
    for (issuer, expected) in [
        ("https://as.example/\u{9b}2J", UnsafeAddress::NotUrl),
        ("https://as.example/\u{202e}moc", UnsafeAddress::NotUrl),
        ("https://\u{430}s.example", UnsafeAddress::NotUrl),
        ("https://as.example?tenant=1", UnsafeAddress::Query),
    ] {
        let outcome = Script::new().resource(|metadata| metadata["authorization_servers"] = json!([issuer])).run();
        match outcome.error() {
            LoginError::UnsafeAddress { reason, url, .. } => assert_eq!((*reason, url.is_ascii()), (expected, true)),
            other => panic!("{issuer}: {other}"),
        }
        assert_eq!(outcome.requests.len(), 1, "only the metadata of the resource");
    }
}
