//! A protected server with its authorization server, in one process.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::extract::{Form, Query, Request, State};
use axum::http::header::{AUTHORIZATION, LOCATION, USER_AGENT, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use mcp_auth::authorizer::{LoginPrompt, PendingLogin, PromptError, RedirectCheck, async_trait};
use mcp_auth::client::OpenBrowser;
use mcp_auth::store::{MemoryStore, StoreKey, TokenStore as _};
use mcp_server::{NoArguments, Server, tool};
use mcp_transport_http::HttpService;
use serde_json::{Value, json};
use tokio::time::Instant;

/// The servers.
#[derive(Clone)]
pub struct Servers {
    pub url: String,
    state: Arc<Mutex<Ledger>>,
}

/// What the authorization server does, and has done.
pub struct Ledger {
    /// How long access tokens live.
    pub lifetime: Duration,
    /// What the token endpoint responds to a refresh, instead of tokens.
    pub refusal: Option<(StatusCode, Value)>,
    /// What the token endpoint responds to every request, instead of tokens.
    pub outage: Option<(StatusCode, Value)>,
    /// Whether errors repeat all that the request had.
    pub echoes: bool,
    /// Whether logins without a user get refresh tokens, which is unusual.
    pub refreshes_machines: bool,
    /// How long the token endpoint takes.
    pub delay: Duration,
    /// How long the revocation endpoint takes.
    pub revocation_delay: Duration,
    /// The scope that tokens need.
    pub needed_scope: Option<String>,
    /// The scope that the authorization server grants, instead of the one that was requested.
    pub granted_scope: Option<String>,
    /// Where the metadata of the resource is.
    pub metadata: MetadataPlace,
    /// The resource that the metadata names, instead of the server.
    pub resource: Option<String>,
    /// Whether tokens are bound to keys, with this nonce in proofs.
    pub dpop_nonce: Option<&'static str>,
    /// The proofs that requests with tokens had.
    pub proofs: Vec<String>,
    /// Called with the user agent of each refresh after the refresh token was replaced, before the response is sent.
    pub on_refresh: Option<OnRefresh>,
    pub metadata_requests: usize,
    pub token_requests: usize,
    pub logins: usize,
    pub refreshes: usize,
    pub reuses: usize,
    pub registrations: usize,
    pub calls: usize,
    pub refusals: usize,
    pub revoked: Vec<String>,
    /// The parameters of logins without a user.
    pub assertions: Vec<BTreeMap<String, String>>,
    /// All tokens, codes and secrets that were issued.
    pub secrets: Vec<String>,
    tokens: BTreeMap<String, AccessToken>,
    refresh_tokens: BTreeMap<String, RefreshToken>,
    ended_families: BTreeSet<u64>,
    codes: BTreeMap<String, (String, String)>,
    serial: u64,
}

/// Where the metadata of a resource is.
#[derive(Clone, Default)]
pub enum MetadataPlace {
    /// In a well-known place.
    #[default]
    WellKnown,
    /// In a place that only challenges name.
    Named,
    /// In the well-known place of another origin, which a redirect leads to. Challenges do not name it.
    Redirected(String),
}

/// A function of the user agent.
pub type OnRefresh = Arc<dyn Fn(&str) + Send + Sync>;

struct AccessToken {
    family: u64,
    scope: String,
    expires: Instant,
}

struct RefreshToken {
    family: u64,
    scope: String,
    is_used: bool,
}

impl Ledger {
    fn secret(&mut self, kind: &str) -> String {
        self.serial += 1;
        // Long enough that it cannot be found anywhere by chance.
        let secret = format!("{kind}-{:08}-hunter2", self.serial);
        self.secrets.push(secret.clone());
        secret
    }

    fn issue(&mut self, family: u64, scope: &str) -> Value {
        let scope = &*self.granted_scope.clone().unwrap_or_else(|| scope.to_owned());
        let (access, refresh) = (self.secret("access"), self.secret("refresh"));
        let expires = Instant::now() + self.lifetime;
        self.tokens.insert(access.clone(), AccessToken { family, scope: scope.to_owned(), expires });
        self.refresh_tokens.insert(refresh.clone(), RefreshToken { family, scope: scope.to_owned(), is_used: false });
        json!({
            "access_token": access, "token_type": self.token_type(), "expires_in": self.lifetime.as_secs(),
            "refresh_token": refresh, "scope": scope,
        })
    }

    const fn token_type(&self) -> &'static str {
        if self.dpop_nonce.is_some() { "DPoP" } else { "Bearer" }
    }

    /// Whether a proof has the nonce. The resource server's own tests check everything else.
    fn is_proven(&self, headers: &HeaderMap) -> bool {
        let Some(nonce) = self.dpop_nonce else { return true };
        let proof = headers.get("dpop").and_then(|proof| proof.to_str().ok());
        proof.is_some_and(|proof| claims(proof)["nonce"] == nonce)
    }

    /// Makes the token endpoint slow, and tokens long-lived.
    pub fn slow_down(&mut self, delay: Duration) {
        (self.lifetime, self.delay) = (Duration::from_secs(3600), delay);
    }

    /// Ends all logins.
    pub fn end_logins(&mut self) {
        let families: BTreeSet<_> = self.refresh_tokens.values().map(|token| token.family).collect();
        self.ended_families.extend(families);
    }

    /// Ends all access tokens.
    pub fn end_access_tokens(&mut self) {
        self.tokens.clear();
    }
}

