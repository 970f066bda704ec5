//! Reading and writing `WWW-Authenticate`.

use mcp_auth::{Challenge, Scopes};

// The limits of what is read.
const MAX_HEADER_BYTES: usize = 16 * 1024;
const MAX_CHALLENGES: usize = 16;
const MAX_PARAMETERS: usize = 32;

/// Writes challenges in a form that is easy to compare: `scheme(name=value;..)`.
fn parse(values: &[&str]) -> String {
    let names = ["realm", "scope", "error", "error_description", "resource_metadata", "algs", "a", "b"];
    let one = |challenge: &Challenge| {
        let parameters = names.iter().filter_map(|name| Some(format!("{name}={}", challenge.parameter(name)?)));
        format!("{}({})", challenge.scheme(), parameters.collect::<Vec<_>>().join(";"))
    };
    Challenge::parse_all(values.iter().copied()).iter().map(one).collect::<Vec<_>>().join(" ")
}

// covers: AU-20
#[test]
fn challenges_are_read_in_all_forms_that_http_allows() {
    for (header, expected) in [
        ("Bearer", "Bearer()"),
        ("", ""),
        (", ,", ""),
        (r#"Bearer realm="x""#, "Bearer(realm=x)"),
        (r#"Bearer realm="x", scope="a b""#, "Bearer(realm=x;scope=a b)"),
        (r#"Bearer realm="x",scope="a b""#, "Bearer(realm=x;scope=a b)"),
        (r#"Bearer realm = "x" , scope= "a b""#, "Bearer(realm=x;scope=a b)"),
        (r#"Bearer realm="x" scope="a b""#, "Bearer(realm=x;scope=a b)"),
        (r#"bearer REALM="x""#, "bearer(realm=x)"),
        ("Bearer realm=x, scope=a", "Bearer(realm=x;scope=a)"),
        ("Bearer resource_metadata=https://mcp.example/x?y=z", "Bearer(resource_metadata=https://mcp.example/x?y=z)"),
        (r#"Bearer realm="a \"quoted\" \\ text""#, r#"Bearer(realm=a "quoted" \ text)"#),
        (r#"Bearer realm="a, b=c, Basic realm=d""#, "Bearer(realm=a, b=c, Basic realm=d)"),
        ("Bearer, DPoP", "Bearer() DPoP()"),
        (r#"Bearer error="x", DPoP algs="ES256 EdDSA", error="y""#, "Bearer(error=x) DPoP(error=y;algs=ES256 EdDSA)"),
        ("Negotiate, Bearer scope=a", "Negotiate() Bearer(scope=a)"),
        ("Negotiate YWJj, Bearer scope=a", "Negotiate() Bearer(scope=a)"),
        ("Negotiate YWJj==, Bearer scope=a", "Negotiate() Bearer(scope=a)"),
        ("Bearer a=1, , b=2", "Bearer(a=1;b=2)"),
        ("Bearer a=1, a=2", "Bearer(a=1)"),
        ("Bearer a=, b=2", "Bearer(b=2)"),
        // What cannot be read costs only itself.
        (r#"Bearer a=1, b="unclosed, scope=x"#, "Bearer(a=1)"),
        ("???, Bearer a=1", "Bearer(a=1)"),
        ("scope=orphan, Bearer a=1", "Bearer(a=1)"),
        (r#""quoted, text", Bearer a=1"#, "Bearer(a=1)"),
    ] {
        assert_eq!(parse(&[header]), expected, "{header}");
    }
    assert_eq!(parse(&["Basic realm=x", "Bearer a=1"]), "Basic(realm=x) Bearer(a=1)");
    // A header ends what it started.
    assert_eq!(parse(&["", "Bearer a=1", "b=2"]), "Bearer(a=1;b=2)");
}

#[test]
fn scopes_and_errors_are_typed() {
    let parse = |header| Challenge::parse_all([header]).remove(0);
    let challenge = parse(r#"Bearer error="insufficient_scope", scope="b a  b""#);
    assert!(challenge.is_insufficient_scope() && challenge.is_bearer() && !challenge.is_dpop());
    assert_eq!(challenge.scope().map(|scopes| scopes.to_string()).as_deref(), Some("a b"));
    assert_eq!(parse(r#"Bearer scope="""#).scope(), None);
    assert_eq!(parse(r#"Bearer scope="é""#).scope(), None);
    let challenge = parse(r#"dpop error="use_dpop_nonce""#);
    assert!(challenge.is_dpop() && challenge.wants_dpop_nonce() && !challenge.is_insufficient_scope());
}

#[test]
fn endless_headers_are_cut() {
    let many = (0..10_000).map(|index| format!("Scheme{index}")).collect::<Vec<_>>().join(", ");
    assert_eq!(Challenge::parse_all([&*many]).len(), MAX_CHALLENGES);
    let many = (0..1000).map(|index| format!("p{index}=v")).collect::<Vec<_>>().join(", ");
    let challenge = Challenge::parse_all([&*format!("Bearer {many}")]).remove(0);
    assert_eq!(challenge.parameter(&format!("p{}", MAX_PARAMETERS - 1)), Some("v"));
    assert_eq!(challenge.parameter(&format!("p{MAX_PARAMETERS}")), None);
    let long = format!(r#"Bearer a="{}", b=1"#, "é".repeat(MAX_HEADER_BYTES));
    assert_eq!(Challenge::parse_all([&*long, "DPoP"]).len(), 1, "what follows is not read");
    // Parameters of challenges over the limit do not become those of the last one within it.
    let many = (0..MAX_CHALLENGES).map(|index| format!("S{index}")).collect::<Vec<_>>().join(", ");
    let challenges = Challenge::parse_all([&*format!("{many}, Bearer a=1")]);
    assert_eq!(challenges.last().and_then(|last| last.parameter("a")), None);
}

#[test]
fn challenges_are_written_so_that_they_read_the_same() {
    let challenge = Challenge::bearer()
        .error("insufficient_scope")
        .error_description("needs \"write\" \\ more\r\nSet-Cookie: a=b é")
        .required_scope(&Scopes::from_iter(["b", "a"]))
        .resource_metadata_url("https://mcp.example/.well-known/oauth-protected-resource");
    let written = challenge.to_string();
    assert_eq!(
        written,
        r#"Bearer error="insufficient_scope", error_description="needs \"write\" \\ moreSet-Cookie: a=b ", scope="a b", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource""#
    );
    assert_eq!(Challenge::parse_all([&*written]).remove(0).to_string(), written);
    assert_eq!(Challenge::dpop().with_parameter("algs", "ES256").to_string(), r#"DPoP algs="ES256""#);
}
