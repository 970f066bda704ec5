use mcp_auth::client::{DpopKey, HttpResponse, LoginError, TokenType};
use serde_json::{Value, json};

use crate::script::{Outcome, Script, error_response, header, json_response, token_response};

const TOKEN: &str = "https://as.example/token";

fn bound() -> Value {
    let mut body = token_response();
    body["token_type"] = json!("DPoP");
    body
}

fn key() -> DpopKey {
    DpopKey::new("ES256", "thumbprint-1")
}

fn script(key: DpopKey) -> Script {
    Script::new()
        .server(|metadata| metadata["dpop_signing_alg_values_supported"] = json!(["ES256", "EdDSA"]))
        .configure(|config| config.dpop(key))
        .json(TOKEN, bound())
}

// covers: EX-5
#[test]
fn a_token_request_says_which_proof_it_needs() {
    let outcome = script(key())
        .server(|metadata| {
            metadata["dpop_signing_alg_values_supported"] = json!(["ES256"]);
            metadata["token_endpoint"] = json!("https://as.example/token?tenant=1");
        })
        .json("https://as.example/token?tenant=1", bound())
        .run();
    assert_eq!(outcome.grant().tokens.token_type, TokenType::Dpop);
    let mut request = outcome.request_to("https://as.example/token?tenant=1").clone();
    let proof = request.dpop_proof.clone().unwrap();
    assert_eq!((proof.method.as_str(), &*proof.url, proof.nonce), ("POST", TOKEN, None));
    request.attach_dpop_proof("proof-1");
    request.attach_dpop_proof("proof-2");
    assert_eq!(header(&request, "dpop"), Some("proof-1"));
    assert_eq!(request.headers.iter().filter(|(name, _)| *name == "dpop").count(), 1);
    assert_eq!(outcome.page().get("dpop_jkt"), Some("thumbprint-1"), "the code is bound to the key, too");
}

#[test]
fn proofs_are_used_where_they_are_supported_or_demanded() {
    let used = |outcome: &Outcome| outcome.request_to(TOKEN).dpop_proof.is_some();
    let unsupported = || Script::new().configure(|config| config.dpop(key()));
    let outcome = unsupported().run();
    assert!(!used(&outcome));
    assert_eq!(outcome.page().get("dpop_jkt"), None);
    assert!(used(&unsupported().json(TOKEN, bound()).challenge("DPoP algs=\"ES256\"").run()));
    assert!(!used(&unsupported().challenge("DPoP, Bearer").run()), "either is good");
    let demanded =
        |script: Script| script.resource(|metadata| metadata["dpop_bound_access_tokens_required"] = json!(true));
    assert!(used(&demanded(unsupported().json(TOKEN, bound())).run()));
    assert!(matches!(demanded(Script::new()).run().error(), LoginError::Dpop(_)), "there is no key");
    assert!(matches!(Script::new().challenge("DPoP").run().error(), LoginError::Dpop(_)));
    let other = |key| script(key).server(|metadata| metadata["dpop_signing_alg_values_supported"] = json!(["RS256"]));
    assert!(matches!(other(key().required()).run().error(), LoginError::Dpop(_)));
    assert!(!used(&other(key()).json(TOKEN, token_response()).run()));
}

#[test]
fn a_token_that_is_not_bound_is_refused_if_it_has_to_be() {
    let bearer = |key| script(key).json(TOKEN, token_response());
    assert_eq!(bearer(key()).run().grant().tokens.token_type, TokenType::Bearer);
    assert!(matches!(bearer(key().required()).run().error(), LoginError::Dpop(_)));
    assert!(matches!(bearer(key()).challenge("DPoP").run().error(), LoginError::Dpop(_)));
}

fn nonce(nonce: &str) -> HttpResponse {
    error_response(400, "use_dpop_nonce").dpop_nonce(nonce)
}

// covers: EX-5
#[test]
fn a_request_is_repeated_once_for_each_nonce() {
    let outcome = script(key()).respond_in_turn(TOKEN, [nonce("n-1"), nonce("n-2"), json_response(&bound())]).run();
    outcome.grant();
    let nonces: Vec<_> =
        outcome.requests_to(TOKEN).iter().map(|request| request.dpop_proof.clone().unwrap().nonce).collect();
    assert_eq!(nonces, [None, Some("n-1".to_owned()), Some("n-2".to_owned())]);
    let bodies: Vec<_> = outcome.requests_to(TOKEN).iter().map(|request| request.body.clone()).collect();
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]), "the same code");
}

#[test]
fn a_server_that_refuses_its_own_nonces_cannot_keep_a_client_busy() {
    let outcome = script(key()).respond(TOKEN, nonce("same")).run();
    assert_eq!(outcome.requests_to(TOKEN).len(), 2);
    assert!(matches!(outcome.error(), LoginError::Dpop(_)));
    let mut count = 0;
    let outcome = script(key())
        .handle(TOKEN, move |_| {
            count += 1;
            Ok(nonce(&count.to_string()))
        })
        .run();
    assert_eq!(outcome.requests_to(TOKEN).len(), 4);
    assert!(matches!(outcome.error(), LoginError::Dpop(_)));
    let outcome = script(key()).respond(TOKEN, error_response(400, "use_dpop_nonce")).run();
    assert_eq!(outcome.requests_to(TOKEN).len(), 1, "without a nonce there is nothing to repeat");
}
