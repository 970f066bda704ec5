//! A driver that plays the servers and the user of a flow.

use std::collections::BTreeMap;

use mcp_auth::client::{
    Action, AssertionRequest, DeviceCode, Flow, Grant, HttpRequest, HttpResponse, Login, LoginConfig, LoginError,
    OpenBrowser, PreRegistered, RequestError, Save, Stored,
};
use mcp_auth::{Challenge, Secret, UnixTime};
use serde_json::{Value, json};
use url::Url;

pub(crate) const SERVER: &str = "https://mcp.example/mcp";
pub(crate) const ISSUER: &str = "https://as.example";
pub(crate) const REDIRECT: &str = "http://127.0.0.1:3000/callback";
pub(crate) const NOW: UnixTime = UnixTime::from_secs(1_000_000);

/// What a server does with a request.
pub(crate) type Handler = Box<dyn FnMut(&HttpRequest) -> Result<HttpResponse, RequestError>>;
/// What a user does with a page, as the address that the browser is sent back to.
pub(crate) type User = Box<dyn FnMut(&Url) -> String>;

/// The servers and the user of a flow. Addresses that are not set respond with 404.
pub(crate) struct Script {
    pub(crate) config: LoginConfig,
    pub(crate) stored: Stored,
    pub(crate) challenges: Vec<Challenge>,
    pub(crate) routes: BTreeMap<String, Handler>,
    pub(crate) user: User,
    pub(crate) client: Option<PreRegistered>,
    pub(crate) assertion: Option<&'static str>,
}

/// What happened in a flow.
pub(crate) struct Outcome {
    pub(crate) result: Result<Box<Grant>, LoginError>,
    pub(crate) requests: Vec<HttpRequest>,
    pub(crate) pages: Vec<OpenBrowser>,
    pub(crate) codes: Vec<DeviceCode>,
    pub(crate) saved: Vec<Save>,
    pub(crate) asked: Vec<String>,
    pub(crate) assertions: Vec<AssertionRequest>,
    pub(crate) now: UnixTime,
}

pub(crate) fn json_response(body: &Value) -> HttpResponse {
    HttpResponse::new(200, body.to_string())
}

pub(crate) fn error_response(status: u16, error: &str) -> HttpResponse {
    HttpResponse::new(status, json!({ "error": error }).to_string())
}

pub(crate) fn resource_metadata() -> Value {
    json!({ "resource": SERVER, "authorization_servers": [ISSUER] })
}

pub(crate) fn server_metadata() -> Value {
    json!({
        "issuer": ISSUER,
        "authorization_endpoint": "https://as.example/authorize",
        "token_endpoint": "https://as.example/token",
        "registration_endpoint": "https://as.example/register",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    })
}

pub(crate) fn token_response() -> Value {
    json!({ "access_token": "access-1", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "refresh-1" })
}

pub(crate) fn code_flow() -> Flow {
    Flow::AuthorizationCode { redirect_uri: REDIRECT.to_owned() }
}

impl Script {
    /// A server whose metadata is at the well-known address, an authorization server that registers clients, and a user who agrees.
    pub(crate) fn new() -> Self {
        Self::with_flow(code_flow())
    }

    pub(crate) fn with_flow(flow: Flow) -> Self {
        Self::bare(LoginConfig::new(SERVER, flow).unwrap())
            .json("https://mcp.example/.well-known/oauth-protected-resource/mcp", resource_metadata())
            .json("https://as.example/.well-known/oauth-authorization-server", server_metadata())
            .json("https://as.example/register", json!({ "client_id": "client-1" }))
            .json("https://as.example/token", token_response())
    }

    /// Servers that have nothing.
    pub(crate) fn bare(config: LoginConfig) -> Self {
        Self {
            config,
            stored: Stored::default(),
            challenges: Vec::new(),
            routes: BTreeMap::new(),
            user: Box::new(|page| redirect_of(page, &[("code", "code-1"), ("iss", ISSUER)])),
            client: None,
            assertion: None,
        }
    }

    pub(crate) fn configure(mut self, configure: impl FnOnce(LoginConfig) -> LoginConfig) -> Self {
        self.config = configure(self.config);
        self
    }

    pub(crate) fn challenge(mut self, header: &str) -> Self {
        self.challenges = Challenge::parse_all([header]);
        self
    }

    pub(crate) fn handle(
        mut self,
        url: &str,
        handler: impl FnMut(&HttpRequest) -> Result<HttpResponse, RequestError> + 'static,
    ) -> Self {
        self.routes.insert(url.to_owned(), Box::new(handler));
        self
    }

    pub(crate) fn respond(self, url: &str, response: HttpResponse) -> Self {
        self.handle(url, move |_| Ok(response.clone()))
    }

    /// Responds with each of these in turn, and with the last one for ever.
    pub(crate) fn respond_in_turn(self, url: &str, responses: impl IntoIterator<Item = HttpResponse>) -> Self {
        let mut responses: Vec<_> = responses.into_iter().collect();
        responses.reverse();
        self.handle(url, move |_| Ok(if responses.len() > 1 { responses.pop().unwrap() } else { responses[0].clone() }))
    }

    pub(crate) fn json(self, url: &str, body: Value) -> Self {
        self.respond(url, json_response(&body))
    }

    /// Changes the metadata of the authorization server.
    pub(crate) fn server(self, change: impl FnOnce(&mut Value)) -> Self {
        let mut metadata = server_metadata();
        change(&mut metadata);
        self.json("https://as.example/.well-known/oauth-authorization-server", metadata)
    }

