//! Logging in, as the scenarios about authorization want it.

use mcp_auth::Secret;
use mcp_auth::authorizer::{
    AssertionSource, LoginPrompt, OAuth, PendingLogin, PromptError, RedirectCheck, async_trait,
};
use mcp_auth::client::{AssertionRequest, ClientAuthentication, IdentityProvider, OpenBrowser, PreRegistered};
use mcp_auth::jose::SigningKey;
use serde::Deserialize;

use crate::Outcome;

/// What the suite expects a client to be called where it can choose.
const METADATA_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// What the suite tells about a scenario.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Context {
    client_id: String,
    client_secret: Option<Secret>,
    issuer: Option<String>,
    private_key_pem: String,
    idp_client_id: String,
    idp_id_token: String,
    idp_issuer: Option<String>,
    idp_token_endpoint: String,
    valid_jwt: String,
}

impl Context {
    fn read() -> Outcome<Self> {
        match std::env::var("MCP_CONFORMANCE_CONTEXT") {
            Ok(context) => Ok(serde_json::from_str(&context)?),
            Err(_) => Ok(Self::default()),
        }
    }

    fn client(&self) -> PreRegistered {
        let mut client = PreRegistered::new(&self.client_id);
        client.client_secret.clone_from(&self.client_secret);
        client.issuer.clone_from(&self.issuer);
        client
    }
}

/// Creates what logs in to a server.
pub(crate) fn authorizer(server: &str, scenario: &str) -> Outcome<OAuth> {
    let context = Context::read()?;
    let builder = OAuth::builder(server).client_name("conformance-client");
    let builder = match scenario {
        "auth/client-credentials-jwt" => {
            let client = context.client().authentication(ClientAuthentication::PrivateKeyJwt);
            let key = SigningKey::from_pem(&context.private_key_pem)?;
            builder.client_credentials().client(client).client_key(key)
        }
        "auth/client-credentials-basic" => builder.client_credentials().client(context.client()),
        "auth/enterprise-managed-authorization" => {
            let client = context.client();
            let mut provider = IdentityProvider::new(context.idp_token_endpoint, context.idp_client_id);
            provider.issuer = context.idp_issuer;
            builder.enterprise_managed(provider, Assertion(context.idp_id_token)).client(client)
        }
        "auth/wif-jwt-bearer" => {
            let client = context.client();
            builder.workload_identity(Assertion(context.valid_jwt)).client(client)
        }
        "auth/pre-registration" => builder.prompt(NoPages).client(context.client()),
        "auth/dpop" | "auth/dpop-nonce" => builder.prompt(NoPages).require_dpop(),
        _ => builder.prompt(NoPages).client_metadata_url(METADATA_DOCUMENT),
    };
    Ok(builder.build()?)
}

/// An assertion that the suite supplied.
struct Assertion(String);

#[async_trait]
impl AssertionSource for Assertion {
    async fn assertion(&self, _: &AssertionRequest) -> Result<Secret, PromptError> {
        Ok(Secret::new(&*self.0))
    }
}

/// A browser without pages: the suite redirects at once, to where nothing listens.
struct NoPages;

#[async_trait]
impl LoginPrompt for NoPages {
    async fn begin(&self, _: Option<&str>) -> Result<Box<dyn PendingLogin>, PromptError> {
        Ok(Box::new(Self))
    }
}

#[async_trait]
impl PendingLogin for NoPages {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:3000/callback"
    }

    async fn authorize(&mut self, request: &OpenBrowser, check: RedirectCheck<'_>) -> Result<(), PromptError> {
        let failed = |error: &dyn std::fmt::Display| PromptError::failed(error.to_string());
        let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
        let browser = browser.map_err(|error| failed(&error))?;
        let response = browser.get(&request.url).send().await.map_err(|error| failed(&error))?;
        let location = response.headers().get("location").and_then(|location| location.to_str().ok());
        let location = location.ok_or_else(|| PromptError::failed("the suite did not redirect"))?;
        check(location).map_err(|error| failed(&error))
    }
}
