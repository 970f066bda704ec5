//! The metadata of the server, for clients without a token.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CACHE_CONTROL,
    CONTENT_TYPE,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tower_service::Service;
use url::Url;

use crate::metadata::{ProtectedResourceMetadata, well_known};

/// A tower service that responds with the metadata of a protected resource (RFC 9728).
///
/// [`ProtectLayer`](super::ProtectLayer) does so by itself, if it gets the requests for the [`paths`](Self::paths). This service
/// is for routers that send it other requests only: mount it at all of them.
///
/// Web pages of all origins may read it, and caches may keep it for an hour.
#[derive(Clone, Debug)]
pub struct MetadataService(Arc<Document>);

#[derive(Debug)]
struct Document {
    json: Bytes,
    /// The address that challenges name.
    url: String,
    paths: Vec<String>,
}

/// The start of all paths of metadata.
const PREFIX: &str = "/.well-known/oauth-protected-resource";
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

impl MetadataService {
    pub(crate) fn new(metadata: &ProtectedResourceMetadata, resource: &Url) -> Self {
        // Plain data can be written.
        let json = serde_json::to_vec(metadata).unwrap_or_default().into();
        let urls = well_known::protected_resource(resource);
        let url = urls.first().map(ToString::to_string).unwrap_or_default();
        let paths = urls.iter().map(|url| url.path().to_owned()).collect();
        Self(Arc::new(Document { json, url, paths }))
    }

    /// Returns the paths of the metadata: with the path of the server, and at the root.
    #[must_use]
    pub fn paths(&self) -> &[String] {
        &self.0.paths
    }

    pub(crate) fn url(&self) -> &str {
        &self.0.url
    }

    /// Whether a path is one of the metadata.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        // Nearly all requests have other paths.
        path.starts_with(PREFIX) && self.0.paths.iter().any(|known| path == known)
    }

    pub(crate) fn respond<R: From<Bytes>>(&self, method: &Method) -> Response<R> {
        let mut response = Response::new(Bytes::new());
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        match *method {
            Method::GET | Method::HEAD => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
                if method == Method::GET {
                    *response.body_mut() = self.0.json.clone();
                }
            }
            Method::OPTIONS => {
                headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
                // Clients send the version of the protocol with all requests.
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
                *response.status_mut() = StatusCode::NO_CONTENT;
            }
            _ => {
                headers.insert(ALLOW, METHODS);
                *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            }
        }
        response.map(R::from)
    }
}

impl<B> Service<Request<B>> for MetadataService {
    type Response = Response<BytesBody>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(self.respond(request.method())))
    }
}

/// The body of a response of [`MetadataService`].
#[derive(Debug)]
pub struct BytesBody(Option<Bytes>);

impl From<Bytes> for BytesBody {
    fn from(bytes: Bytes) -> Self {
        Self(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }
}

impl http_body::Body for BytesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(http_body::Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
