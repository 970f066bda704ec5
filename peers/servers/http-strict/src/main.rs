//! The least that a server over HTTP can cost: hyper, types that borrow from the request, no trees.
//!
//! Each response is serialized once, into a buffer of about its size. It serves all that the driver asks for and checks
//! nothing, so all that a library adds is in the distance to it.

mod body;
#[path = "../../../shared/driven.rs"]
mod driven;
mod encode;
mod listeners;
mod sessions;
mod stream;
#[path = "../../../shared/strict/mod.rs"]
mod strict;

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

use crate::body::Body;
use crate::listeners::Listeners;
use crate::sessions::Sessions;
use crate::strict::message::{Message, Params};
use crate::strict::reply::{Discovery, Handshake, Reply, ToolList};
use crate::strict::tools::Tools;

fn main() -> Result<(), Box<dyn Error>> {
    let server = Arc::new(Server {
        tools: Tools::new(driven::number_of_tools())?,
        listeners: Listeners::default(),
        sessions: driven::has_sessions().then(Sessions::default),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    driven::end_with_input(runtime.handle().clone());
    runtime.block_on(serve(server))
}

#[expect(clippy::print_stdout, reason = "the driver reads the address from here")]
async fn serve(server: Arc<Server>) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            let service = service_fn(|request| server.handle(request));
            // A client that disconnects does not affect the other ones.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

struct Server {
    tools: Tools,
    listeners: Listeners,
    sessions: Option<Sessions>,
}

impl Server {
    async fn handle(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let session = self.sessions.as_ref().and_then(|_| sessions::number(request.headers()));
        let response = if request.method() == Method::GET {
            self.open(session)
        } else {
            match request.into_body().collect().await {
                Ok(body) => self.respond(&body.to_bytes(), session),
                Err(_) => None,
            }
        };
        Ok(response.unwrap_or_else(|| empty(StatusCode::BAD_REQUEST)))
    }

    /// Opens the stream of a session.
    fn open(&self, session: Option<u64>) -> Option<Response<Body>> {
        Some(event_stream(Body::Open(self.sessions.as_ref()?.open(session?)?)))
    }

    fn respond(&self, body: &[u8], session: Option<u64>) -> Option<Response<Body>> {
        let message: Message<'_> = serde_json::from_slice(body).ok()?;
        let is_handshake = message.method == "initialize";
        if let Some(sessions) = self.sessions.as_ref().filter(|_| !is_handshake)
            && !session.is_some_and(|session| sessions.has(session))
        {
            return Some(empty(StatusCode::NOT_FOUND));
        }
        let Some(id) = message.id else { return Some(empty(StatusCode::ACCEPTED)) };
        let Message { params, method, .. } = message;
        let room = body.len();
        match method {
            "tools/call" => self.call(id, &params, room),
            "subscriptions/listen" => Some(event_stream(Body::Open(self.listeners.add(id, params.notifications?)))),
            "initialize" => {
                let mut response = json(&Reply::new(id, Handshake::new(params.version?)), room)?;
                if let Some(sessions) = &self.sessions {
                    response.headers_mut().insert(sessions::HEADER, sessions.begin());
                }
                Some(response)
            }
            "server/discover" => json(&Reply::new(id, Discovery::new(params.meta?.version?)), room),
            "tools/list" => json(&Reply::new(id, ToolList { tools: self.tools.list() }), room),
            _ => None,
        }
    }

    fn call(&self, id: &RawValue, params: &Params<'_>, room: usize) -> Option<Response<Body>> {
        let name = params.name?;
        let result = self.tools.call(params)?;
        if name == "change" {
            match &self.sessions {
                Some(sessions) => sessions.publish(),
                None => self.listeners.publish(),
            }
        }
        let reply = Reply::new(id, result);
        let token = params.meta.as_ref().and_then(|meta| meta.token).filter(|_| name == "progress");
        match token {
            Some(token) => Some(event_stream(Body::events(encode::with_progress(token, &reply, room)?))),
            // A call in a session is answered by an event stream.
            None if self.sessions.is_some() => Some(event_stream(Body::events(encode::event(&reply, room)?))),
            None => json(&reply, room),
        }
    }
}

fn json(reply: &impl Serialize, room: usize) -> Option<Response<Body>> {
    Some(typed(Body::whole(encode::json(reply, room)?), "application/json"))
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Whole(None));
    *response.status_mut() = status;
    response
}

fn event_stream(body: Body) -> Response<Body> {
    let mut response = typed(body, "text/event-stream");
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().insert(NO_BUFFERING, HeaderValue::from_static("no"));
    response
}

fn typed(body: Body, content_type: &'static str) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
