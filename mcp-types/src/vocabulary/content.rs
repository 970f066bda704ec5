//! Content blocks in one line.

use crate::base64::{self, InvalidBase64};
use crate::{
    AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource, ImageContent, PromptMessage, ResourceContents,
    ResourceLink, Role, SamplingContent, SamplingMessage, TextContent, TextResourceContents,
};

impl ContentBlock {
    /// Creates a block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Creates an image from its bytes.
    #[must_use]
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(base64::encode(bytes.as_ref()), mime_type))
    }

    /// Creates a sound from its bytes.
    #[must_use]
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(base64::encode(bytes.as_ref()), mime_type))
    }

    /// Creates a link to a resource that the client may read.
    #[must_use]
    pub fn resource_link(name: impl Into<String>, uri: impl Into<String>) -> Self {
        Self::ResourceLink(ResourceLink::new(name, uri))
    }

    /// Embeds the contents of a resource.
    #[must_use]
    pub fn resource(contents: impl Into<ResourceContents>) -> Self {
        Self::Resource(EmbeddedResource::new(contents))
    }

    /// The text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            Self::Image(_) | Self::Audio(_) | Self::ResourceLink(_) | Self::Resource(_) | Self::Unknown(_) => None,
        }
    }
}

impl From<&str> for ContentBlock {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for ContentBlock {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl SamplingContent {
    /// Creates a block of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Creates an image from its bytes.
    #[must_use]
    pub fn image(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Image(ImageContent::new(base64::encode(bytes.as_ref()), mime_type))
    }

    /// Creates a sound from its bytes.
    #[must_use]
    pub fn audio(bytes: impl AsRef<[u8]>, mime_type: impl Into<String>) -> Self {
        Self::Audio(AudioContent::new(base64::encode(bytes.as_ref()), mime_type))
    }

    /// The text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(content) => Some(&content.text),
            Self::Image(_) | Self::Audio(_) | Self::ToolUse(_) | Self::ToolResult(_) | Self::Unknown(_) => None,
        }
    }
}

impl From<&str> for SamplingContent {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for SamplingContent {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl PromptMessage {
    /// Creates a message of the user.
    #[must_use]
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::USER, content)
    }

    /// Creates a message of the assistant.
    #[must_use]
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::ASSISTANT, content)
    }
}

impl SamplingMessage {
    /// Creates a message of the user with one block of content.
    #[must_use]
    pub fn user(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::USER, content.into())
    }

    /// Creates a message of the assistant with one block of content.
    #[must_use]
    pub fn assistant(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::ASSISTANT, content.into())
    }
}

impl ImageContent {
    /// Decodes the image.
    ///
    /// # Errors
    ///
    /// Fails if `data` is not Base64.
    pub fn bytes(&self) -> Result<Vec<u8>, InvalidBase64> {
        base64::decode(&self.data)
    }
}

impl AudioContent {
    /// Decodes the sound.
    ///
    /// # Errors
    ///
    /// Fails if `data` is not Base64.
    pub fn bytes(&self) -> Result<Vec<u8>, InvalidBase64> {
        base64::decode(&self.data)
    }
}

impl BlobResourceContents {
    /// Decodes the contents.
    ///
    /// # Errors
    ///
    /// Fails if `blob` is not Base64.
    pub fn bytes(&self) -> Result<Vec<u8>, InvalidBase64> {
        base64::decode(&self.blob)
    }
}

impl ResourceContents {
    /// Creates contents of text.
    #[must_use]
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Text(TextResourceContents::new(uri, text))
    }

    /// Creates binary contents from their bytes.
    #[must_use]
    pub fn blob(uri: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        Self::Blob(BlobResourceContents::new(uri, base64::encode(bytes.as_ref())))
    }

    /// The address of the resource.
    #[must_use]
    pub fn uri(&self) -> &str {
        match self {
            Self::Text(contents) => &contents.uri,
            Self::Blob(contents) => &contents.uri,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: PR-3
    #[test]
    fn bytes_travel_as_base64() {
        let block = ContentBlock::image([0xff, 0x00], "image/png");
        assert_eq!(serde_json::to_string(&block).unwrap(), r#"{"type":"image","data":"/wA=","mimeType":"image/png"}"#);
        let ContentBlock::Image(image) = block else { panic!("an image") };
        assert_eq!(image.bytes().unwrap(), [0xff, 0x00]);
    }

    #[test]
    fn messages_take_one_line() {
        assert_eq!(PromptMessage::user("hi").content.as_text(), Some("hi"));
        let message = SamplingMessage::assistant("ho");
        assert_eq!((message.role, message.content.as_slice()[0].as_text()), (Role::ASSISTANT, Some("ho")));
        assert_eq!(ResourceContents::blob("a:b", "x").uri(), "a:b");
    }
}