impl Servers {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(Ledger {
            lifetime: Duration::from_secs(3600),
            refusal: None,
            outage: None,
            echoes: false,
            refreshes_machines: false,
            delay: Duration::ZERO,
            revocation_delay: Duration::ZERO,
            needed_scope: None,
            granted_scope: None,
            metadata: MetadataPlace::default(),
            resource: None,
            dpop_nonce: None,
            proofs: Vec::new(),
            on_refresh: None,
            metadata_requests: 0,
            token_requests: 0,
            logins: 0,
            refreshes: 0,
            reuses: 0,
            registrations: 0,
            calls: 0,
            refusals: 0,
            revoked: Vec::new(),
            assertions: Vec::new(),
            secrets: Vec::new(),
            tokens: BTreeMap::new(),
            refresh_tokens: BTreeMap::new(),
            ended_families: BTreeSet::new(),
            codes: BTreeMap::new(),
            serial: 0,
        }));
        let servers = Self { url: format!("http://{address}"), state };
        let echo = tool("ping", async |_, _: NoArguments| "pong");
        let service = HttpService::new(Server::builder("protected", "1").tool(echo).build().unwrap());
        let app = Router::new()
            .route_service("/mcp", service)
            .route_layer(from_fn_with_state(servers.clone(), protect))
            .route(WELL_KNOWN, get(resource_metadata))
            .route(NAMED, get(resource_metadata))
            .route("/.well-known/oauth-authorization-server", get(server_metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/device", post(device))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .with_state(servers.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        servers
    }

    pub fn server(&self) -> String {
        format!("{}/mcp", self.url)
    }

    /// Returns how many logins and registrations there were.
    pub fn counts(&self) -> (usize, usize) {
        let ledger = self.ledger();
        (ledger.logins, ledger.registrations)
    }

    /// Returns all tokens, codes and secrets that were issued.
    pub fn secrets(&self) -> Vec<String> {
        self.ledger().secrets.clone()
    }

    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.state.lock().unwrap()
    }
}

/// Returns the resource that the tokens of a store are for.
pub async fn saved_resource(store: &MemoryStore, servers: &Servers) -> Option<String> {
    let record = store.load(&StoreKey::login(&servers.server(), None)).await.unwrap()?;
    let record: Value = serde_json::from_str(record.expose()).unwrap();
    record["grant"]["resource"].as_str().map(str::to_owned)
}

