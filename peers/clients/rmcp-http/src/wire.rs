//! The way to the server: the HTTP client of `rmcp`, which is watched.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::Value;
use sse_stream::Sse;

type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;
type Fallible<T> = Result<T, StreamableHttpError<reqwest::Error>>;

/// What was sent, and how it was answered.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) message: Value,
    headers: Headers,
    pub(crate) answer: Answer,
    /// The ids of sessions in the request and in the response.
    pub(crate) sessions: [Option<String>; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Accepted,
    Json,
    Events,
    Failed,
}

impl Post {
    pub(crate) fn header(&self, name: &'static str) -> Option<&str> {
        self.headers.get(&HeaderName::from_static(name)).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn method(&self) -> Option<&str> {
        self.message["method"].as_str()
    }
}

/// Clones are the same wire.
#[derive(Clone, Default)]
pub(crate) struct Wire {
    client: reqwest::Client,
    posts: Arc<Mutex<Vec<Post>>>,
}

impl Wire {
    pub(crate) fn posts(&self) -> Vec<Post> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Post>> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamableHttpClient for Wire {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Fallible<StreamableHttpPostResponse> {
        self.post_message_with_max_sse_event_size(uri, message, session, auth, headers, usize::MAX).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Fallible<StreamableHttpPostResponse> {
        let sent = serde_json::to_value(&message)?;
        let (kept, asked) = (headers.clone(), session.as_deref().map(str::to_owned));
        let response =
            self.client.post_message_with_max_sse_event_size(uri, message, session, auth, headers, most).await;
        let (answer, told) = match &response {
            Ok(StreamableHttpPostResponse::Json(_, session)) => (Answer::Json, session.clone()),
            Ok(StreamableHttpPostResponse::Sse(_, session)) => (Answer::Events, session.clone()),
            Ok(_) => (Answer::Accepted, None),
            Err(_) => (Answer::Failed, None),
        };
        self.lock().push(Post { message: sent, headers: kept, answer, sessions: [asked, told] });
        response
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Fallible<()> {
        self.client.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Fallible<Events> {
        self.client.get_stream(uri, session, last_event, auth, headers).await
    }
}