    /// Changes the metadata of the resource.
    pub(crate) fn resource(self, change: impl FnOnce(&mut Value)) -> Self {
        let mut metadata = resource_metadata();
        change(&mut metadata);
        self.json("https://mcp.example/.well-known/oauth-protected-resource/mcp", metadata)
    }

    pub(crate) fn user(mut self, user: impl FnMut(&Url) -> String + 'static) -> Self {
        self.user = Box::new(user);
        self
    }

    pub(crate) fn run(mut self) -> Outcome {
        let mut random = [0; Login::RANDOM_BYTES];
        for (index, byte) in random.iter_mut().enumerate() {
            *byte = u8::try_from(index).unwrap();
        }
        let mut login = Login::new(self.config.clone(), self.stored.clone(), &self.challenges, random);
        let mut outcome = Outcome {
            result: Err(LoginError::Declined),
            requests: Vec::new(),
            pages: Vec::new(),
            codes: Vec::new(),
            saved: Vec::new(),
            asked: Vec::new(),
            assertions: Vec::new(),
            now: NOW,
        };
        for _ in 0..1000 {
            match login.poll(outcome.now) {
                Action::Fetch(request) => match self.send(&request, &mut outcome) {
                    Ok(response) => login.handle_response(outcome.now, response),
                    Err(error) => login.handle_failure(outcome.now, error),
                },
                Action::OpenBrowser(page) => {
                    let redirect = (self.user)(&Url::parse(&page.url).unwrap());
                    outcome.pages.push(page);
                    if login.handle_redirect(&redirect).is_err() {
                        login.handle_declined();
                    }
                }
                Action::ShowDeviceCode(code) => outcome.codes.push(code),
                Action::WaitUntil(time) => {
                    assert!(time > outcome.now, "a wait that is over");
                    outcome.now = time;
                }
                Action::AskForClient { issuer } => {
                    outcome.asked.push(issuer);
                    match self.client.take() {
                        Some(client) => login.handle_client(&client),
                        None => login.handle_declined(),
                    }
                }
                Action::SupplyAssertion(wanted) => {
                    outcome.assertions.push(wanted);
                    match self.assertion {
                        Some(assertion) => login.handle_assertion(Secret::new(assertion)),
                        None => login.handle_declined(),
                    }
                }
                Action::Save(change) => {
                    outcome.saved.push(change);
                    assert!(matches!(login.poll(outcome.now), Action::Idle), "nothing happens before it is saved");
                    login.handle_saved();
                }
                Action::Done(grant) => {
                    outcome.result = Ok(grant);
                    assert!(matches!(login.poll(outcome.now), Action::Idle));
                    return outcome;
                }
                Action::Failed(error) => {
                    outcome.result = Err(error);
                    assert!(matches!(login.poll(outcome.now), Action::Idle));
                    return outcome;
                }
                other => panic!("the login does not go on: {other:?}"),
            }
        }
        panic!("the login does not end");
    }

    fn send(&mut self, request: &HttpRequest, outcome: &mut Outcome) -> Result<HttpResponse, RequestError> {
        outcome.requests.push(request.clone());
        match self.routes.get_mut(&request.url) {
            Some(handler) => handler(request),
            None => Ok(HttpResponse::new(404, "not found")),
        }
    }
}

impl Outcome {
    pub(crate) fn urls(&self) -> Vec<&str> {
        self.requests.iter().map(|request| &*request.url).collect()
    }

    pub(crate) fn requests_to(&self, url: &str) -> Vec<&HttpRequest> {
        self.requests.iter().filter(|request| request.url == url).collect()
    }

    pub(crate) fn request_to(&self, url: &str) -> &HttpRequest {
        let requests = self.requests_to(url);
        assert_eq!(requests.len(), 1, "requests to {url} among {:?}", self.urls());
        requests[0]
    }

    pub(crate) fn page(&self) -> Parameters {
        assert_eq!(self.pages.len(), 1);
        Parameters::of_query(&self.pages[0].url)
    }

    pub(crate) fn grant(&self) -> &Grant {
        self.result.as_ref().expect("the login succeeds")
    }

    pub(crate) fn error(&self) -> &LoginError {
        self.result.as_ref().expect_err("the login fails")
    }

    pub(crate) fn registrations(&self) -> Vec<&mcp_auth::client::Registration> {
        let registrations = self
            .saved
            .iter()
            .filter_map(|change| if let Save::Registration(saved) = change { Some(saved) } else { None });
        registrations.collect()
    }
}

/// Parameters of a query or a form.
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(crate) fn of_query(url: &str) -> Self {
        Self(Url::parse(url).unwrap().query_pairs().into_owned().collect())
    }

    pub(crate) fn of_body(request: &HttpRequest) -> Self {
        let body = request.body.as_ref().map(Secret::expose).unwrap_or_default();
        Self(url::form_urlencoded::parse(body.as_bytes()).into_owned().collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut values = self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| &**value);
        let value = values.next();
        assert_eq!(values.next(), None, "{name} occurs twice");
        value
    }
}

pub(crate) fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    request.headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.expose())
}

/// Returns the address that the browser is sent back to with the state of the page and these parameters.
pub(crate) fn redirect_of(page: &Url, parameters: &[(&str, &str)]) -> String {
    let query: BTreeMap<_, _> = page.query_pairs().into_owned().collect();
    let mut redirect = Url::parse(&query["redirect_uri"]).unwrap();
    redirect.query_pairs_mut().append_pair("state", &query["state"]).extend_pairs(parameters);
    redirect.into()
}
