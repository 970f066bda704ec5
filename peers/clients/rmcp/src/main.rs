//! `client-rmcp stdio COMMAND..`, `client-rmcp http URL` or `client-rmcp http-kept URL`: makes the calls that the driver wants.

#[path = "../../../shared/caller_rmcp.rs"]
mod caller_rmcp;
#[path = "../../../shared/calls.rs"]
mod calls;

use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use tokio::process::Command;

use crate::caller_rmcp::Rmcp;
use crate::calls::Fault;

fn main() -> Result<(), Fault> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["stdio", program, rest @ ..] => calls::run(async {
            let mut command = Command::new(program);
            command.args(rest);
            Rmcp::connect(TokioChildProcess::new(command)?).await
        }),
        ["http", url] => calls::run(async { Rmcp::connect(StreamableHttpClientTransport::from_uri(*url)).await }),
        ["http-kept", url] => calls::run(async {
            // Its own one opens a connection for each request.
            let config = StreamableHttpClientTransportConfig::with_uri(*url);
            Rmcp::connect(StreamableHttpClientTransport::with_client(reqwest::Client::new(), config)).await
        }),
        _ => Err("client-rmcp stdio COMMAND.. | http URL | http-kept URL".into()),
    }
}
