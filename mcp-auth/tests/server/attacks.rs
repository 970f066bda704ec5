//! Tokens that must not be accepted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::Request;
use mcp_auth::UnixTime;
use mcp_auth::server::{JwtVerifier, ProtectedResource, StaticKeys, TokenAlgorithm, TokenError, verifier_fn};
use mcp_server::{AuthInfo, Principal};
use serde_json::{Value, json};

use crate::issuer::{ISSUER, Key, RESOURCE, claims, claims_with, encode, jwks, now};
use crate::protected::{Server, resource};

// covers: AU-4
#[tokio::test]
async fn tokens_of_all_algorithms_are_accepted() {
    let keys = [Key::es256("a"), Key::es384("b"), Key::rsa("c"), Key::ed25519("d")];
    let verifier = JwtVerifier::new(ISSUER, StaticKeys::new(jwks(&keys)));
    let server = Server::new(ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(verifier));
    for key in &keys {
        assert!(server.accepts(&key.sign(&claims())).await, "{}", key.algorithm());
        for typ in [json!("JWT"), json!("application/at+jwt"), json!("AT+JWT"), Value::Null] {
            let mut header = json!({ "alg": key.algorithm(), "kid": key.kid });
            if !typ.is_null() {
                header["typ"] = typ.clone();
            }
            assert!(server.accepts(&key.sign_with(&header, &claims())).await, "{typ}");
        }
    }
    let header = json!({ "alg": "PS256", "kid": "c" });
    assert!(server.accepts(&keys[2].sign_with(&header, &claims())).await);
    // Without a `kid` only one key may fit.
    assert!(server.accepts(&keys[0].sign_with(&json!({ "alg": "ES256" }), &claims())).await);
}

// covers: AU-4, AU-5, AU-6, AU-7
#[tokio::test]
async fn tokens_with_wrong_claims_are_refused() {
    let key = Key::es256("a");
    let server = Server::new(resource(&key));
    for wrong in [
        // Another audience.
        json!({ "aud": "https://api.example.com" }),
        json!({ "aud": "https://api.example.com/mcp/" }),
        json!({ "aud": "https://other.example.com/mcp" }),
        json!({ "aud": ["https://other.example.com/mcp", "editor"] }),
        json!({ "aud": null }),
        json!({ "aud": [] }),
        json!({ "aud": { "https://api.example.com/mcp": true } }),
        // Expired, or without an end.
        json!({ "exp": now() - 31 }),
        json!({ "exp": 0 }),
        json!({ "exp": -1 }),
        json!({ "exp": null }),
        json!({ "exp": (now() + 600).to_string() }),
        json!({ "exp": true }),
        // Not valid yet.
        json!({ "nbf": now() + 60 }),
        json!({ "nbf": "soon" }),
        // Another issuer.
        json!({ "iss": "https://issuer.example.com/" }),
        json!({ "iss": "https://ISSUER.example.com" }),
        json!({ "iss": "https://evil.example.com" }),
        json!({ "iss": [ISSUER] }),
        json!({ "iss": null }),
        // Nobody's.
        json!({ "sub": null, "client_id": null }),
        json!({ "sub": 7, "client_id": null }),
        // Bound to a certificate, which is not looked at.
        json!({ "cnf": { "x5t#S256": "abc" } }),
    ] {
        assert!(!server.accepts(&key.sign(&claims_with(wrong.clone()))).await, "{wrong}");
    }
    for right in [
        json!({ "aud": ["https://other.example.com/mcp", RESOURCE] }),
        json!({ "exp": now() - 10 }),
        json!({ "exp": now() as f64 + 600.5 }),
        json!({ "nbf": now() + 10 }),
        json!({ "sub": null }),
    ] {
        assert!(server.accepts(&key.sign(&claims_with(right.clone()))).await, "{right}");
    }
}

