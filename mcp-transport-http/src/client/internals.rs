//! Access to private code for the fuzz targets. Not part of the API.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method as Verb};
use reqwest::{Body, Request, Response, ResponseBuilderExt as _, Url};

use super::transport::HttpTransport;
use crate::event_stream::decode::EventParser;

/// The contents of an event stream.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventStream {
    /// The name and the data of each event.
    pub events: Vec<(Vec<u8>, Vec<u8>)>,
    /// The id of the last event.
    pub last_id: Option<String>,
    /// The last `retry` value.
    pub retry: Option<Duration>,
    /// Whether parsing stopped at an event that exceeds the limit.
    pub is_too_long: bool,
}

/// Parses an event stream from chunks, with a limit for the size of events.
pub fn read_events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> EventStream {
    let mut parser = EventParser::new(limit);
    let mut events = Vec::new();
    let mut is_too_long = false;
    'pieces: for mut piece in pieces {
        loop {
            match parser.read(&mut piece) {
                Ok(Some(event)) => events.push((event.name, event.data)),
                Ok(None) => break,
                Err(_) => {
                    is_too_long = true;
                    break 'pieces;
                }
            }
        }
    }
    EventStream { events, last_id: parser.last_id, retry: parser.retry, is_too_long }
}

/// Responds to requests in place of the network.
#[derive(Clone)]
pub struct Script(Arc<Respond>);

type Respond = dyn Fn(Sent) -> BoxFuture<'static, Option<http::Response<Body>>> + Send + Sync;

/// A request of the client.
#[derive(Debug)]
#[non_exhaustive]
pub struct Sent {
    /// Its method.
    pub verb: Verb,
    /// Where it goes.
    pub url: Url,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, empty if it has none.
    pub body: Bytes,
}

impl Script {
    /// Responds to each request with a function, which returns `None` for a request that fails.
    pub fn new(
        respond: impl Fn(Sent) -> BoxFuture<'static, Option<http::Response<Body>>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(respond))
    }

    pub(crate) async fn respond(&self, mut request: Request) -> Result<Response, String> {
        let (verb, url) = (request.method().clone(), request.url().clone());
        let headers = std::mem::take(request.headers_mut());
        let body = request.body().and_then(|body| body.as_bytes()).map(Bytes::copy_from_slice).unwrap_or_default();
        let response = (self.0)(Sent { verb, url: url.clone(), headers, body }).await;
        let (head, body) = response.ok_or("the request failed")?.into_parts();
        let mut whole = http::Response::builder().url(url).body(body).map_err(|fault| fault.to_string())?;
        (*whole.status_mut(), *whole.headers_mut()) = (head.status, head.headers);
        Ok(whole.into())
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

impl HttpTransport {
    /// Sends requests to a script instead of the network.
    #[doc(hidden)]
    pub fn script(mut self, script: Script) -> Self {
        self.options.script = Some(script);
        self
    }
}
