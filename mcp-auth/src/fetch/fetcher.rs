//! The client that fetches.

use std::fmt;
use std::time::Duration;

use http::header::{ACCEPT, LOCATION};
use http::{Method, Request, Response};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use url::Url;

use super::error::FetchError;
use super::policy::AddressPolicy;
use super::resolver::{CheckedResolver, Lookup, system_lookup};
use crate::address::shown;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);
const DEFAULT_BODY_LIMIT: usize = 256 * 1024;
const MAX_REDIRECTS: usize = 3;

/// A client for addresses that come from a server.
///
/// It requests `https`, or `http` on this machine; follows redirects of GET within the origin; reads responses of a bounded
/// size in a bounded time; and refuses addresses in private networks if its [`AddressPolicy`] says so, also those that a name
/// resolves to. It uses no proxy unless one is configured, as a proxy resolves names by itself.
///
/// ```no_run
/// use mcp_auth::fetch::{AddressPolicy, Fetcher};
///
/// # async fn fetch() -> Result<(), mcp_auth::fetch::FetchError> {
/// let fetcher = Fetcher::builder(AddressPolicy::Public).build()?;
/// let metadata = fetcher.get("https://example.com/.well-known/oauth-authorization-server").await?;
/// # drop(metadata);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Fetcher {
    client: Client,
    policy: AddressPolicy,
    timeout: Duration,
    body_limit: usize,
}

/// A builder of [`Fetcher`].
#[must_use]
pub struct FetcherBuilder {
    policy: AddressPolicy,
    timeout: Duration,
    body_limit: usize,
    configure: Option<Configure>,
    lookup: Lookup,
}

type Configure = Box<dyn FnOnce(ClientBuilder) -> ClientBuilder + Send>;

impl Fetcher {
    /// Creates a builder.
    pub fn builder(policy: AddressPolicy) -> FetcherBuilder {
        let (timeout, body_limit, lookup) = (DEFAULT_TIMEOUT, DEFAULT_BODY_LIMIT, system_lookup());
        FetcherBuilder { policy, timeout, body_limit, configure: None, lookup }
    }

    /// Requests a JSON document with GET.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no complete response. A status that says failure is no error.
    pub async fn get(&self, url: &str) -> Result<Response<Vec<u8>>, FetchError> {
        let request = Request::get(url).header(ACCEPT, "application/json").body(Vec::new());
        self.send(request.map_err(|error| FetchError::Invalid(error.to_string()))?).await
    }

    /// Sends a request, and reads the whole response.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no complete response. A status that says failure is no error.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, FetchError> {
        self.send_limited(request, self.body_limit).await
    }

    /// Sends a request, and reads the whole response, with another maximum size in bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no complete response. A status that says failure is no error.
    pub async fn send_limited(
        &self,
        request: Request<Vec<u8>>,
        body_limit: usize,
    ) -> Result<Response<Vec<u8>>, FetchError> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string()).map_err(|error| FetchError::Invalid(error.to_string()))?;
        let address = shown(url.as_str());
        let follow = self.follow(url, &head.method, &head.headers, body, body_limit);
        let timeout = self.timeout;
        tokio::time::timeout(timeout, follow).await.unwrap_or(Err(FetchError::Timeout { address, timeout }))
    }

    async fn follow(
        &self,
        mut url: Url,
        method: &Method,
        headers: &http::HeaderMap,
        body: Vec<u8>,
        body_limit: usize,
    ) -> Result<Response<Vec<u8>>, FetchError> {
        for _ in 0..=MAX_REDIRECTS {
            if let Err(reason) = self.policy.check_url(&url) {
                return Err(FetchError::Refused { address: shown(url.as_str()), reason });
            }
            let request = self.client.request(method.clone(), url.clone()).headers(headers.clone());
            let request = if body.is_empty() { request } else { request.body(body.clone()) };
            let response = request.send().await.map_err(|error| FetchError::from_reqwest(&error, &url))?;
            if !response.status().is_redirection() {
                return read(response, &url, body_limit).await;
            }
            url = redirected(&url, method, &response)
                .ok_or_else(|| FetchError::Redirected { address: shown(url.as_str()) })?;
        }
        Err(FetchError::Redirected { address: shown(url.as_str()) })
    }
}

async fn read(mut response: reqwest::Response, url: &Url, limit: usize) -> Result<Response<Vec<u8>>, FetchError> {
    let too_large = || FetchError::TooLarge { address: shown(url.as_str()), limit };
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| FetchError::from_reqwest(&error, url))? {
        if body.len() + chunk.len() > limit {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    let mut read = Response::new(body);
    *read.status_mut() = response.status();
    *read.headers_mut() = std::mem::take(response.headers_mut());
    Ok(read)
}

/// Returns where a response redirects to, if that may be followed.
fn redirected(url: &Url, method: &Method, response: &reqwest::Response) -> Option<Url> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let mut next = url.join(location).ok()?;
    // It is for browsers, and is not sent.
    next.set_fragment(None);
    (method == Method::GET && next.origin() == url.origin()).then_some(next)
}

impl FetcherBuilder {
    /// Sets the time that a request has, from the resolution of its name to the last byte of its response, with redirects.
    /// Defaults to 15 seconds.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the maximum size of a response in bytes. Defaults to 256 KiB.
    pub const fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// Configures the HTTP client, for example with root certificates, or with a proxy.
    ///
    /// Redirects and the resolution of names are set afterwards. A proxy has to be given by its address if private addresses
    /// are refused, and it resolves the names of other hosts without the check.
    pub fn http_client(mut self, configure: impl FnOnce(ClientBuilder) -> ClientBuilder + Send + 'static) -> Self {
        self.configure = Some(Box::new(configure));
        self
    }

    #[cfg(test)]
    pub(super) fn lookup(mut self, lookup: Lookup) -> Self {
        self.lookup = lookup;
        self
    }

    /// Creates the client.
    ///
    /// # Errors
    ///
    /// Returns an error if the HTTP client cannot be created, for example without a source of root certificates.
    pub fn build(self) -> Result<Fetcher, FetchError> {
        let Self { policy, timeout, body_limit, configure, lookup } = self;
        // Requests are rare, and a refresh token must not get lost in a connection that the server is about to close.
        let builder = Client::builder().no_proxy().pool_max_idle_per_host(0);
        let builder = builder.user_agent(concat!("mcp-auth/", env!("CARGO_PKG_VERSION")));
        let builder = match configure {
            Some(configure) => configure(builder),
            None => builder,
        };
        let resolver = CheckedResolver { policy, lookup };
        let client = builder.redirect(Policy::none()).referer(false).dns_resolver(resolver).build();
        let client = client.map_err(|error| FetchError::Invalid(error.to_string()))?;
        Ok(Fetcher { client, policy, timeout, body_limit })
    }
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fetcher").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl fmt::Debug for FetcherBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetcherBuilder").field("policy", &self.policy).finish_non_exhaustive()
    }
}