// covers: AU-4
#[tokio::test]
async fn tokens_without_a_signature_are_refused() {
    let key = Key::es256("a");
    let server = Server::new(resource(&key));
    for algorithm in ["none", "None", "NONE", "nOnE", ""] {
        let header = json!({ "alg": algorithm, "kid": "a", "typ": "at+jwt" });
        let text = format!("{}.{}", encode(header.to_string()), encode(claims().to_string()));
        for token in [format!("{text}."), format!("{text}.AAAA"), key.sign_with(&header, &claims())] {
            assert!(!server.accepts(&token).await, "{algorithm}");
        }
    }
    let token = key.sign(&claims());
    let (text, signature) = token.rsplit_once('.').unwrap();
    assert!(!server.accepts(text).await);
    assert!(!server.accepts(&format!("{text}.{}", encode([0; 64]))).await);
    assert!(!server.accepts(&format!("{text}.{}", encode([]))).await);
    assert!(!server.accepts(&format!("{text}.{signature}.{signature}")).await);
    for index in [10, text.len() - 5, token.len() - 5] {
        let mut tampered = token.clone().into_bytes();
        tampered[index] = if tampered[index] == b'A' { b'B' } else { b'A' };
        assert!(!server.accepts(&String::from_utf8(tampered).unwrap()).await, "{index}");
    }
    assert!(server.accepts(&token).await);
}

/// The public key is known to everyone, so it must not verify signatures of a shared secret.
// covers: AU-4
#[tokio::test]
async fn hmac_with_the_public_key_is_refused() {
    for key in [Key::rsa("a"), Key::es256("a"), Key::ed25519("a")] {
        let server = Server::new(resource(&key));
        let jwk = key.jwk();
        let decoded = |name: &str| jwk[name].as_str().map(|text| BASE64_URL_SAFE_NO_PAD.decode(text).unwrap());
        let mut secrets = vec![jwk.to_string().into_bytes(), key.public().to_string().into_bytes()];
        for name in ["n", "x", "y"] {
            secrets.extend(decoded(name));
            secrets.extend(jwk[name].as_str().map(|text| text.as_bytes().to_vec()));
        }
        if let (Some(x), Some(y)) = (decoded("x"), decoded("y")) {
            secrets.push([&[4][..], &x, &y].concat());
        }
        for (algorithm, hash) in
            [("HS256", hmac::HMAC_SHA256), ("HS384", hmac::HMAC_SHA384), ("HS512", hmac::HMAC_SHA512)]
        {
            for secret in &secrets {
                let header = json!({ "alg": algorithm, "kid": "a", "typ": "at+jwt" });
                let text = format!("{}.{}", encode(header.to_string()), encode(claims().to_string()));
                let mac = hmac::sign(&hmac::Key::new(hash, secret), text.as_bytes());
                assert!(!server.accepts(&format!("{text}.{}", encode(mac))).await, "{algorithm}");
            }
        }
    }
}

/// Keys in the token, or at an address in it, are those of the attacker.
// covers: AU-4
#[tokio::test]
async fn keys_and_critical_members_of_headers_are_not_used() {
    let (key, other) = (Key::es256("a"), Key::es256("a"));
    let server = Server::new(resource(&key));
    for (name, value) in [
        ("jwk", other.jwk()),
        ("jku", json!("https://evil.example.com/jwks")),
        ("x5u", json!("https://evil.example.com/certificate")),
        ("x5c", json!(["AAAA"])),
    ] {
        let mut header = json!({ "alg": "ES256", "kid": "a", "typ": "at+jwt" });
        header[name] = value;
        assert!(!server.accepts(&other.sign_with(&header, &claims())).await, "{name}");
    }
    for header in [
        json!({ "alg": "ES256", "kid": "a", "crit": ["b64"], "b64": false }),
        json!({ "alg": "ES256", "kid": "a", "crit": [] }),
        json!({ "alg": "ES256", "kid": ["a"] }),
        json!({ "alg": ["ES256"], "kid": "a" }),
        json!({ "kid": "a" }),
        json!([]),
    ] {
        assert!(!server.accepts(&key.sign_with(&header, &claims())).await, "{header}");
    }
}

// covers: AU-4
#[tokio::test]
async fn a_key_is_good_for_its_own_kind_of_algorithm_only() {
    let keys = [Key::es256("ec"), Key::rsa("rsa"), Key::ed25519("ed"), Key::es384("ec384")];
    let verifier = JwtVerifier::new(ISSUER, StaticKeys::new(jwks(&keys)));
    let server = Server::new(ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(verifier));
    for key in &keys {
        for algorithm in TokenAlgorithm::ALL {
            for other in &keys {
                let header = json!({ "alg": algorithm.as_str(), "kid": other.kid });
                let is_right = other.kid == key.kid
                    && (algorithm.as_str() == key.algorithm() || (key.kid == "rsa" && algorithm.as_str() == "PS256"));
                let token = key.sign_with(&header, &claims());
                assert_eq!(server.accepts(&token).await, is_right, "{algorithm} by {} as {}", key.kid, other.kid);
            }
        }
    }
}