/// Returns the claims of a token, unverified.
pub fn claims(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

async fn protect(State(servers): State<Servers>, request: Request, next: Next) -> Response {
    let token = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = token.and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("DPoP ")));
    let refusal = {
        let mut ledger = servers.ledger();
        let metadata = match &ledger.metadata {
            MetadataPlace::WellKnown => format!("resource_metadata=\"{}{WELL_KNOWN}\"", servers.url),
            MetadataPlace::Named => format!("resource_metadata=\"{}{NAMED}\"", servers.url),
            MetadataPlace::Redirected(_) => "realm=\"protected\"".to_owned(),
        };
        let known = token.and_then(|token| ledger.tokens.get(token));
        let known =
            known.filter(|token| token.expires > Instant::now() && !ledger.ended_families.contains(&token.family));
        match (known, &ledger.needed_scope) {
            (Some(_), _) if !ledger.is_proven(request.headers()) => {
                let nonce = ledger.dpop_nonce.unwrap_or_default();
                let challenge = [(WWW_AUTHENTICATE.as_str(), "DPoP error=\"use_dpop_nonce\""), ("dpop-nonce", nonce)];
                return (StatusCode::UNAUTHORIZED, challenge).into_response();
            }
            (None, _) => Some((StatusCode::UNAUTHORIZED, format!("{} {metadata}", ledger.token_type()))),
            (Some(token), Some(needed)) if !token.scope.split(' ').any(|scope| scope == needed) => {
                let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\", {metadata}");
                Some((StatusCode::FORBIDDEN, challenge))
            }
            _ => None,
        }
        .inspect(|_| ledger.refusals += 1)
    };
    if let Some((status, challenge)) = refusal {
        return (status, [(WWW_AUTHENTICATE, challenge)]).into_response();
    }
    let proof = request.headers().get("dpop").map(|proof| proof.to_str().unwrap().to_owned());
    {
        let mut ledger = servers.ledger();
        ledger.calls += 1;
        ledger.proofs.extend(proof);
    }
    next.run(request).await
}

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource/mcp";
const NAMED: &str = "/metadata";

