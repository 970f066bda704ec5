//! A server whose tokens come from several issuers.

use mcp_auth::server::{InvalidResource, JwtVerifier, JwtVerifiers, ProtectedResource, StaticKeys, TokenVerifier as _};
use mcp_server::Principal;
use serde_json::{Value, json};

use crate::issuer::{ISSUER, Key, RESOURCE, claims_with, encode, jwks};
use crate::protected::Server;

const OTHER: &str = "https://partners.example.com";

fn verifiers(ours: &Key, theirs: &Key) -> JwtVerifiers {
    JwtVerifiers::new([
        JwtVerifier::new(ISSUER, StaticKeys::new(jwks([ours]))),
        JwtVerifier::new(OTHER, StaticKeys::new(jwks([theirs]))).remember_for(std::time::Duration::from_secs(7)),
    ])
    .expect("different issuers")
}

/// Each issuer has its own keys and users: none can issue tokens in the name of another.
// covers: AU-4, AU-5
#[tokio::test]
async fn issuers_are_not_mixed_up() {
    // The same name of the key must not lead to the key of another issuer.
    let (ours, theirs) = (Key::es256("a"), Key::es256("a"));
    let verifiers = verifiers(&ours, &theirs);
    assert_eq!(verifiers.remember_for().as_secs(), 7);
    let resource = ProtectedResource::new(RESOURCE).authorization_server(ISSUER).authorization_server(OTHER);
    let server = Server::new(resource.verifier(verifiers));
    let token = |key: &Key, issuer: Value| key.sign(&claims_with(json!({ "iss": issuer })));
    for (key, issuer) in [(&ours, ISSUER), (&theirs, OTHER)] {
        assert_eq!(server.bearer(&token(key, json!(issuer))).await.status, 200);
        let (_, auth) = server.recorder.take().remove(0);
        assert_eq!(*auth.expect("a token").principal(), Principal::new(Some(issuer), "alice"));
    }
    for (key, issuer) in [
        (&ours, json!(OTHER)),
        (&theirs, json!(ISSUER)),
        (&ours, json!("https://issuer.example.com/")),
        (&ours, json!([ISSUER])),
        (&ours, json!(null)),
    ] {
        assert!(!server.accepts(&token(key, issuer.clone())).await, "{issuer}");
    }
    // Two issuers in one token.
    let claims = claims_with(json!({})).to_string().replacen('{', &format!(r#"{{"iss":"{OTHER}","#), 1);
    let text = format!("{}.{}", encode(json!({ "alg": "ES256", "kid": "a" }).to_string()), encode(claims));
    for key in [&ours, &theirs] {
        assert!(!server.accepts(&format!("{text}.{}", key.sign_text(&text, "ES256"))).await);
    }
    for text in ["", ".", "..", "a.b.c", "a"] {
        assert!(verifiers_reject(&ours, &theirs, text).await, "{text}");
    }
}

async fn verifiers_reject(ours: &Key, theirs: &Key, token: &str) -> bool {
    verifiers(ours, theirs).verify(token).await.is_err()
}

/// A second verifier of an issuer would never be used.
#[test]
fn an_issuer_has_one_verifier() {
    let verifier = || JwtVerifier::new(ISSUER, StaticKeys::new(jwks([&Key::es256("a")])));
    let duplicate = InvalidResource::DuplicateIssuer(ISSUER.to_owned());
    assert_eq!(JwtVerifiers::new([verifier(), verifier()]).err(), Some(duplicate.clone()));
    #[cfg(feature = "reqwest")]
    assert_eq!(ProtectedResource::new(RESOURCE).issuer(ISSUER).issuer(ISSUER).layer().err(), Some(duplicate));
}

#[cfg(feature = "reqwest")]
#[test]
fn issuers_add_up_and_exclude_a_verifier() {
    let resource = || ProtectedResource::new(RESOURCE).issuer(ISSUER).issuer(OTHER);
    let layer = resource().layer().expect("a layer");
    let metadata = format!("{:?}", layer.metadata_service());
    assert!(metadata.contains(ISSUER) && metadata.contains(OTHER), "{metadata}");
    let key = Key::es256("a");
    let both = resource().verifier(JwtVerifier::new(ISSUER, StaticKeys::new(jwks([&key])))).layer();
    assert_eq!(both.err(), Some(InvalidResource::SeveralVerifiers));
}
