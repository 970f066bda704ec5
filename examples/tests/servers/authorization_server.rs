//! An authorization server whose user agrees to everything at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use axum::extract::{Form, Query, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use mcp::serde_json::{Value, json};
use tokio::net::TcpListener;

/// An authorization server, with a key that signs access tokens.
#[derive(Clone)]
pub(crate) struct AuthorizationServer {
    pub(crate) issuer: String,
    key: Arc<EcdsaKeyPair>,
    state: Arc<Mutex<Issued>>,
}

/// What was issued.
#[derive(Default)]
struct Issued {
    /// The parameters of the logins that codes and refresh tokens belong to.
    logins: BTreeMap<String, Parameters>,
    revoked: usize,
}

type Parameters = BTreeMap<String, String>;
type Refusal = (StatusCode, Json<Value>);

fn encode(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl AuthorizationServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let issuer = format!("http://{}", listener.local_addr().expect("an address"));
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let server = Self { issuer, key: Arc::new(key), state: Arc::default() };
        let app = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/keys", get(keys))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/device", post(device))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        server
    }

    /// Returns how many tokens were revoked.
    pub(crate) fn revoked(&self) -> usize {
        self.state.lock().expect("no panic").revoked
    }

    /// Issues an access token for a resource.
    pub(crate) fn access_token(&self, resource: &str, scope: &str, lifetime: Duration) -> String {
        #[expect(clippy::disallowed_methods, reason = "tokens expire by the wall clock")]
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time");
        let header = json!({ "alg": "ES256", "typ": "at+jwt", "kid": "1" });
        let claims = json!({
            "iss": self.issuer, "aud": resource, "sub": "ann", "client_id": "example", "scope": scope,
            "iat": now.as_secs(), "exp": (now + lifetime).as_secs(), "jti": now.as_nanos().to_string(),
        });
        let text = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = self.key.sign(&SystemRandom::new(), text.as_bytes()).expect("a signature");
        format!("{text}.{}", encode(signature))
    }

    /// Keeps the parameters of a login, under a code or a refresh token.
    fn keep(&self, parameters: Parameters) -> String {
        let mut issued = self.state.lock().expect("no panic");
        let code = format!("code-{}", issued.logins.len());
        issued.logins.insert(code.clone(), parameters);
        code
    }
}

async fn metadata(State(server): State<AuthorizationServer>) -> Json<Value> {
    let at = |path: &str| format!("{}/{path}", server.issuer);
    Json(json!({
        "issuer": server.issuer,
        "authorization_endpoint": at("authorize"),
        "token_endpoint": at("token"),
        "registration_endpoint": at("register"),
        "revocation_endpoint": at("revoke"),
        "device_authorization_endpoint": at("device"),
        "jwks_uri": at("keys"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token", DEVICE_CODE],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    }))
}

const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";

async fn keys(State(server): State<AuthorizationServer>) -> Json<Value> {
    // The first byte says that the point is not compressed.
    let (x, y) = server.key.public_key().as_ref()[1..].split_at(32);
    Json(json!({ "keys": [{ "kty": "EC", "crv": "P-256", "kid": "1", "use": "sig", "x": encode(x), "y": encode(y) }] }))
}

async fn register(Json(mut client): Json<Value>) -> (StatusCode, Json<Value>) {
    client["client_id"] = json!("example");
    (StatusCode::CREATED, Json(client))
}

async fn authorize(
    State(server): State<AuthorizationServer>,
    Query(parameters): Query<Parameters>,
) -> (StatusCode, [(axum::http::HeaderName, String); 1]) {
    let (redirect_uri, state) = (parameters["redirect_uri"].clone(), parameters["state"].clone());
    let code = server.keep(parameters);
    // Neither the code nor the state has characters that need encoding, and no browser minds those of the issuer.
    (StatusCode::FOUND, [(LOCATION, format!("{redirect_uri}?code={code}&state={state}&iss={}", server.issuer))])
}

async fn device(State(server): State<AuthorizationServer>, Form(parameters): Form<Parameters>) -> Json<Value> {
    let uri = format!("{}/enter", server.issuer);
    let code = server.keep(parameters);
    Json(json!({
        "device_code": code, "user_code": "ABCD-EFGH", "verification_uri": uri, "expires_in": 60, "interval": 1,
    }))
}

async fn token(
    State(server): State<AuthorizationServer>,
    Form(parameters): Form<Parameters>,
) -> Result<Json<Value>, Refusal> {
    let refused = || (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" })));
    let code = ["code", "device_code", "refresh_token"].iter().find_map(|name| parameters.get(*name));
    let login = code.and_then(|code| server.state.lock().expect("no panic").logins.remove(code)).ok_or_else(refused)?;
    if parameters["grant_type"] == "authorization_code"
        && encode(digest(&SHA256, parameters["code_verifier"].as_bytes())) != login["code_challenge"]
    {
        return Err(refused());
    }
    let scope = login.get("scope").cloned().unwrap_or_default();
    let access_token = server.access_token(&login["resource"], &scope, Duration::from_secs(3600));
    Ok(Json(json!({
        "access_token": access_token, "token_type": "Bearer", "expires_in": 3600, "scope": scope,
        "refresh_token": server.keep(login),
    })))
}

async fn revoke(State(server): State<AuthorizationServer>) -> StatusCode {
    server.state.lock().expect("no panic").revoked += 1;
    StatusCode::OK
}
