//! What handlers may do with the connection that a request came on.

use std::any::Any;
use std::sync::{Arc, PoisonError};

use mcp_kernel::RequestKey;
use mcp_types::{EmptyResult, LoggingLevel, Method, RawJson, RawObject, Revision};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::asking::client_requests::{self, AskError};
use crate::asking::options::AskOptions;
use crate::connection::shared::Shared;
use crate::serve::endpoint::BoxFuture;

/// The connection to one client, as handlers see it. It is there for every request, also for one that stands alone;
/// then it lasts as long as the request.
#[derive(Clone)]
pub struct ConnectionHandle(pub(crate) Arc<Shared>);

impl ConnectionHandle {
    /// A value that handlers keep for this client from one request to the next.
    // S1.15
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.scratch.lock().unwrap_or_else(PoisonError::into_inner).share()
    }

    /// The value of a type, which is made if there is none yet.
    pub fn get_or_insert_with<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(value) = self.get() {
            return value;
        }
        // Made without the lock, as it may take its time; whoever comes second takes what is there, and drops what it
        // made without the lock as well.
        let made = Arc::new(make());
        let mut scratch = self.0.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.share().unwrap_or_else(|| {
            scratch.insert_shared(Arc::clone(&made));
            Arc::clone(&made)
        })
    }

    /// Keeps a value for this client; one of the same type is replaced.
    pub fn insert<T: Any + Send + Sync>(&self, value: T) {
        let value = Arc::new(value);
        let old = self.0.scratch.lock().unwrap_or_else(PoisonError::into_inner).insert_shared(value);
        // It may do anything when it goes.
        drop(old);
    }

    /// Has something run when the connection ends: last in, first out, each for at most five seconds.
    // S1.16, S1.17
    pub fn on_close<F, Fut>(&self, teardown: F)
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let teardown = Box::new(move || -> BoxFuture<()> { Box::pin(teardown()) });
        self.0.teardown.lock().unwrap_or_else(PoisonError::into_inner).push(teardown);
    }

    /// A name for the connection that no other has, for logs and as a key.
    // S2.6
    #[must_use]
    pub fn token(&self) -> &str {
        self.0.token()
    }

    /// The revision that the handshake settled on, if there was one.
    #[must_use]
    pub fn negotiated(&self) -> Option<Revision> {
        self.0.lock().kernel.negotiated()
    }

    /// Tells the client something that belongs to no request. Best effort: without a way there it is dropped.
    // S1.7
    pub fn notify(&self, method: &Method, params: &impl Serialize) {
        let Ok(params) = RawObject::new(params) else { return };
        let told = self.0.tell(None, |kernel| kernel.tell(None, method, &params));
        tracing::trace!(target: "mcp", method = method.as_str(), ?told, "notification");
    }

    /// Sends a log message that belongs to no request, as legacy clients may get it.
    // S1.35
    pub fn log<T: Serialize + ?Sized>(&self, level: LoggingLevel, data: &T) {
        if let Ok(data) = RawJson::new(data) {
            let _ = self.0.tell(None, |kernel| kernel.log(None, level, data, None));
        }
    }

    /// Asks whether a legacy client is still there.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be asked, or does not answer.
    // S1.34
    pub async fn ping(&self) -> Result<(), AskError> {
        self.request::<EmptyResult>(Method::PING, &RawObject::empty(), AskOptions::default()).await.map(drop)
    }

    /// Asks a legacy client something that the protocol does not define.
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be asked, does not answer, or answers something else than a `T`.
    // S1.27, S1.31
    pub async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        params: &RawObject,
        options: AskOptions,
    ) -> Result<T, AskError> {
        self.request_for(None, method, params.clone(), options).await
    }

    pub(crate) async fn request_for<T: DeserializeOwned>(
        &self,
        related: Option<RequestKey>,
        method: Method,
        params: RawObject,
        options: AskOptions,
    ) -> Result<T, AskError> {
        client_requests::ask(&self.0, related, method, params, options).await
    }
}

impl std::fmt::Debug for ConnectionHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionHandle").finish_non_exhaustive()
    }
}
