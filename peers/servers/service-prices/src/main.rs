//! What things cost, as JSON over HTTP.

#[path = "../../../shared/driven.rs"]
mod driven;

use std::convert::Infallible;
use std::error::Error;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    driven::end_with_input(runtime.handle().clone());
    runtime.block_on(serve())
}

#[expect(clippy::print_stdout, reason = "the driver reads the address from here")]
async fn serve() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/prices", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A client that disconnects does not affect the other ones.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(price)));
    }
}

async fn price(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let item = request.uri().path().rsplit('/').next().unwrap_or_default();
    let cents = 100 + item.len();
    let mut response = Response::new(Full::from(format!(r#"{{"item":"{item}","cents":{cents}}}"#)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
