//! Nothing that is written anywhere has a token.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use mcp_auth::server::{JwtVerifier, ProtectedResource, StaticKeys};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::issuer::{ISSUER, Key, RESOURCE, claims, claims_with, jwks};
use crate::protected::Server;

/// Writes all that is traced into a text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Visit for &Log {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = writeln!(self.0.lock().expect("a valid value"), "{field}={value:?}");
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut &*self);
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut &*self);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

// covers: AU-14
#[tokio::test]
async fn tokens_are_in_no_log_and_no_response() {
    let key = Key::es256("a");
    let log = Log::default();
    // With a single subscriber, a test on another thread, which has none, would decide that an event is of no interest.
    let _other = tracing::Dispatch::new(Log::default());
    let _guard = tracing::subscriber::set_default(log.clone());
    let verifier = JwtVerifier::new(ISSUER, StaticKeys::new(jwks([&key])));
    let resource = ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(verifier);
    let mut shown = format!("{resource:?}");
    let server = Server::new(resource.scopes_required(["books:read"]));
    let other = Key::es256("b");
    let tokens = [
        key.sign(&claims()),
        other.sign(&claims()),
        key.sign(&claims_with(json!({ "exp": 1 }))),
        key.sign(&claims_with(json!({ "scope": "hunter2-scope" }))),
        key.sign(&claims_with(json!({ "cnf": { "jkt": key.thumbprint() } }))),
        "hunter2".to_owned(),
        "hunter2 hunter2".to_owned(),
    ];
    for token in &tokens {
        for scheme in ["Bearer", "DPoP", "Basic"] {
            let answer = server.post(&[("authorization", &format!("{scheme} {token}")), ("dpop", token)]).await;
            let _ = write!(shown, "{answer:?}");
            for (_, auth) in server.recorder.take() {
                let _ = write!(shown, "{auth:?}");
            }
        }
    }
    shown.push_str(&log.0.lock().unwrap());
    assert!(shown.contains("its key is unknown"), "reasons are logged");
    for token in tokens {
        for part in token.split('.') {
            assert!(!shown.contains(part), "{part} in {shown}");
        }
    }
}
