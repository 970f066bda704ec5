//! Sends requests, and reads responses within limits.

use std::error::Error as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method as Verb, StatusCode};
use mcp_client::{AuthorizationError, CallExtensions, CallId, CredentialFingerprint, OutgoingMessage, ResponseHandle};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Request, Response, Url};

use super::headers::{self, Session};
use super::login::{Closing, LoginState};
#[cfg(feature = "client-tls")]
use super::tls_error::{TlsError, find_tls_error};
use crate::client::authorizer::Authorizer;
use crate::client::fingerprint::{Fingerprinter, PresentedCredential};
use crate::client::state::State;
use crate::client::transport::Options;
use crate::rules::header_names::{EVENT_STREAM, JSON};

/// Sends requests to one server.
pub(crate) struct RequestSender {
    http: Client,
    pub(crate) url: Url,
    /// The headers that the application adds to every request.
    headers: HeaderMap,
    authorizer: Option<Arc<dyn Authorizer>>,
    pub(crate) options: Options,
    pub(super) fingerprints: Fingerprinter,
    /// The fingerprint of the credentials of all requests, if there is no authorizer.
    fixed: OnceLock<CredentialFingerprint>,
    /// The client, which requests report to.
    pub(crate) responses: ResponseHandle,
    state: Mutex<State>,
    pub(crate) closing: Closing,
}

/// A response, and the fingerprint of the credentials that its request was sent with.
pub(crate) struct Sent {
    pub(crate) response: Response,
    pub(crate) by: CredentialFingerprint,
}

/// What a request is sent for.
#[derive(Debug)]
pub(crate) struct CallContext {
    /// The call, unless it is a message without a response or the stream of a session.
    pub(crate) call: Option<CallId>,
    /// The values that are attached to the call.
    pub(crate) extensions: CallExtensions,
    /// Whether the request is worth a login.
    pub(crate) may_log_in: bool,
    pub(crate) login: LoginState,
}

impl CallContext {
    pub(crate) fn new(call: CallId, extensions: CallExtensions) -> Self {
        Self { call: Some(call), extensions, ..Self::default() }
    }

    /// The context of a request that fails if it needs a login.
    pub(crate) fn without_login() -> Self {
        Self { may_log_in: false, ..Self::default() }
    }
}

/// The context of a request that belongs to no call.
impl Default for CallContext {
    fn default() -> Self {
        Self { call: None, extensions: CallExtensions::default(), may_log_in: true, login: LoginState::default() }
    }
}

/// The error of sending a request.
pub(crate) enum SendError {
    /// The request failed.
    Failed(String),
    /// The session was started with other credentials than the current ones. Nothing was sent.
    CredentialsChanged,
    /// The authorizer has no credential for the request.
    Authorization(AuthorizationError),
    /// The certificate of the server is not valid. Nothing was sent.
    #[cfg(feature = "client-tls")]
    InvalidCertificate(String),
}

impl From<AuthorizationError> for SendError {
    fn from(error: AuthorizationError) -> Self {
        Self::Authorization(error)
    }
}

impl SendError {
    fn of_request(fault: &reqwest::Error) -> Self {
        #[cfg(feature = "client-tls")]
        if let Some(TlsError::InvalidCertificate(what)) = find_tls_error(fault) {
            return Self::InvalidCertificate(what);
        }
        Self::Failed(describe(fault))
    }

    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Failed(why) => why,
            Self::CredentialsChanged => "the credentials are not those that the session was started with".to_owned(),
            Self::Authorization(error) => error.to_string(),
            #[cfg(feature = "client-tls")]
            Self::InvalidCertificate(what) => format!("the certificate of the server is not valid: {what}"),
        }
    }
}

/// The maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// The maximum number of bytes that are read of an error response.
const MAX_REFUSAL_BYTES: usize = 1 << 20;