async fn resource_metadata(State(servers): State<Servers>, uri: Uri) -> Response {
    let mut ledger = servers.ledger();
    ledger.metadata_requests += 1;
    let resource = ledger.resource.clone().unwrap_or_else(|| servers.server());
    match (&ledger.metadata, uri.path()) {
        (MetadataPlace::WellKnown, WELL_KNOWN) | (MetadataPlace::Named, NAMED) => {
            Json(json!({ "resource": resource, "authorization_servers": [servers.url] })).into_response()
        }
        (MetadataPlace::Redirected(origin), WELL_KNOWN) => {
            (StatusCode::FOUND, [(LOCATION, format!("{origin}{WELL_KNOWN}"))]).into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn server_metadata(State(servers): State<Servers>) -> Json<Value> {
    let url = &servers.url;
    Json(json!({
        "issuer": url,
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": format!("{url}/token"),
        "registration_endpoint": format!("{url}/register"),
        "revocation_endpoint": format!("{url}/revoke"),
        "device_authorization_endpoint": format!("{url}/device"),
        "response_types_supported": ["code"],
        "grant_types_supported": [
            "authorization_code", "refresh_token", "client_credentials", "urn:ietf:params:oauth:grant-type:device_code",
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
        ],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "private_key_jwt"],
        "authorization_response_iss_parameter_supported": true,
        "dpop_signing_alg_values_supported": ["ES256"],
    }))
}

async fn register(State(servers): State<Servers>, Json(mut client): Json<Value>) -> (StatusCode, Json<Value>) {
    let mut ledger = servers.ledger();
    ledger.registrations += 1;
    client["client_id"] = json!(format!("client-{}", ledger.registrations));
    (StatusCode::CREATED, Json(client))
}

type Parameters = BTreeMap<String, String>;

async fn authorize(State(servers): State<Servers>, Query(parameters): Query<Parameters>) -> Response {
    let mut ledger = servers.ledger();
    let code = ledger.secret("code");
    let scope = parameters.get("scope").cloned().unwrap_or_default();
    ledger.codes.insert(code.clone(), (parameters["code_challenge"].clone(), scope));
    let mut location = url::Url::parse(&parameters["redirect_uri"]).unwrap();
    location
        .query_pairs_mut()
        .append_pair("code", &code)
        .append_pair("state", &parameters["state"])
        .append_pair("iss", &servers.url);
    (StatusCode::FOUND, [(LOCATION, location.as_str())]).into_response()
}

async fn device(State(servers): State<Servers>) -> Json<Value> {
    let code = servers.ledger().secret("device");
    let uri = format!("{}/enter", servers.url);
    Json(json!({
        "device_code": code, "user_code": "ABCD-EFGH", "verification_uri": uri, "expires_in": 60, "interval": 1,
    }))
}

fn refused(error: &str) -> (StatusCode, Json<Value>) {
    (StatusCode::BAD_REQUEST, Json(json!({ "error": error })))
}

async fn token(State(servers): State<Servers>, headers: HeaderMap, Form(parameters): Form<Parameters>) -> Response {
    let nonce = {
        let ledger = servers.ledger();
        ledger.dpop_nonce.filter(|_| !ledger.is_proven(&headers))
    };
    servers.ledger().token_requests += 1;
    if servers.ledger().echoes {
        let description = format!("{parameters:?} {headers:?} {:?}", servers.secrets());
        let body = json!({ "error": description, "error_description": description });
        return (StatusCode::BAD_REQUEST, Json(body)).into_response();
    }
    let outage = servers.ledger().outage.clone();
    if let Some((status, body)) = outage {
        return (status, Json(body)).into_response();
    }
    match nonce {
        Some(nonce) => ([("dpop-nonce", nonce)], refused("use_dpop_nonce")).into_response(),
        None => issue(&servers, &headers, &parameters).await.into_response(),
    }
}

async fn issue(servers: &Servers, headers: &HeaderMap, parameters: &Parameters) -> (StatusCode, Json<Value>) {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default().to_owned();
    let parameter = |name: &str| parameters.get(name).map(String::as_str).unwrap_or_default();
    let delay = servers.ledger().delay;
    tokio::time::sleep(delay).await;
    let (response, on_refresh) = {
        let mut ledger = servers.ledger();
        match parameter("grant_type") {
            "authorization_code" => {
                let Some((challenge, scope)) = ledger.codes.remove(parameter("code")) else {
                    return refused("invalid_grant");
                };
                let digest =
                    aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, parameter("code_verifier").as_bytes());
                if BASE64_URL_SAFE_NO_PAD.encode(digest) != challenge {
                    return refused("invalid_grant");
                }
                ledger.logins += 1;
                let family = ledger.serial;
                (ledger.issue(family, &scope), None)
            }
            "refresh_token" => {
                ledger.refreshes += 1;
                if let Some((status, body)) = ledger.refusal.clone() {
                    return (status, Json(body));
                }
                let Some(known) = ledger.refresh_tokens.get_mut(parameter("refresh_token")) else {
                    return refused("invalid_grant");
                };
                let (family, scope, was_used) = (known.family, known.scope.clone(), known.is_used);
                known.is_used = true;
                if was_used {
                    ledger.reuses += 1;
                    ledger.ended_families.insert(family);
                }
                if ledger.ended_families.contains(&family) {
                    return refused("invalid_grant");
                }
                (ledger.issue(family, &scope), ledger.on_refresh.clone())
            }
            "client_credentials" | "urn:ietf:params:oauth:grant-type:jwt-bearer" => {
                ledger.logins += 1;
                ledger.assertions.push(parameters.clone());
                let family = ledger.serial;
                let mut tokens = ledger.issue(family, parameter("scope"));
                if !ledger.refreshes_machines {
                    tokens.as_object_mut().unwrap().remove("refresh_token");
                }
                (tokens, None)
            }
            "urn:ietf:params:oauth:grant-type:device_code" => {
                ledger.logins += 1;
                let family = ledger.serial;
                (ledger.issue(family, parameter("scope")), None)
            }
            _ => return refused("unsupported_grant_type"),
        }
    };
    if let Some(on_refresh) = on_refresh {
        on_refresh(&agent);
    }
    (StatusCode::OK, Json(response))
}

async fn revoke(State(servers): State<Servers>, Form(parameters): Form<Parameters>) -> StatusCode {
    let delay = servers.ledger().revocation_delay;
    tokio::time::sleep(delay).await;
    servers.ledger().revoked.push(parameters["token_type_hint"].clone());
    StatusCode::OK
}

/// A user who agrees at once, in a browser that is not shown.
#[derive(Clone, Default)]
pub struct Agreeing {
    /// How long the user takes.
    pub delay: Duration,
    pub asked: Arc<Mutex<usize>>,
}

#[async_trait]
impl LoginPrompt for Agreeing {
    async fn begin(&self, _: Option<&str>) -> Result<Box<dyn PendingLogin>, PromptError> {
        *self.asked.lock().unwrap() += 1;
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl PendingLogin for Agreeing {
    fn redirect_uri(&self) -> &'static str {
        "http://127.0.0.1:33000/callback"
    }

    async fn authorize(&mut self, request: &OpenBrowser, check: RedirectCheck<'_>) -> Result<(), PromptError> {
        tokio::time::sleep(self.delay).await;
        let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let response = browser.get(&request.url).send().await;
        let response = response.map_err(|error| PromptError::failed(error.to_string()))?;
        let location = response.headers()[LOCATION].to_str().unwrap().to_owned();
        check(&location).map_err(|error| PromptError::failed(error.to_string()))
    }
}