#[tokio::test]
async fn algorithms_and_types_can_be_restricted() {
    let (key, rsa) = (Key::es256("a"), Key::rsa("b"));
    let verifier = JwtVerifier::new(ISSUER, StaticKeys::new(jwks([&key, &rsa])))
        .algorithms([TokenAlgorithm::Es256])
        .require_access_token_type();
    let server = Server::new(ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(verifier));
    assert!(server.accepts(&key.sign(&claims())).await);
    assert!(!server.accepts(&rsa.sign(&claims())).await);
    for typ in ["JWT", "dpop+jwt", "id_token+jwt", "logout+jwt", ""] {
        let header = json!({ "alg": "ES256", "kid": "a", "typ": typ });
        assert!(!server.accepts(&key.sign_with(&header, &claims())).await, "{typ}");
    }
    assert!(!server.accepts(&key.sign_with(&json!({ "alg": "ES256", "kid": "a" }), &claims())).await);
    // Other kinds of tokens are refused in any case.
    let header = json!({ "alg": "ES256", "kid": "a", "typ": "dpop+jwt" });
    assert!(!Server::new(resource(&key)).accepts(&key.sign_with(&header, &claims())).await);
}

// covers: AU-5
#[tokio::test]
async fn the_audience_is_checked_unless_that_is_switched_off() {
    let key = Key::es256("a");
    let token = |audience: Value| key.sign(&claims_with(json!({ "aud": audience })));
    let server = Server::new(resource(&key).audience("api://books"));
    assert!(server.accepts(&token(json!("api://books"))).await && server.accepts(&token(json!(RESOURCE))).await);
    assert!(!server.accepts(&token(json!("api://other"))).await);
    let careless = Server::new(resource(&key).accept_any_audience_dangerously());
    assert!(careless.accepts(&token(json!("api://other"))).await && careless.accepts(&token(Value::Null)).await);
    // The address of a server without a path has two forms.
    let verifier = || JwtVerifier::new(ISSUER, StaticKeys::new(jwks([&key])));
    for address in ["https://api.example.com", "https://api.example.com/", "HTTPS://API.example.com"] {
        let resource = ProtectedResource::new(address).authorization_server(ISSUER).verifier(verifier());
        let server = Server::new(resource);
        for audience in ["https://api.example.com", "https://api.example.com/"] {
            assert!(server.accepts(&token(json!(audience))).await, "{audience} at {address}");
        }
        assert!(!server.accepts(&token(json!("https://api.example.com.evil.example"))).await);
    }
    // A verifier that does not know the audience is refused, too.
    let resource = ProtectedResource::new(RESOURCE).authorization_server(ISSUER);
    let forgetful = Server::new(
        resource.verifier(verifier_fn(|_| async { Ok(AuthInfo::builder(Principal::new(None, "bob")).build()) })),
    );
    assert!(!forgetful.accepts("abc").await);
}

