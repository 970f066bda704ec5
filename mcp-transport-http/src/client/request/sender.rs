//! Requests and responses, for whatever they are.

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

/// What all requests to one server share.
pub(crate) struct RequestSender {
    pub(crate) client: Client,
    pub(crate) url: Url,
    /// What the application wants to be in every request.
    pub(crate) headers: HeaderMap,
    pub(crate) authorizer: Option<Arc<dyn Authorizer>>,
    pub(crate) options: Options,
    fingerprints: Fingerprinter,
    /// Whose credentials all requests are sent with, where there is no authorizer to change them.
    fixed: OnceLock<CredentialFingerprint>,
}

/// A response, and whose credentials its request was sent with.
pub(crate) struct Sent {
    pub(crate) response: Response,
    pub(crate) by: CredentialFingerprint,
}

/// Why there is no response.
pub(crate) enum SendError {
    /// The request, or its answer, did not get through.
    Failed(String),
    /// The session was begun with other credentials than those at hand; nothing was sent in it with these.
    CredentialsChanged,
}

impl SendError {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Failed(why) => why,
            Self::CredentialsChanged => {
                "the credentials are others than those that the session was begun with".to_owned()
            }
        }
    }
}

/// How often a request is sent again with another credential.
const MAX_CREDENTIAL_RETRIES: usize = 2;

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// How much of the body of a refusal is read.
const MAX_REFUSAL_BYTES: usize = 1 << 20;

/// Makes the client that is used unless the application has one.
pub(crate) fn own_client(
    connect_timeout: Duration,
    setup: impl FnOnce(ClientBuilder) -> ClientBuilder,
) -> Result<Client, String> {
    let policy = Policy::custom(|attempt| {
        // Any other status would make a GET of a POST.
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

    /// Sends a request in a session, and again with another credential where that is wanted.
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

    /// Finds out whose credentials a request is about to be sent with, and whether it may be.
    async fn identify(
        &self,
        credential: Option<&Credential>,
        session: &Session,
        driver: &DriverHandle,
    ) -> Result<CredentialFingerprint, SendError> {
        // Beside an authorizer a header that never changes tells nobody apart.
        let header = self.headers.get(AUTHORIZATION).filter(|_| self.authorizer.is_none());
        let shown = match (credential, header) {
            (Some(credential), _) => PresentedCredential::Credential(credential),
            (None, Some(header)) => PresentedCredential::Header(header),
            (None, None) => PresentedCredential::Nothing,
        };
        let by = if self.authorizer.is_some() {
            let by = self.fingerprints.of(shown);
            // Each time, because what the client knows may be newer than the latest request. It hears of it before it
            // hears the answer, and a request that is aborted here is not sent.
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
                "the server sent us on to another origin, {}, which is not trusted",
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

/// What kind of body a response says that it has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BodyType {
    Json,
    EventStream,
}

/// What is in a response; what is wrong with it, if it says that it is something else.
pub(crate) fn body_type(headers: &HeaderMap) -> Result<BodyType, String> {
    if let Some(coding) = headers.get(CONTENT_ENCODING).filter(|coding| *coding != "identity") {
        return Err(format!("the answer of the server is encoded as {coding:?}, which was not asked for"));
    }
    let Some(said) = headers.get(CONTENT_TYPE) else {
        return Err("the answer of the server does not say what it is: it has no content type".to_owned());
    };
    let kind = said.to_str().unwrap_or_default();
    let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind).trim();
    if kind.eq_ignore_ascii_case(media::JSON) {
        Ok(BodyType::Json)
    } else if kind.eq_ignore_ascii_case(media::EVENT_STREAM) {
        Ok(BodyType::EventStream)
    } else {
        Err(format!("the answer of the server is {said:?}, and neither JSON nor a stream of events"))
    }
}

/// Reads a body to its end.
pub(crate) async fn read_body(mut response: Response, limit: usize) -> Result<Bytes, String> {
    let too_long = || format!("the answer of the server is longer than {limit} bytes");
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(too_long());
    }
    let Some(first) = next_chunk(&mut response).await? else { return Ok(Bytes::new()) };
    // Most bodies come in one piece.
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

/// Reads what a refusal says; what is too long, or breaks off, is left out.
pub(crate) async fn read_refusal(response: Response) -> Bytes {
    read_body(response, MAX_REFUSAL_BYTES).await.unwrap_or_default()
}

pub(crate) async fn next_chunk(response: &mut Response) -> Result<Option<Bytes>, String> {
    response.chunk().await.map_err(|fault| format!("the answer of the server breaks off: {}", describe(&fault)))
}

/// What went wrong, with what is behind it; addresses may hold secrets.
pub(crate) fn describe(fault: &reqwest::Error) -> String {
    let what = match () {
        () if fault.is_timeout() => "the server did not answer in time",
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
