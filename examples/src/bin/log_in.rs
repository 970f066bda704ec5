//! A client that logs in to a server, and calls a tool without arguments.
//!
//! The login is kept in a file, so that the next run needs none.
//!
//! ```console
//! $ cargo run --bin log_in -- browser logins.json http://127.0.0.1:8000/mcp whoami
//! ```
//!
//! On a machine without a browser, `paste` takes the address that a browser elsewhere was sent to, and `device` shows a code to
//! enter there. `log_in out logins.json URL` logs out.

use std::error::Error;
use std::process::ExitCode;

use mcp::auth::authorizer::{BrowserPrompt, OAuth, TerminalDevicePrompt, TerminalPrompt};
use mcp::auth::store::FileStore;
use mcp::prelude::*;
use mcp_examples::{print, run};

fn main() -> ExitCode {
    run(log_in())
}

async fn log_in() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [how, file, url, tool @ ..] = arguments.as_slice() else {
        return Err("usage: log_in browser|paste|device|out FILE URL [TOOL]".into());
    };
    let oauth = OAuth::builder(url).client_name("Example").store(FileStore::new(file));
    let oauth = match how.as_str() {
        "browser" => oauth.prompt(BrowserPrompt::new()),
        "paste" => oauth.prompt(TerminalPrompt::new()),
        "device" => oauth.device_prompt(TerminalDevicePrompt::new()),
        "out" => return Ok(oauth.build()?.logout().await?),
        other => return Err(format!("there is no way to log in called `{other}`").into()),
    };
    // The first request that the server refuses starts the login.
    let transport = HttpTransport::new(url)?.authorizer(oauth.build()?);
    let client = Client::connect(transport).await?;
    for name in tool {
        print(&format!("{}\n", client.call_tool(name).await?.to_text()))?;
    }
    client.close().await;
    Ok(())
}