/// Creates the HTTP client that is used unless the application passes one.
pub(crate) fn own_client(
    connect_timeout: Duration,
    setup: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<Client, String> {
    let policy = Policy::custom(|attempt| {
        // Other redirects would turn a POST into a GET.
        let keeps_method = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let is_near = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
        if keeps_method && is_near && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let builder = Client::builder().redirect(policy).connect_timeout(connect_timeout);
    setup(builder).build().map_err(|fault| describe(&fault))
}

impl RequestSender {
    pub(crate) fn new(
        http: Client,
        url: Url,
        headers: HeaderMap,
        authorizer: Option<Arc<dyn Authorizer>>,
        options: Options,
        fingerprints: Fingerprinter,
        responses: ResponseHandle,
    ) -> Self {
        let (state, fixed, closing) = (Mutex::default(), OnceLock::new(), Closing::default());
        Self { http, url, headers, authorizer, options, fingerprints, fixed, responses, state, closing }
    }

    /// Locks what requests share with the driver.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a request with these headers and those of the application, which are different ones.
    pub(crate) fn request(&self, verb: Verb, url: &Url, headers: HeaderMap) -> Request {
        let mut request = Request::new(verb, url.clone());
        *request.headers_mut() = headers;
        for (name, value) in &self.headers {
            request.headers_mut().append(name, value.clone());
        }
        request
    }

    /// Creates the request that posts a message.
    pub(crate) fn post(&self, url: &Url, outgoing: OutgoingMessage, session: &Session) -> Result<Request, String> {
        let mut request =
            self.request(Verb::POST, url, headers::for_message(&outgoing, session, &mut self.state().tools)?);
        *request.body_mut() = Some(outgoing.message.into_bytes().into());
        Ok(request)
    }

    /// Sends a request, and again with another credential if the authorizer returns one after 401 or 403.
    pub(crate) async fn send(
        &self,
        request: Request,
        session: &Session,
        context: &CallContext,
    ) -> Result<Sent, SendError> {
        match &self.authorizer {
            // Boxed, so that it takes no room in the calls of clients without one.
            Some(authorizer) => Box::pin(self.send_authorized(&**authorizer, request, session, context)).await,
            None => {
                let by = self.identify_fixed(session)?;
                Ok(Sent { response: self.execute(request).await?, by })
            }
        }
    }

    /// Returns the fingerprint of the credentials of all requests, and checks that the session was started with them.
    fn identify_fixed(&self, session: &Session) -> Result<CredentialFingerprint, SendError> {
        let presented =
            self.headers.get(AUTHORIZATION).map_or(PresentedCredential::Nothing, PresentedCredential::Header);
        let by = *self.fixed.get_or_init(|| self.fingerprints.of(presented));
        if is_owner(session, by, presented) { Ok(by) } else { Err(SendError::CredentialsChanged) }
    }

    /// Sets the credentials of the client. Reported each time, as the client may know of newer credentials than the latest
    /// request had.
    pub(super) fn set_credentials(&self, by: CredentialFingerprint) {
        self.responses.set_credentials(by);
        let ended = self.state().set_credentials(by);
        self.end_subscriptions(ended);
    }

    /// Records the credentials that a subscription was opened with.
    pub(crate) fn subscribed(&self, call: CallId, by: CredentialFingerprint, extensions: &CallExtensions) {
        let mut state = self.state();
        // One with credentials of its own does not depend on those of the client.
        if !extensions.is_empty() && state.credentials != Some(by) {
            return;
        }
        let ended = state.set_subscribed(call, by);
        drop(state);
        self.end_subscriptions(ended);
    }

    fn end_subscriptions(&self, subscriptions: Vec<(CallId, Option<Waker>)>) {
        for (call, waker) in subscriptions {
            waker.into_iter().for_each(Waker::wake);
            self.responses.handle_stream_ended(call, Some("the credentials changed".to_owned()));
        }
    }

    pub(super) async fn execute(&self, request: Request) -> Result<Response, SendError> {
        #[cfg(feature = "internals")]
        if let Some(script) = &self.options.script {
            return script.respond(request).await.map_err(SendError::Failed);
        }
        let response = self.http.execute(request).await.map_err(|fault| SendError::of_request(&fault))?;
        // All requests are sent to this origin.
        if !is_same_origin(response.url(), &self.url) {
            return Err(SendError::Failed(format!(
                "the server redirected to another origin, {}, which is not trusted",
                response.url().origin().ascii_serialization()
            )));
        }
        Ok(response)
    }
}

/// Whether a session was started with these credentials.
pub(super) fn is_owner(session: &Session, by: CredentialFingerprint, presented: PresentedCredential<'_>) -> bool {
    session.owner.is_none_or(|owner| owner == by || owner == Fingerprinter::with_salt_of(&owner).of(presented))
}

/// Whether two `http` or `https` URLs have the same origin.
pub(crate) fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.scheme() == other.scheme()
        && one.host() == other.host()
        && one.port_or_known_default() == other.port_or_known_default()
}

/// The type of a response body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyType {
    Json,
    EventStream,
}

/// Returns the type of a response body, or an error that describes what is wrong with its headers.
pub(crate) fn body_type(headers: &HeaderMap) -> Result<BodyType, String> {
    if let Some(coding) = headers.get(CONTENT_ENCODING).filter(|coding| *coding != "identity") {
        return Err(format!("the response has the content encoding {coding:?}, which was not requested"));
    }
    let Some(content_type) = headers.get(CONTENT_TYPE) else {
        return Err("the response has no `Content-Type`".to_owned());
    };
    let kind = content_type.to_str().unwrap_or_default();
    let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind).trim();
    if kind.eq_ignore_ascii_case(JSON) {
        Ok(BodyType::Json)
    } else if kind.eq_ignore_ascii_case(EVENT_STREAM) {
        Ok(BodyType::EventStream)
    } else {
        Err(format!("the response is {content_type:?}, and neither JSON nor an event stream"))
    }
}

