//! The tower layer.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use mcp_server::{BoxFuture, InsufficientScope};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::credentials::Scheme;
use super::dpop::DPOP_NONCE;
use super::guard::{Allowed, Checked, Guard};
use super::metadata::MetadataService;
use super::refusal::{ChallengeContext, Refusal};
use super::spare_extensions;
use crate::Scopes;

/// A [tower](https://docs.rs/tower) layer that lets in requests with a valid access token; created by
/// [`ProtectedResource::layer`](super::ProtectedResource::layer).
///
/// Clones share the tokens that were verified. Put layers for CORS around it, as browsers send preflight requests without a
/// token.
#[derive(Clone)]
pub struct ProtectLayer(pub(crate) Arc<Guard>);

impl ProtectLayer {
    /// Returns a service for the metadata of the server, for routers that do not send all requests through this layer.
    #[must_use]
    pub fn metadata_service(&self) -> MetadataService {
        self.0.metadata.clone()
    }
}

impl<S> Layer<S> for ProtectLayer {
    type Service = Protected<S>;

    fn layer(&self, inner: S) -> Protected<S> {
        Protected { inner, guard: Arc::clone(&self.0) }
    }
}

impl fmt::Debug for ProtectLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtectLayer").field("resource", &self.0.url.as_str()).finish_non_exhaustive()
    }
}

/// A service that only gets requests with a valid access token; created by [`ProtectLayer`].
#[derive(Clone)]
pub struct Protected<S> {
    inner: S,
    guard: Arc<Guard>,
}

impl<S, B, R> Service<Request<B>> for Protected<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    R: From<Bytes>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = ProtectedFuture<S, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        if self.guard.metadata.has_path(request.uri().path()) {
            let response = Some(self.guard.metadata.respond(request.method()));
            return ProtectedFuture { state: State::Refused { response } };
        }
        // Each arm makes the whole future, as moving it costs more than the check.
        match self.guard.check(&mut request) {
            Checked::Allowed(auth) => {
                let allowed = Allowed { auth, nonce: None, scheme: Scheme::Bearer };
                ProtectedFuture { state: self.allow(request, allowed) }
            }
            Checked::Refused(scheme, refusal) => {
                ProtectedFuture { state: State::Refused { response: Some(self.guard.refusal(scheme, refusal)) } }
            }
            Checked::Pending(checking) => {
                // The service that was ready is the one that has to be called.
                let service = self.clone();
                let service = std::mem::replace(self, service);
                ProtectedFuture { state: State::Checking { checking, pending: Some(Box::new((service, request))) } }
            }
        }
    }
}

impl<S> Protected<S> {
    #[inline]
    fn allow<B, R>(&mut self, mut request: Request<B>, allowed: Allowed) -> State<S, B, R>
    where
        S: Service<Request<B>, Response = Response<R>>,
    {
        let Allowed { auth, nonce, scheme } = allowed;
        spare_extensions::insert(request.extensions_mut(), auth);
        State::Allowed { response: self.inner.call(request), guard: Arc::clone(&self.guard), scheme, nonce }
    }
}

impl Guard {
    fn refusal<R: From<Bytes>>(&self, scheme: Scheme, refusal: Refusal) -> Response<R> {
        refusal.into_response(&self.challenge_context(scheme))
    }

    /// Adds a challenge to the response of a service that needs more scopes than all requests do. It names all scopes of the
    /// request: a client that asks for these alone would lack those of all requests.
    fn add_scope_challenge<R>(&self, scheme: Scheme, response: &mut Response<R>) {
        let Some(needed) = response.extensions().get::<InsufficientScope>() else { return };
        let needed: Scopes = needed.scopes().filter(|scope| *scope != "offline_access").collect();
        let context =
            ChallengeContext { scopes: Cow::Owned(needed.union(&self.required)), ..self.challenge_context(scheme) };
        Refusal::InsufficientScope.add_challenge(response.headers_mut(), &context);
    }
}

impl<S: fmt::Debug> fmt::Debug for Protected<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protected").field("inner", &self.inner).finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of a [`Protected`] response.
    pub struct ProtectedFuture<S, B, R>
    where
        S: Service<Request<B>, Response = Response<R>>,
    {
        #[pin]
        state: State<S, B, R>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, B, R>
    where
        S: Service<Request<B>, Response = Response<R>>,
    {
        // Boxed, as it is large, and the future of most requests is moved without it.
        Checking { checking: BoxFuture<Result<Allowed, (Scheme, Refusal)>>, pending: Option<Box<(Protected<S>, Request<B>)>> },
        Allowed { #[pin] response: S::Future, guard: Arc<Guard>, scheme: Scheme, nonce: Option<HeaderValue> },
        Refused { response: Option<Response<R>> },
    }
}

impl<S, B, R> Future for ProtectedFuture<S, B, R>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: From<Bytes>,
{
    type Output = Result<Response<R>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateProjection::Checking { checking, pending } => {
                    let checked = ready!(checking.as_mut().poll(cx));
                    // Taken once, as the state changes.
                    let Some(pending) = pending.take() else { return Poll::Pending };
                    let (mut service, request) = *pending;
                    let next = match checked {
                        Ok(allowed) => service.allow(request, allowed),
                        Err((scheme, refusal)) => {
                            State::Refused { response: Some(service.guard.refusal(scheme, refusal)) }
                        }
                    };
                    state.set(next);
                }
                StateProjection::Allowed { response, guard, scheme, nonce } => {
                    let mut polled = response.poll(cx);
                    // In place, as the response is large.
                    if let Poll::Ready(Ok(response)) = &mut polled {
                        if response.status() == StatusCode::FORBIDDEN {
                            guard.add_scope_challenge(*scheme, response);
                        }
                        if let Some(nonce) = nonce.take() {
                            response.headers_mut().insert(DPOP_NONCE, nonce);
                        }
                        spare_extensions::keep(response.extensions_mut());
                    }
                    return polled;
                }
                // Without a response the future was polled after it was ready.
                StateProjection::Refused { response } => {
                    return response.take().map_or(Poll::Pending, |response| Poll::Ready(Ok(response)));
                }
            }
        }
    }
}

impl<S, B, R> fmt::Debug for ProtectedFuture<S, B, R>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtectedFuture").finish_non_exhaustive()
    }
}
