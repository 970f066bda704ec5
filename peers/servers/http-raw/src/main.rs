//! The server that one writes by hand when there is no library: hyper, and trees of `serde_json`.
//!
//! It checks nothing that it need not.

mod body;
#[path = "../../../shared/driven.rs"]
mod driven;
mod listeners;
mod sessions;
mod tools;

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::body::Body;
use crate::listeners::Listeners;
use crate::sessions::{SESSION, Sessions};
use crate::tools::Tools;

fn main() -> Result<(), Box<dyn Error>> {
    let server = Arc::new(Server {
        tools: Tools::new(driven::number_of_tools()),
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
            // Whoever hangs up in the middle does not bother the others.
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
        if let Some(sessions) = &self.sessions {
            return Ok(self.handle_in_session(sessions, request).await);
        }
        Ok(self.answer(read(request.into_body()).await))
    }

    async fn handle_in_session(&self, sessions: &Sessions, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if parts.method == Method::GET {
            return sessions.listen(&parts.headers).map_or_else(|| empty(StatusCode::NOT_FOUND), stream);
        }
        let message = read(body).await;
        if message["method"] == "initialize" {
            let mut response = self.answer(message);
            if let Ok(name) = HeaderValue::try_from(sessions.begin()) {
                response.headers_mut().insert(SESSION, name);
            }
            return response;
        }
        if !sessions.has(&parts.headers) {
            return empty(StatusCode::NOT_FOUND);
        }
        if message.get("id").is_none() { empty(StatusCode::ACCEPTED) } else { self.answer(message) }
    }

    fn answer(&self, mut message: Value) -> Response<Body> {
        let id = message.get_mut("id").map(Value::take).unwrap_or_default();
        let mut params = message.get_mut("params").map(Value::take).unwrap_or_default();
        let version = &params["_meta"]["io.modelcontextprotocol/protocolVersion"];
        let is_modern = version.is_string();
        let result = match message["method"].as_str() {
            Some("initialize") => Ok(json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": tools::info(),
            })),
            Some("server/discover") => Ok(json!({
                "supportedVersions": [version], "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
            })),
            Some("subscriptions/listen") => return stream(self.listeners.add(id, &params["notifications"])),
            Some("tools/list") => Ok(json!({ "tools": self.tools.list() })),
            Some("tools/call") => {
                if params["name"] == "change" {
                    match &self.sessions {
                        Some(sessions) => sessions.publish(),
                        None => self.listeners.publish(),
                    }
                }
                self.tools.call(&mut params)
            }
            _ => Err(json!({ "code": -32601, "message": "method not found" })),
        };
        let answer = match result {
            Ok(mut result) => {
                if is_modern {
                    result["resultType"] = Value::from("complete");
                    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": tools::info() });
                }
                json!({ "jsonrpc": "2.0", "id": id, "result": result })
            }
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        let token = &params["_meta"]["progressToken"];
        if params["name"] == "progress" && !token.is_null() {
            stream(tools::with_progress(token, &answer))
        } else {
            typed(Body::whole(answer.to_string()), "application/json")
        }
    }
}

async fn read(body: Incoming) -> Value {
    match body.collect().await {
        Ok(body) => serde_json::from_slice(&body.to_bytes()).unwrap_or_default(),
        Err(_) => Value::Null,
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Whole(None));
    *response.status_mut() = status;
    response
}

fn stream(body: Body) -> Response<Body> {
    let mut response = typed(body, "text/event-stream");
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn typed(body: Body, content_type: &'static str) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
