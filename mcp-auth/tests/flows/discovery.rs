use mcp_auth::client::{LoginConfig, LoginError, RequestError};
use mcp_auth::metadata::{Address, ProtectedResourceMetadata, well_known};
use serde_json::json;
use url::Url;

use crate::script::{
    ISSUER, SERVER, Script, code_flow, header, json_response, resource_metadata, server_metadata, token_response,
};

const PATH: &str = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
const ROOT: &str = "https://mcp.example/.well-known/oauth-protected-resource";

fn texts(urls: &[Url]) -> Vec<&str> {
    urls.iter().map(Url::as_str).collect()
}

// covers: AU-21
#[test]
fn metadata_of_a_resource_is_looked_for_with_the_path_then_at_the_root() {
    for (server, places) in [
        ("https://mcp.example/mcp", vec![PATH, ROOT]),
        ("https://mcp.example/mcp/", vec![PATH, ROOT]),
        ("https://mcp.example/", vec![ROOT]),
        ("https://mcp.example", vec![ROOT]),
        (
            "https://mcp.example:8443/a/b",
            vec![
                "https://mcp.example:8443/.well-known/oauth-protected-resource/a/b",
                "https://mcp.example:8443/.well-known/oauth-protected-resource",
            ],
        ),
        (
            "https://mcp.example/mcp?tenant=1",
            vec!["https://mcp.example/.well-known/oauth-protected-resource/mcp?tenant=1", ROOT],
        ),
        (
            "https://mcp.example/?tenant=1",
            vec!["https://mcp.example/.well-known/oauth-protected-resource?tenant=1", ROOT],
        ),
    ] {
        assert_eq!(texts(&well_known::protected_resource(&Url::parse(server).unwrap())), places, "{server}");
    }
}