// covers: AU-4, AU-12
#[tokio::test]
async fn huge_tokens_are_refused_before_they_are_looked_at() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let verifier = verifier_fn(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Err(TokenError::invalid("unknown")) }
    });
    let resource = ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(verifier);
    let server = Server::new(resource);
    assert!(!server.accepts(&"a".repeat(16 * 1024 + 1)).await);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert!(!server.accepts(&"a".repeat(16 * 1024)).await);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let deep = format!("{}.{}.AAAA", encode(r#"{"alg":"ES256","kid":"a"}"#), encode("[".repeat(10_000)));
    let key = Key::es256("a");
    let server = Server::new(self::resource(&key));
    assert!(!server.accepts(&deep).await);
    let text = format!("{}.{}", encode(r#"{"alg":"ES256","kid":"a"}"#), encode("[".repeat(10_000)));
    assert!(!server.accepts(&format!("{text}.{}", key.sign_text(&text, "ES256"))).await);
}

// covers: AU-7, AU-12
#[tokio::test]
async fn credentials_in_other_places_and_several_headers_are_refused() {
    let key = Key::es256("a");
    let server = Server::new(resource(&key));
    let bearer = format!("Bearer {}", key.sign(&claims()));
    let malformed = |headers: Vec<(&'static str, String)>| {
        let server = server.clone();
        async move {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let answer = server.post(&headers).await;
            assert_eq!(answer.refusal(), (400, Some("invalid_request".to_owned())), "{headers:?}");
            assert!(server.recorder.take().is_empty());
        }
    };
    malformed(vec![("authorization", bearer.clone()), ("authorization", bearer.clone())]).await;
    malformed(vec![("authorization", bearer.clone()), ("authorization", "Basic YTpi".to_owned())]).await;
    malformed(vec![("authorization", "Bearer".to_owned())]).await;
    malformed(vec![("authorization", "Bearer a b".to_owned())]).await;
    malformed(vec![("authorization", format!("{bearer}, {bearer}"))]).await;
    for query in ["access_token=abc", "a=b&access_token=abc", "access_token"] {
        for with_header in [true, false] {
            let mut request = Request::post(format!("/mcp?{query}"));
            if with_header {
                request = request.header("authorization", &bearer);
            }
            let answer = server.send(request.body(()).unwrap()).await;
            assert_eq!(answer.refusal(), (400, Some("invalid_request".to_owned())), "{query}");
        }
    }
    let request = Request::post("/mcp?my_access_token=1").header("authorization", &bearer).body(()).unwrap();
    assert_eq!(server.send(request).await.status, 200);
}

/// What was verified is remembered, but not for longer than the token is valid, nor for longer than the verifier allows.
// covers: AU-6
#[tokio::test]
async fn remembered_tokens_expire() {
    let time = Arc::new(AtomicUsize::new(1_000_000));
    let clock = |time: &Arc<AtomicUsize>| {
        let time = Arc::clone(time);
        move || UnixTime::from_secs(time.load(Ordering::SeqCst) as u64)
    };
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let verifier = verifier_fn(move |token| {
        counted.fetch_add(1, Ordering::SeqCst);
        let expires_at = std::time::UNIX_EPOCH + Duration::from_secs(token.expose().parse().unwrap());
        async move {
            let auth = AuthInfo::builder(Principal::new(None, "bob")).audience([RESOURCE]);
            Ok(auth.expires_at(expires_at).build())
        }
    });
    let resource = ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(verifier);
    let server = Server::new(resource.clock(clock(&time)));
    for _ in 0..3 {
        assert!(server.accepts("1000100").await && server.accepts("2000000").await);
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2, "they were remembered");
    time.store(1_000_099, Ordering::SeqCst);
    assert!(server.accepts("1000100").await);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    time.store(1_000_100 + 60, Ordering::SeqCst);
    assert!(!server.accepts("1000100").await, "it has expired");
    assert!(server.accepts("2000000").await);
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    time.store(1_000_301, Ordering::SeqCst);
    assert!(server.accepts("2000000").await);
    assert_eq!(calls.load(Ordering::SeqCst), 4, "after five minutes it is verified again");
}

/// A token is recognised as a whole.
#[tokio::test]
async fn a_token_that_is_like_a_remembered_one_is_verified() {
    let key = Key::es256("a");
    let server = Server::new(resource(&key));
    let token = key.sign(&claims());
    assert!(server.accepts(&token).await);
    let mut other = token.clone();
    other.pop();
    assert!(!server.accepts(&other).await);
    assert!(!server.accepts(&format!("{token}A")).await);
    assert!(server.accepts(&token).await);
}

/// A valid token of a user whom the operator does not accept is refused, whether it is remembered or not.
// covers: AU-4
#[tokio::test]
async fn the_operator_decides_whose_tokens_are_accepted() {
    let key = Key::es256("a");
    let calls = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&calls);
    let server = Server::new(resource(&key).accept_only(move |token| {
        asked.fetch_add(1, Ordering::SeqCst);
        token.subject() == "alice" && token.claim::<bool>("email_verified") == Some(true)
    }));
    let token = |members: Value| key.sign(&claims_with(members));
    for _ in 0..2 {
        assert!(server.accepts(&token(json!({ "email_verified": true, "jti": 1 }))).await);
        for wrong in [json!({ "email_verified": true, "sub": "eve" }), json!({ "email_verified": "true" }), json!({})] {
            assert!(!server.accepts(&token(wrong.clone())).await, "{wrong}");
        }
    }
    assert!(calls.load(Ordering::SeqCst) >= 7);
    // It is asked about tokens that were verified, and only about these.
    let before = calls.load(Ordering::SeqCst);
    assert!(!server.accepts(&Key::es256("a").sign(&claims_with(json!({ "email_verified": true })))).await);
    assert_eq!(calls.load(Ordering::SeqCst), before);
}