/// Reads a whole body.
pub(crate) async fn read_body(mut response: Response, limit: usize) -> Result<Bytes, String> {
    let too_long = || format!("the response exceeds {limit} bytes; the limit is `HttpTransport::body_limit`");
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(too_long());
    }
    let Some(first) = next_chunk(&mut response).await? else { return Ok(Bytes::new()) };
    // Most bodies arrive in one chunk.
    let Some(second) = next_chunk(&mut response).await? else {
        return if first.len() <= limit { Ok(first) } else { Err(too_long()) };
    };
    let mut body = BytesMut::from(first);
    let mut next = Some(second);
    while let Some(chunk) = next {
        if body.len() + chunk.len() > limit {
            return Err(too_long());
        }
        body.extend_from_slice(&chunk);
        next = next_chunk(&mut response).await?;
    }
    Ok(body.freeze())
}

/// Reads the body of an error response. Returns an empty one if it is too long or incomplete.
pub(crate) async fn read_refusal(response: Response) -> Bytes {
    read_body(response, MAX_REFUSAL_BYTES).await.unwrap_or_default()
}

pub(crate) async fn next_chunk(response: &mut Response) -> Result<Option<Bytes>, String> {
    response.chunk().await.map_err(|fault| format!("the response is incomplete: {}", describe(&fault)))
}

/// Describes an error with its causes, without the URL, which may contain secrets.
pub(crate) fn describe(fault: &reqwest::Error) -> String {
    #[cfg(feature = "client-tls")]
    match find_tls_error(fault) {
        Some(TlsError::InvalidCertificate(what)) => return SendError::InvalidCertificate(what).into_text(),
        Some(TlsError::Other(text)) => return text,
        None => {}
    }
    let what = match () {
        () if fault.is_timeout() => "the server did not respond in time",
        () if fault.is_connect() => "the server cannot be reached",
        () => "the request failed",
    };
    let mut text = what.to_owned();
    let mut source = fault.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt as _;
    use mcp_client::{Clock, Transport, TransportHandle, TransportKind};

    use super::*;
    use crate::client::transport::HttpTransport;

    /// Passes the handle of its client on.
    struct Passing(mpsc::Sender<TransportHandle>);

    impl Transport for Passing {
        fn kind(&self) -> TransportKind {
            TransportKind::RequestPerCall
        }

        fn clock(&self) -> Clock {
            Arc::new(crate::clock::now)
        }

        fn start(self, handle: TransportHandle) {
            self.0.send(handle).unwrap();
        }
    }

    pub(crate) fn sender(authorizer: Option<Arc<dyn Authorizer>>) -> RequestSender {
        let (passing, handles) = mpsc::channel();
        assert!(mcp_client::Client::connect(Passing(passing)).now_or_never().is_none());
        let responses = handles.recv().unwrap().responses();
        let options = HttpTransport::new("http://localhost/").unwrap().options;
        let http = own_client(Duration::from_secs(1), |builder| builder).unwrap();
        let url = Url::parse("http://localhost/").unwrap();
        RequestSender::new(http, url, HeaderMap::new(), authorizer, options, Fingerprinter::new(), responses)
    }
}
