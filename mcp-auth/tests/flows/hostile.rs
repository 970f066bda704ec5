//! Random input to all that reads what a peer sends.

use mcp_auth::Challenge;
use mcp_auth::client::{
    Action, Flow, HttpResponse, IdentityProvider, Login, LoginConfig, PreRegistered, RequestError, Stored,
};
use mcp_auth::metadata::{Address, AuthorizationServerMetadata, ProtectedResourceMetadata};

use crate::script::{NOW, SERVER, Script, code_flow, resource_metadata, server_metadata, token_response};

/// A small generator with a period that is long enough (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// Changes a text in some places.
    fn mutate(&mut self, text: &str, pieces: &[&str]) -> String {
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..=self.below(6) {
            let at = self.below(characters.len() + 1);
            match self.below(4) {
                0 if at < characters.len() => drop(characters.remove(at)),
                1 => drop(characters.splice(at..at, self.pick(pieces).chars()).count()),
                2 => characters.truncate(at),
                _ => characters
                    .insert(at, char::from_u32(u32::try_from(self.next() % 0x1_0000).unwrap()).unwrap_or('\u{fffd}')),
            }
        }
        characters.into_iter().collect()
    }
}

const PIECES: [&str; 24] = [
    "\"",
    "\\",
    ",",
    "=",
    " ",
    "\t",
    "Bearer",
    "DPoP",
    "scope",
    "resource_metadata",
    "{",
    "}",
    "[",
    "]",
    ":",
    "null",
    "https://",
    "#",
    "?",
    "@",
    "\u{0}",
    "é",
    "1e999",
    "%",
];

#[test]
fn challenges_never_panic_and_write_back_what_was_read() {
    let mut random = Random(0x5eed);
    let seeds = [
        r#"Bearer realm="a, b", scope="read write", resource_metadata="https://mcp.example/x", DPoP algs="ES256", error="invalid_token""#,
        r#"Negotiate YWJj==, Basic realm="x\"y", Bearer"#,
        "",
    ];
    for _ in 0..20_000 {
        let text = {
            let seed = random.pick(&seeds);
            random.mutate(seed, &PIECES)
        };
        let challenges = Challenge::parse_all([&*text]);
        for challenge in &challenges {
            let _ = (
                challenge.scope(),
                challenge.resource_metadata(),
                challenge.is_insufficient_scope(),
                challenge.wants_dpop_nonce(),
            );
            let written = challenge.to_string();
            assert!(written.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{written:?}");
            let again = Challenge::parse_all([&*written]);
            assert_eq!(again.len(), 1, "{written}");
            assert_eq!(again[0].scheme(), challenge.scheme());
            assert_eq!(again[0].to_string(), written);
        }
    }
}

#[test]
fn metadata_and_addresses_never_panic() {
    let mut random = Random(0xfeed);
    let seeds = [resource_metadata().to_string(), server_metadata().to_string(), token_response().to_string()];
    let server = url::Url::parse(SERVER).unwrap();
    for _ in 0..20_000 {
        let text = {
            let seed = &seeds[random.below(seeds.len())];
            random.mutate(seed, &PIECES)
        };
        if let Ok(metadata) = ProtectedResourceMetadata::parse(text.as_bytes()) {
            let _ = metadata.is_for(&server);
        }
        let _ = AuthorizationServerMetadata::parse(text.as_bytes());
        let address = random.mutate("https://user:pw@as.example:8443/a/b?c=d#e", &PIECES);
        if let Ok(address) = Address::parse(&address) {
            let _ = (address.is_private(), address.origin());
            let _ = mcp_auth::metadata::well_known::protected_resource(address.url());
            let _ = mcp_auth::metadata::well_known::authorization_server(address.url());
        }
    }
}

/// Whole logins in which each response is changed at random, and inputs come that nothing waits for.
#[test]
fn logins_with_random_responses_end_and_never_panic() {
    let mut random = Random(0xabcd);
    for round in 0..3_000 {
        let provider = IdentityProvider::new("https://idp.example/token", "c");
        let flow = match round % 5 {
            0 => code_flow(),
            1 => Flow::DeviceCode,
            2 => Flow::ClientCredentials,
            3 => Flow::EnterpriseManaged(provider),
            _ => Flow::WorkloadIdentity,
        };
        let mut config = LoginConfig::new(SERVER, flow).unwrap().ask_for_client(true);
        if random.below(2) == 0 {
            config = config.pre_registered(PreRegistered::new("own").client_secret("secret"));
        }
        let mut server = server_metadata();
        server["device_authorization_endpoint"] = serde_json::json!("https://as.example/device");
        let device = r#"{"device_code":"d","user_code":"u","verification_uri":"https://as.example/e","expires_in":60}"#;
        let exchanged = r#"{"access_token":"j","issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"}"#;
        let mut routes = Script::new().routes;
        let mut login = Login::new(config, Stored::default(), &Challenge::parse_all([r#"Bearer scope="a""#]), [1; 64]);
        let mut now = NOW;
        let mut is_over = false;
        for _ in 0..500 {
            let is_changed = random.below(4) == 0;
            match login.poll(now) {
                Action::Fetch(request) => {
                    let body = match &*request.url {
                        "https://as.example/device" => device.to_owned(),
                        "https://idp.example/token" => exchanged.to_owned(),
                        "https://as.example/.well-known/oauth-authorization-server" => server.to_string(),
                        url => match routes.get_mut(url) {
                            Some(handler) => String::from_utf8(handler(&request).unwrap().body.clone()).unwrap(),
                            None => String::new(),
                        },
                    };
                    let status =
                        if is_changed { *random.pick(&[&200, &201, &302, &400, &401, &404, &500]) } else { 200 };
                    let body = if is_changed { random.mutate(&body, &PIECES) } else { body };
                    if is_changed && random.below(5) == 0 {
                        login.handle_failure(now, RequestError::Unreachable(String::new()));
                    } else {
                        login.handle_response(now, HttpResponse::new(status, body).dpop_nonce("n"));
                    }
                }
                Action::OpenBrowser(page) => {
                    let page = url::Url::parse(&page.url).unwrap();
                    let redirect = crate::script::redirect_of(&page, &[("code", "c"), ("iss", crate::script::ISSUER)]);
                    let _ = login.handle_redirect(&random.mutate(&redirect, &PIECES));
                    if login.handle_redirect(&redirect).is_err() {
                        login.handle_declined();
                    }
                }
                Action::WaitUntil(time) => now = time,
                Action::AskForClient { .. } => login.handle_client(&PreRegistered::new("typed")),
                Action::SupplyAssertion(_) => login.handle_assertion("jwt".into()),
                Action::Save(_) => {
                    // Nothing waits for these now.
                    login.handle_response(now, HttpResponse::new(200, "{}"));
                    login.handle_failure(now, RequestError::TooLarge);
                    login.handle_saved();
                }
                Action::Done(_) | Action::Failed(_) => {
                    is_over = true;
                    break;
                }
                _ => {}
            }
        }
        assert!(is_over, "round {round} does not end");
        login.handle_response(now, HttpResponse::new(200, "{}"));
        login.handle_assertion("late".into());
        assert!(matches!(login.poll(now), Action::Idle));
    }
}
