//! Tool and prompt calls.

use mcp_types::{CallToolResult, GetPromptResult};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::error::Error;

impl Call<CallToolResult> {
    /// Sets the arguments of the tool: a value that serializes to a JSON object.
    pub fn arguments(mut self, arguments: &(impl Serialize + ?Sized)) -> Self {
        self.params = self.params.tool_arguments(arguments);
        self
    }

    /// Sends the call, and decodes the structured content of the result.
    ///
    /// ```no_run
    /// # async fn example(client: mcp_client::Client) -> Result<(), mcp_client::Error> {
    /// #[derive(serde::Deserialize)]
    /// struct Sum {
    ///     sum: f64,
    /// }
    ///
    /// let Sum { sum } = client.call_tool("add").arguments(&serde_json::json!({ "a": 1, "b": 2 })).structured().await?;
    /// # let _ = sum;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the error of the call, [`Error::ToolFailed`] if the tool reports a failure, and [`Error::InvalidResponse`] if
    /// the structured content is missing or is not a `T`.
    pub async fn structured<T: DeserializeOwned>(self) -> Result<T, Error> {
        structured(&self.await?)
    }
}

impl Call<GetPromptResult> {
    /// Adds an argument of the prompt.
    pub fn argument(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.params = self.params.prompt_argument(name.into(), value.into());
        self
    }
}

/// Decodes the structured content of a result.
fn structured<T: DeserializeOwned>(result: &CallToolResult) -> Result<T, Error> {
    if result.is_error == Some(true) {
        return Err(Error::ToolFailed(result.to_text()));
    }
    let Some(content) = &result.structured_content else {
        return Err(Error::InvalidResponse("the tool returned no structured content".to_owned()));
    };
    serde_json::from_str(content.as_str()).map_err(|fault| Error::InvalidResponse(fault.to_string()))
}