// covers: AU-22
#[test]
fn metadata_of_an_authorization_server_is_looked_for_by_oauth_then_openid() {
    for (issuer, places) in [
        (
            "https://as.example",
            vec![
                "https://as.example/.well-known/oauth-authorization-server",
                "https://as.example/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example/",
            vec![
                "https://as.example/.well-known/oauth-authorization-server",
                "https://as.example/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example/tenant1",
            vec![
                "https://as.example/.well-known/oauth-authorization-server/tenant1",
                "https://as.example/.well-known/openid-configuration/tenant1",
                "https://as.example/tenant1/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example/a/b/",
            vec![
                "https://as.example/.well-known/oauth-authorization-server/a/b",
                "https://as.example/.well-known/openid-configuration/a/b",
                "https://as.example/a/b/.well-known/openid-configuration",
            ],
        ),
    ] {
        assert_eq!(texts(&well_known::authorization_server(&Url::parse(issuer).unwrap())), places, "{issuer}");
    }
}

// covers: AU-49, AU-34
#[test]
fn metadata_is_for_servers_of_the_same_origin_below_its_path() {
    for (resource, server, is_for) in [
        ("https://mcp.example/mcp", "https://mcp.example/mcp", true),
        ("https://mcp.example", "https://mcp.example/mcp", true),
        ("https://mcp.example/", "https://mcp.example/mcp", true),
        ("https://mcp.example/mcp/", "https://mcp.example/mcp", true),
        ("https://mcp.example/mcp", "https://mcp.example/mcp/v1", true),
        ("HTTPS://MCP.EXAMPLE/mcp", "https://mcp.example/mcp", true),
        ("https://mcp.example:443/mcp", "https://mcp.example/mcp", true),
        ("https://mcp.example/mcp?tenant=1", "https://mcp.example/mcp?tenant=1", true),
        ("https://mcp.example/mcp", "https://mcp.example/mcp?tenant=1", true),
        ("https://mcp.example/mc", "https://mcp.example/mcp", false),
        ("https://mcp.example/mcp/v1", "https://mcp.example/mcp", false),
        ("https://mcp.example/other", "https://mcp.example/mcp", false),
        ("https://evil.example/mcp", "https://mcp.example/mcp", false),
        ("https://mcp.example:8443/mcp", "https://mcp.example/mcp", false),
        ("http://mcp.example/mcp", "https://mcp.example/mcp", false),
        ("https://mcp.example/mcp#fragment", "https://mcp.example/mcp", false),
        ("https://mcp.example/mcp?tenant=2", "https://mcp.example/mcp?tenant=1", false),
        ("https://user@mcp.example/mcp", "https://mcp.example/mcp", false),
        ("mcp.example/mcp", "https://mcp.example/mcp", false),
        ("", "https://mcp.example/mcp", false),
        ("urn:mcp", "https://mcp.example/mcp", false),
        (" https://mcp.example/mcp", "https://mcp.example/mcp", false),
        ("https://mcp.example/mcp\n", "https://mcp.example/mcp", false),
        ("https://mcp.example\\mcp", "https://mcp.example/mcp", false),
    ] {
        let metadata = ProtectedResourceMetadata::new(resource, [ISSUER]);
        assert_eq!(metadata.is_for(&Url::parse(server).unwrap()), is_for, "{resource} for {server}");
    }
}

// covers: AU-20, AU-21
#[test]
fn the_address_in_the_challenge_comes_first() {
    let outcome = Script::new()
        .challenge(r#"Bearer resource_metadata="https://mcp.example/custom/metadata.json""#)
        .json("https://mcp.example/custom/metadata.json", resource_metadata())
        .run();
    assert_eq!(
        outcome.urls()[..2],
        ["https://mcp.example/custom/metadata.json", "https://as.example/.well-known/oauth-authorization-server",]
    );
    outcome.grant();
}

// covers: AU-21
#[test]
fn without_an_address_in_the_challenge_all_well_known_places_are_tried_in_order() {
    let issuer = "https://as.example/tenant1";
    let mut server = server_metadata();
    server["issuer"] = json!(issuer);
    let outcome = Script::bare(LoginConfig::new(SERVER, code_flow()).unwrap())
        .json(ROOT, json!({ "resource": "https://mcp.example", "authorization_servers": [issuer] }))
        .json("https://as.example/tenant1/.well-known/openid-configuration", server)
        .json("https://as.example/register", json!({ "client_id": "client-1" }))
        .json("https://as.example/token", token_response())
        .user(move |page| crate::script::redirect_of(page, &[("code", "code-1"), ("iss", issuer)]))
        .run();
    assert_eq!(
        outcome.urls(),
        [
            PATH,
            ROOT,
            "https://as.example/.well-known/oauth-authorization-server/tenant1",
            "https://as.example/.well-known/openid-configuration/tenant1",
            "https://as.example/tenant1/.well-known/openid-configuration",
            "https://as.example/register",
            "https://as.example/token",
        ]
    );
    // The text of the metadata, which has no slash at its end.
    assert_eq!(outcome.grant().resource, "https://mcp.example");
    assert_eq!(outcome.page().get("resource"), Some("https://mcp.example"));
}

#[test]
fn a_page_at_a_well_known_address_is_not_metadata() {
    let page = mcp_auth::client::HttpResponse::new(200, "<!doctype html><title>An app</title>");
    let outcome = Script::new()
        .respond(PATH, page.clone())
        .json(ROOT, resource_metadata())
        .respond("https://as.example/.well-known/oauth-authorization-server", page)
        .json("https://as.example/.well-known/openid-configuration", server_metadata())
        .run();
    outcome.grant();
}

/// A redirect that must not be followed is no document, like any other response but success.
#[test]
fn a_redirect_to_another_origin_leads_to_the_next_place() {
    let redirected = |_: &mcp_auth::client::HttpRequest| Err(RequestError::Redirected("another origin".to_owned()));
    let outcome = Script::new()
        .handle(PATH, redirected)
        .json(ROOT, resource_metadata())
        .handle("https://as.example/.well-known/oauth-authorization-server", redirected)
        .json("https://as.example/.well-known/openid-configuration", server_metadata())
        .run();
    assert_eq!(
        outcome.urls()[..4],
        [
            PATH,
            ROOT,
            "https://as.example/.well-known/oauth-authorization-server",
            "https://as.example/.well-known/openid-configuration",
        ]
    );
    outcome.grant();
}

#[test]
fn a_failing_server_is_an_outage_and_never_leads_to_the_next_place() {
    for status in [500, 502, 503, 429] {
        let outcome = Script::new().respond(PATH, mcp_auth::client::HttpResponse::new(status, "")).run();
        assert_eq!(outcome.urls(), [PATH]);
        assert!(outcome.error().is_transient(), "{:?}", outcome.error());
    }
    let outcome = Script::new().handle(PATH, |_| Err(RequestError::Unreachable("no route".to_owned()))).run();
    assert_eq!(outcome.urls(), [PATH]);
    assert!(outcome.error().is_transient());
}

// covers: AU-49
#[test]
fn metadata_of_another_resource_is_not_used() {
    let evil = json!({ "resource": "https://evil.example/mcp", "authorization_servers": ["https://evil.example"] });
    let mismatch = |outcome: &crate::script::Outcome| {
        assert!(matches!(outcome.error(), LoginError::ResourceMismatch { .. }), "{:?}", outcome.error());
        assert!(
            outcome
                .urls()
                .iter()
                .all(|url| url.starts_with("https://mcp.example/.well-known/oauth-protected-resource"))
        );
    };
    let named = format!(r#"Bearer resource_metadata="{PATH}""#);
    mismatch(&Script::new().challenge(&named).json(PATH, evil.clone()).run());
    mismatch(&Script::new().json(PATH, evil.clone()).run());
    // The next place may still be right.
    Script::new().json(PATH, evil).json(ROOT, resource_metadata()).run().grant();
}

#[test]
fn a_named_document_that_does_not_exist_is_not_replaced_by_the_fallbacks_of_2025_03_26() {
    let outcome = Script::bare(LoginConfig::new(SERVER, code_flow()).unwrap())
        .challenge(r#"Bearer resource_metadata="https://mcp.example/nothing""#)
        .run();
    assert!(matches!(outcome.error(), LoginError::NoResourceMetadata { .. }));
    assert_eq!(outcome.urls(), ["https://mcp.example/nothing", PATH, ROOT]);
}

// covers: AU-23
#[test]
fn metadata_with_another_issuer_is_discarded() {
    for issuer in ["https://honest.example", "https://as.example/", "https://AS.example", "https://as.example:443", ""]
    {
        let outcome = Script::new().server(|metadata| metadata["issuer"] = json!(issuer)).run();
        assert!(matches!(outcome.error(), LoginError::IssuerMismatch { .. }), "{issuer}: {:?}", outcome.error());
        // Both places were tried, and no endpoint was used.
        assert_eq!(
            outcome.urls()[1..],
            [
                "https://as.example/.well-known/oauth-authorization-server",
                "https://as.example/.well-known/openid-configuration",
            ]
        );
        assert!(outcome.pages.is_empty());
    }
    let outcome = Script::new()
        .server(|metadata| metadata["issuer"] = json!("https://other.example"))
        .json("https://as.example/.well-known/openid-configuration", server_metadata())
        .run();
    outcome.grant();
}

#[test]
fn an_authorization_server_without_metadata_is_an_error() {
    let outcome = Script::new()
        .respond(
            "https://as.example/.well-known/oauth-authorization-server",
            mcp_auth::client::HttpResponse::new(404, ""),
        )
        .run();
    assert_eq!(*outcome.error(), LoginError::NoServerMetadata { issuer: ISSUER.to_owned() });
    let outcome = Script::new().resource(|metadata| metadata["authorization_servers"] = json!([])).run();
    assert_eq!(*outcome.error(), LoginError::NoAuthorizationServer);
}

#[test]
fn an_authorization_server_that_knows_the_client_is_preferred_to_the_first() {
    let mut script =
        Script::new().resource(|metadata| metadata["authorization_servers"] = json!(["https://first.example", ISSUER]));
    script.stored.registrations = vec![mcp_auth::client::Registration::new(ISSUER, "client-0")];
    let outcome = script.run();
    assert_eq!(outcome.grant().registration.client_id, "client-0");
    let first = Script::new()
        .resource(|metadata| metadata["authorization_servers"] = json!(["https://first.example", ISSUER]))
        .run();
    assert!(first.urls()[1].starts_with("https://first.example/"));
}

// covers: B-66
#[test]
fn servers_of_2025_03_26_have_metadata_of_the_authorization_server_at_their_root() {
    for issuer in ["https://mcp.example", "https://mcp.example/"] {
        let mut metadata = server_metadata();
        metadata["issuer"] = json!(issuer);
        let outcome = Script::bare(LoginConfig::new(SERVER, code_flow()).unwrap())
            .json("https://mcp.example/.well-known/oauth-authorization-server", metadata)
            .json("https://as.example/register", json!({ "client_id": "client-1" }))
            .json("https://as.example/token", token_response())
            .user(move |page| crate::script::redirect_of(page, &[("code", "code-1"), ("iss", issuer)]))
            .run();
        assert_eq!(outcome.grant().issuer, issuer);
        assert_eq!(outcome.urls()[..3], [PATH, ROOT, "https://mcp.example/.well-known/oauth-authorization-server"]);
        assert_eq!(outcome.page().get("resource"), Some(SERVER));
    }
}

// covers: B-66
#[test]
fn servers_of_2025_03_26_without_any_metadata_have_default_endpoints() {
    let outcome = Script::bare(LoginConfig::new(SERVER, code_flow()).unwrap())
        .respond(
            "https://mcp.example/register",
            json_response(&json!({ "client_id": "client-1", "client_secret": "s" })),
        )
        .json("https://mcp.example/token", token_response())
        .user(|page| {
            assert_eq!(page.path(), "/authorize");
            crate::script::redirect_of(page, &[("code", "code-1")])
        })
        .run();
    assert_eq!(outcome.grant().token_endpoint, "https://mcp.example/token");
    assert_eq!(outcome.grant().issuer, "https://mcp.example");
    assert_eq!(outcome.page().get("code_challenge_method"), Some("S256"));
}

#[test]
fn a_failed_check_never_leads_to_default_endpoints() {
    let mut metadata = server_metadata();
    metadata["issuer"] = json!("https://evil.example");
    let outcome = Script::bare(LoginConfig::new(SERVER, code_flow()).unwrap())
        .json("https://mcp.example/.well-known/oauth-authorization-server", metadata)
        .run();
    assert!(matches!(outcome.error(), LoginError::IssuerMismatch { .. }));
    let outcome =
        Script::bare(LoginConfig::new(SERVER, code_flow()).unwrap()).json(PATH, json!({ "resource": 1 })).run();
    assert!(matches!(outcome.error(), LoginError::Metadata { .. }));
}

#[test]
fn the_revision_is_sent_when_metadata_is_fetched() {
    let outcome = Script::new().configure(|config| config.protocol_version("2025-03-26")).run();
    assert_eq!(header(&outcome.requests[0], "mcp-protocol-version"), Some("2025-03-26"));
    assert_eq!(header(&outcome.requests[1], "mcp-protocol-version"), Some("2025-03-26"));
}

// covers: AU-34
#[test]
fn a_server_without_metadata_is_named_by_its_canonical_address() {
    for (server, resource) in [
        ("https://mcp.example", "https://mcp.example"),
        ("https://mcp.example/", "https://mcp.example"),
        ("HTTPS://MCP.example/mcp", "https://mcp.example/mcp"),
        ("https://mcp.example:8443/server/mcp", "https://mcp.example:8443/server/mcp"),
        ("https://mcp.example/mcp#fragment", "https://mcp.example/mcp"),
        ("https://mcp.example/mcp?key=secret", "https://mcp.example/mcp"),
    ] {
        let config = LoginConfig::new(server, code_flow()).unwrap();
        let origin = Address::parse(resource).unwrap().origin();
        let outcome = Script::bare(config)
            .json(&format!("{origin}/register"), json!({ "client_id": "client-1" }))
            .json(&format!("{origin}/token"), token_response())
            .user(|page| crate::script::redirect_of(page, &[("code", "code-1")]))
            .run();
        assert_eq!(outcome.grant().resource, resource, "{server}");
        assert_eq!(outcome.page().get("resource"), Some(resource));
    }
}
