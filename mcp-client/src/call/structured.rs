//! What tools return, as a type.

use mcp_types::CallToolResult;
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::error::Error;

impl Call<CallToolResult> {
    /// Makes the call, and reads the structured content of its result.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_client::Client) -> Result<(), mcp_client::Error> {
    /// #[derive(serde::Deserialize)]
    /// struct Sum {
    ///     sum: f64,
    /// }
    ///
    /// let Sum { sum } = client.call_tool("add", &serde_json::json!({ "a": 1, "b": 2 })).structured().await?;
    /// # let _ = sum;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Also if the tool failed ([`Error::ToolFailed`]), or gave something else.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T, Error> {
        structured(&self.await?)
    }
}

/// Reads the structured content of a result.
fn structured<T: DeserializeOwned>(result: &CallToolResult) -> Result<T, Error> {
    if result.is_error == Some(true) {
        let texts: Vec<_> = result.content.iter().filter_map(|content| content.as_text()).collect();
        return Err(Error::ToolFailed(texts.join("\n")));
    }
    let Some(content) = &result.structured_content else {
        return Err(Error::InvalidAnswer("the tool gave no structured content".to_owned()));
    };
    serde_json::from_str(content.as_str()).map_err(|fault| Error::InvalidAnswer(fault.to_string()))
}
