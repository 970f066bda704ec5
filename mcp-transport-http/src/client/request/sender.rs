//! Sends requests with credentials, and reads responses within limits.

use std::error::Error as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, Method as Verb, StatusCode};
use mcp_client::CredentialFingerprint;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Request, Response, Url};

use super::headers::Session;
use crate::client::authorizer::{Authorizer, Challenge, Credential};
use crate::client::driver_event::{DriverEvent, DriverHandle};
use crate::client::fingerprint::{Fingerprinter, PresentedCredential};
use crate::client::transport::Options;
use crate::rules::media;

/// Sends requests to one server.
pub(crate) struct RequestSender {
    pub(crate) client: Client,
    pub(crate) url: Url,
    /// The headers that the application adds to every request.
    pub(crate) headers: HeaderMap,
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    pub(crate) options: Options,
    fingerprints: Fingerprinter,
    /// The fingerprint of the credentials of all requests, if there is no authorizer.
    fixed: OnceLock<CredentialFingerprint>,
}

/// A response, and the fingerprint of the credentials that its request was sent with.
pub(crate) struct Sent {
    pub(crate) response: Response,
    pub(crate) by: CredentialFingerprint,
}

/// The error of sending a request.
pub(crate) enum SendError {
    /// The request failed.
    Failed(String),
    /// The session was started with other credentials than the current ones. Nothing was sent.
    CredentialsChanged,
}

impl SendError {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Failed(why) => why,
            Self::CredentialsChanged => "the credentials are not those that the session was started with".to_owned(),
        }
    }
}

