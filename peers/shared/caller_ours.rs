//! The client of this workspace, as its user would use it.

use mcp_client::Client;
use serde::Serialize;

use crate::calls::{Caller, Fault, is_text, text};

#[derive(Serialize)]
struct Arguments {
    text: String,
}

impl Caller for Client {
    async fn echo(&self, number: u64) -> Result<bool, Fault> {
        let result = self.call_tool("echo").arguments(&Arguments { text: text(number) }).await?;
        Ok(is_text(result.content.first().and_then(|block| block.as_text()), number))
    }
}
