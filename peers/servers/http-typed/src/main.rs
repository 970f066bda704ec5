//! As little as it takes to answer a call of a tool over HTTP: types that borrow from the request, and no trees.
//!
//! It can do nothing else, and checks nothing. What it takes is what hyper, the system and one look at the text take.

#[path = "../../../shared/driven.rs"]
mod driven;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::net::TcpListener;

fn main() -> Result<(), Box<dyn Error>> {
    let others = (1..=driven::number_of_tools().saturating_sub(3)).map(|index| format!("tool_{index:02}"));
    let names = ["echo", "progress", "change"].map(str::to_owned).into_iter().chain(others).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    driven::end_with_input(runtime.handle().clone());
    runtime.block_on(serve(Arc::new(names)))
}

#[expect(clippy::print_stdout, reason = "the driver reads the address from here")]
async fn serve(names: Arc<BTreeSet<String>>) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let names = Arc::clone(&names);
        tokio::spawn(async move {
            let service = service_fn(|request| handle(&names, request));
            // Whoever hangs up in the middle does not bother the others.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn handle(names: &BTreeSet<String>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let answer = serde_json::from_slice::<Call<'_>>(&body).ok().and_then(|call| call.answer(names));
    let mut response = Response::default();
    match answer {
        Some(answer) => *response.body_mut() = Full::from(answer),
        None => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    name: &'a str,
    #[serde(borrow)]
    arguments: Arguments<'a>,
    #[serde(rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'a str>,
}

impl Call<'_> {
    fn answer(&self, names: &BTreeSet<String>) -> Option<Vec<u8>> {
        let Params { name, arguments, meta } = &self.params;
        if self.method != "tools/call" || !names.contains(*name) {
            return None;
        }
        let is_modern = meta.as_ref().is_some_and(|meta| meta.version.is_some());
        let result = CallResult {
            content: [Content { kind: "text", text: &arguments.text }],
            kind: is_modern.then_some("complete"),
            meta: is_modern.then_some(ResultMeta { info: Info { name: "raw", version: "1.0" } }),
        };
        serde_json::to_vec(&Answer { jsonrpc: "2.0", id: self.id, result }).ok()
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: CallResult<'a>,
}

#[derive(Serialize)]
struct CallResult<'a> {
    content: [Content<'a>; 1],
    #[serde(rename = "resultType", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<ResultMeta>,
}

#[derive(Serialize)]
struct Content<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct ResultMeta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    info: Info,
}

#[derive(Serialize)]
struct Info {
    name: &'static str,
    version: &'static str,
}