/// How many times a request is sent again with another credential.
const MAX_CREDENTIAL_RETRIES: usize = 2;

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
        client: Client,
        url: Url,
        headers: HeaderMap,
        authorizer: Option<Arc<dyn Authorizer>>,
        options: Options,
        fingerprints: Fingerprinter,
    ) -> Self {
        Self { client, url, headers, authorizer, options, fingerprints, fixed: OnceLock::new() }
    }

    /// Sends a request, and again with another credential if the authorizer returns one after 401 or 403.
    pub(crate) async fn send(
        &self,
        verb: Verb,
        url: &Url,
        headers: &HeaderMap,
        body: Option<&Bytes>,
        session: &Session,
        driver: &DriverHandle,
    ) -> Result<Sent, SendError> {
        let mut credential = match &self.authorizer {
            Some(authorizer) => authorizer.credential().await,
            None => None,
        };
        let mut attempts = 0;
        loop {
            let by = self.identify(credential.as_ref(), session, driver).await?;
            let sent = self.send_once(verb.clone(), url, headers, body, credential.as_ref()).await;
            let response = sent.map_err(SendError::Failed)?;
            let status = response.status();
            let is_challenge = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
            let Some(authorizer) =
                self.authorizer.as_ref().filter(|_| is_challenge && attempts < MAX_CREDENTIAL_RETRIES)
            else {
                return Ok(Sent { response, by });
            };
            let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
            let www_authenticate = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
            let challenge = Challenge { status: status.as_u16(), www_authenticate, refused: credential };
            match authorizer.challenged(&challenge).await {
                Some(other) => credential = Some(other),
                None => return Ok(Sent { response, by }),
            }
            attempts += 1;
        }
    }

    /// Returns the fingerprint of a request's credentials, and checks that the session was started with them.
    async fn identify(
        &self,
        credential: Option<&Credential>,
        session: &Session,
        driver: &DriverHandle,
    ) -> Result<CredentialFingerprint, SendError> {
        // With an authorizer, a fixed header does not identify the user.
        let header = self.headers.get(AUTHORIZATION).filter(|_| self.authorizer.is_none());
        let shown = match (credential, header) {
            (Some(credential), _) => PresentedCredential::Credential(credential),
            (None, Some(header)) => PresentedCredential::Header(header),
            (None, None) => PresentedCredential::Nothing,
        };
        let by = if self.authorizer.is_some() {
            let by = self.fingerprints.of(shown);
            // Reported each time, as the client may know of newer credentials than the latest request had. It is reported
            // before the response, and a request that is aborted here is not sent.
            driver.send(DriverEvent::Credentials(by)).await;
            by
        } else {
            *self.fixed.get_or_init(|| self.fingerprints.of(shown))
        };
        let is_owner = session.owner.is_none_or(|owner| owner == by || owner == Fingerprinter::like(&owner).of(shown));
        if is_owner { Ok(by) } else { Err(SendError::CredentialsChanged) }
    }

    async fn send_once(
        &self,
        verb: Verb,
        url: &Url,
        headers: &HeaderMap,
        body: Option<&Bytes>,
        credential: Option<&Credential>,
    ) -> Result<Response, String> {
        let mut request = Request::new(verb, url.clone());
        let all = request.headers_mut();
        all.clone_from(&self.headers);
        for (name, value) in headers {
            all.insert(name, value.clone());
        }
        if let Some(credential) = credential {
            all.insert(AUTHORIZATION, credential.value().clone());
        }
        *request.body_mut() = body.map(|body| body.clone().into());
        let response = self.execute(request).await?;
        if response.url().origin() != url.origin() {
            return Err(format!(
                "the server redirected to another origin, {}, which is not trusted",
                response.url().origin().ascii_serialization()
            ));
        }
        Ok(response)
    }

    async fn execute(&self, request: Request) -> Result<Response, String> {
        #[cfg(feature = "internals")]
        if let Some(script) = &self.options.script {
            return script.respond(request).await;
        }
        self.client.execute(request).await.map_err(|fault| describe(&fault))
    }
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
    let Some(said) = headers.get(CONTENT_TYPE) else {
        return Err("the response has no `Content-Type`".to_owned());
    };
    let kind = said.to_str().unwrap_or_default();
    let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind).trim();
    if kind.eq_ignore_ascii_case(media::JSON) {
        Ok(BodyType::Json)
    } else if kind.eq_ignore_ascii_case(media::EVENT_STREAM) {
        Ok(BodyType::EventStream)
    } else {
        Err(format!("the response is {said:?}, and neither JSON nor an event stream"))
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
    let what = match () {
        () if fault.is_timeout() => "the server did not respond in time",
        () if fault.is_connect() => "the server cannot be reached",
        () => "the request failed",
    };
    let mut text = what.to_owned();
    let mut behind = fault.source();
    while let Some(cause) = behind {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        behind = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::client::authorizer::CredentialFuture;
    use crate::client::transport::HttpTransport;

    struct Somebody;

    impl Authorizer for Somebody {
        fn credential(&self) -> CredentialFuture<'_> {
            Box::pin(async { Some(Credential::bearer("a").expect("a token")) })
        }

        fn challenged<'a>(&'a self, _: &'a Challenge) -> CredentialFuture<'a> {
            Box::pin(async { None })
        }
    }

    /// A request that is aborted while it waits to tell whose it is leaves it to the next one to tell.
    // covers: SEC-8
    #[test]
    fn sec_8_each_request_tells_whose_it_is() {
        let transport = HttpTransport::new("http://localhost/").unwrap();
        let client = own_client(Duration::from_secs(1), |builder| builder).unwrap();
        let url = Url::parse("http://localhost/").unwrap();
        let authorizer: Arc<dyn Authorizer> = Arc::new(Somebody);
        let sender = RequestSender::new(
            client,
            url,
            HeaderMap::new(),
            Some(authorizer),
            transport.options,
            Fingerprinter::new(),
        );
        let (driver, mut heard) = DriverHandle::new(1);
        driver.send(DriverEvent::ChangesMissed).now_or_never().expect("there is room");
        let (credential, session) = (Somebody.credential().now_or_never().flatten(), Session::default());
        assert!(sender.identify(credential.as_ref(), &session, &driver).now_or_never().is_none());
        assert!(matches!(heard.try_recv(), Ok(DriverEvent::ChangesMissed)));
        for _ in 0..2 {
            assert!(sender.identify(credential.as_ref(), &session, &driver).now_or_never().is_some());
            assert!(matches!(heard.try_recv(), Ok(DriverEvent::Credentials(_))));
        }
    }
}
