//! What a request is about.

use crate::serve::context::RequestContext;

/// The tool, prompt or resource that a request is about, by the name or URI that the client sent: see
/// [`RequestContext::target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Target<'a> {
    /// The name of the tool of `tools/call`.
    Tool(&'a str),
    /// The name of the prompt of `prompts/get`.
    Prompt(&'a str),
    /// The URI of the resource of `resources/read`, `resources/subscribe` or `resources/unsubscribe`.
    Resource(&'a str),
}

impl RequestContext {
    /// Returns the tool, prompt or resource that the request is about. It comes from the client, and may not be there.
    ///
    /// Costs nothing unless the name has escapes, which are decoded once. Returns `None` for other methods, and if the
    /// parameters do not have the name.
    #[must_use]
    pub fn target(&self) -> Option<Target<'_>> {
        match self.method().as_str() {
            "tools/call" => self.text_param("name").map(Target::Tool),
            "prompts/get" => self.text_param("name").map(Target::Prompt),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                self.text_param("uri").map(Target::Resource)
            }
            _ => None,
        }
    }

    /// Returns the name of the tool that `tools/call` calls, which may not be there, or `None` for other methods.
    #[must_use]
    pub fn tool_name(&self) -> Option<&str> {
        if let Some(Target::Tool(name)) = self.target() { Some(name) } else { None }
    }

    /// A parameter that is a string. There is one for each method, so that one has to be cached.
    fn text_param(&self, name: &str) -> Option<&str> {
        let raw = self.params().get(name)?.get();
        let text = raw.strip_prefix('"')?.strip_suffix('"')?;
        if !text.contains('\\') {
            return Some(text);
        }
        self.decoded_target(|| serde_json::from_str(raw).ok())
    }
}
