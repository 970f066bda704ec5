//! Constructors and accessors of tools and their results.

use serde::Serialize;

use crate::{CallToolResult, ContentBlock, JsonObject, RawJson, RawObject, Tool};

impl Tool {
    /// Creates a tool without parameters; set [`input_schema`](Self::input_schema()) for others.
    ///
    /// ```
    /// use mcp_types::Tool;
    ///
    /// let tool = Tool::new("now").title("Current time").description("Returns the current time.");
    /// assert_eq!(tool.input_schema.as_str(), r#"{"type":"object","additionalProperties":false}"#);
    /// ```
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            // TL-4: the recommended schema of a tool without parameters.
            input_schema: RawObject::from_static(r#"{"type":"object","additionalProperties":false}"#),
            title: None,
            description: None,
            output_schema: None,
            annotations: None,
            execution: None,
            icons: None,
            meta: None,
            extra: JsonObject::new(),
        }
    }

    /// Sets `input_schema`, the JSON Schema of the arguments.
    #[must_use]
    pub fn input_schema(mut self, schema: impl Into<RawObject>) -> Self {
        self.input_schema = schema.into();
        self
    }

    /// Returns the display name: `title`, otherwise the title in the annotations, otherwise `name`.
    // TL-23
    #[must_use]
    pub fn display_name(&self) -> &str {
        let annotated = self.annotations.as_ref().and_then(|annotations| annotations.title.as_deref());
        self.title.as_deref().or(annotated).unwrap_or(&self.name)
    }
}

impl CallToolResult {
    /// Creates a result with one text block.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }

    /// Creates the result of a failed tool, with a message for the model.
    // TL-16
    #[must_use]
    pub fn error(text: impl Into<String>) -> Self {
        Self::text(text).is_error(true)
    }

    /// Creates a structured result, repeated as text for clients that do not read `structuredContent`.
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be serialized.
    // TL-9
    pub fn structured(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        let value = RawJson::new(value)?;
        Ok(Self::text(value.as_str()).structured_content(value))
    }

    /// Returns the text of each text block.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(ContentBlock::as_text)
    }

    /// Returns the text of all text blocks, separated by line breaks; empty if there is none.
    ///
    /// ```
    /// use mcp_types::{CallToolResult, ContentBlock};
    ///
    /// let image = ContentBlock::image([0xff], "image/png");
    /// let result = CallToolResult::new(vec!["one".into(), image, "two".into()]);
    /// assert_eq!(result.to_text(), "one\ntwo");
    /// ```
    #[must_use]
    pub fn to_text(&self) -> String {
        self.texts().collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolAnnotations;

    // covers: TL-23
    #[test]
    fn the_best_name_is_shown() {
        let tool = Tool::new("a");
        assert_eq!(tool.display_name(), "a");
        let tool = tool.annotations(ToolAnnotations::default().title("b"));
        assert_eq!(tool.display_name(), "b");
        assert_eq!(tool.title("c").display_name(), "c");
    }

    /// `null` is a value, and differs from none.
    // covers: TL-8, CG-17
    #[test]
    fn structured_null_is_not_absent() {
        let text = r#"{"content":[],"structuredContent":null}"#;
        let result: CallToolResult = serde_json::from_str(text).unwrap();
        assert_eq!(result.structured_content, Some(RawJson::null()));
        assert_eq!(serde_json::to_string(&result).unwrap(), text);
        let result: CallToolResult = serde_json::from_str(r#"{"content":[]}"#).unwrap();
        assert_eq!(result.structured_content, None);
    }

    /// Whatever a schema says, in whatever order, it stays so.
    // covers: J-11, CG-22
    #[test]
    fn schemas_keep_their_text() {
        let text = r#"{"name":"x","inputSchema":{"type":"object","$defs":{"z":1.0,"a":[{}]},"x-mine":null}}"#;
        let tool: Tool = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&tool).unwrap(), text);
        let fault = serde_json::from_str::<Tool>(r#"{"name":"x","inputSchema":null}"#).unwrap_err();
        assert!(fault.to_string().contains("object"), "{fault}");
    }
}
