//! A protected service without sockets.

use std::convert::Infallible;
use std::future::{Ready, poll_fn, ready};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use mcp_auth::Challenge;
use mcp_auth::server::{BytesBody, JwtVerifier, Protected, ProtectedResource, StaticKeys};
use mcp_server::AuthInfo;
use tower_layer::Layer as _;
use tower_service::Service;

use crate::issuer::{ISSUER, Key, RESOURCE, jwks};

/// A service that records what it gets.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<Passed>>>);

/// The headers of a request, and what its token said.
pub(crate) type Passed = (HeaderMap, Option<Arc<AuthInfo>>);

impl Recorder {
    pub(crate) fn take(&self) -> Vec<Passed> {
        std::mem::take(&mut *self.0.lock().expect("a valid value"))
    }
}

impl Service<Request<()>> for Recorder {
    type Response = Response<BytesBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let auth = request.extensions().get::<Arc<AuthInfo>>().cloned();
        self.0.lock().expect("a valid value").push((request.headers().clone(), auth));
        ready(Ok(Response::new(BytesBody::from(Bytes::from_static(b"hello")))))
    }
}

/// A protected service, and what gets through.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) service: Protected<Recorder>,
    pub(crate) recorder: Recorder,
}

/// A response whose body was read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn challenge(&self) -> Challenge {
        let values =
            self.headers.get_all("www-authenticate").iter().map(|value| value.to_str().expect("a valid value"));
        let mut challenges = Challenge::parse_all(values);
        assert_eq!(challenges.len(), 1, "{self:?}");
        challenges.remove(0)
    }

    /// Status and code of the error.
    pub(crate) fn refusal(&self) -> (u16, Option<String>) {
        (self.status.as_u16(), self.challenge().error_code().map(str::to_owned))
    }
}

pub(crate) fn resource(key: &Key) -> ProtectedResource {
    let verifier = JwtVerifier::new(ISSUER, StaticKeys::new(jwks([key])));
    ProtectedResource::new(RESOURCE).authorization_server(ISSUER).verifier(verifier)
}

impl Server {
    pub(crate) fn new(resource: ProtectedResource) -> Self {
        let recorder = Recorder::default();
        Self { service: resource.layer().expect("a valid value").layer(recorder.clone()), recorder }
    }

    pub(crate) async fn send(&self, request: Request<()>) -> Answer {
        let response = self.service.clone().call(request).await.unwrap();
        let (parts, body) = response.into_parts();
        Answer { status: parts.status, headers: parts.headers, body: read(body).await }
    }

    /// Sends a request with headers.
    pub(crate) async fn post(&self, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::builder().method(Method::POST).uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(()).expect("a valid value")).await
    }

    pub(crate) async fn bearer(&self, token: &str) -> Answer {
        self.post(&[("authorization", &format!("Bearer {token}"))]).await
    }

    /// Sends a token; whether it was let in.
    pub(crate) async fn accepts(&self, token: &str) -> bool {
        let answer = self.bearer(token).await;
        let passed = self.recorder.take();
        match answer.status {
            StatusCode::OK => assert_eq!(passed.len(), 1),
            StatusCode::UNAUTHORIZED => {
                assert_eq!((passed.len(), answer.refusal().1.as_deref()), (0, Some("invalid_token")));
                // Nothing tells why.
                assert_eq!(answer.challenge().parameter("error_description"), Some("the access token is not valid"));
            }
            other => panic!("{other}: {answer:?}"),
        }
        answer.status == StatusCode::OK
    }
}

pub(crate) async fn read(body: impl Body<Data = Bytes, Error = Infallible>) -> String {
    let mut body = pin!(body);
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        if let Ok(data) = frame.unwrap().into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    String::from_utf8(bytes).expect("a valid value")
}
